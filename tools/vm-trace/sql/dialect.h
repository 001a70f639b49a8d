#ifndef DIALECT_H
#define DIALECT_H
/* dialect.h - statements that only Perfetto's SQL has: INCLUDE PERFETTO MODULE, CREATE PERFETTO TABLE and VIEW. */
#include <sqlite3.h>

enum dialect_result {
    DIALECT_SQL,    /* it is ordinary SQL */
    DIALECT_DONE,   /* it is carried out */
    DIALECT_FAILED, /* *why_out says why; the caller frees it with sqlite3_free */
};

/* Looks at the first statement of the text. If it is one of these, carries it out, and *tail_out is what follows. */
enum dialect_result dialect_run(sqlite3 *db, const char *sql, const char **tail_out, char **why_out);

/* What to add to an error of SQLite: "" or a sentence that names Perfetto, where the trace processor may know what is
 * missing. */
const char *dialect_hint(const char *error);

#endif
