/* database.c - see database.h */
#ifdef HAVE_SQLITE3
#include <inttypes.h>
#include <stdio.h>

#include "base/message.h"
#include "base/portable.h"
#include "sql/database.h"

enum { LEAST_SQL_BYTES = 4 << 20 }; /* SQLite sorts and groups any number of rows in temporary files */

/* The limit holds for all databases of the process. */
static void
limit_sqlite(const struct budget *budget)
{
    size_t left = budget->used_bytes < budget->limit_bytes ? budget->limit_bytes - budget->used_bytes : 0;
    sqlite3_int64 bytes = (sqlite3_int64)(left > LEAST_SQL_BYTES ? left : LEAST_SQL_BYTES);
#if SQLITE_VERSION_NUMBER >= 3031000
    sqlite3_hard_heap_limit64(bytes);
#else
    sqlite3_soft_heap_limit64(bytes);
#endif
}

enum status
database_open(struct model *model, size_t memory_bytes, sqlite3 **db_out)
{
    enum status status = STATUS_FINE;
    uint32_t left_out = model_finish(model);
    if (left_out > 0) {
        fprintf(stderr,
                "vm-trace: the tables need more than %zu MiB; the last %" PRIu32
                " events are not in them (--memory=MIB grants more)\n",
                memory_bytes >> 20, left_out);
        status = STATUS_FAULTS;
    }
    limit_sqlite(reader_budget(model->reader));
    if (sqlite3_open(":memory:", db_out) == SQLITE_OK && tables_register(*db_out, model) == SQLITE_OK) return status;
    message("%s", database_error(*db_out));
    return STATUS_CANNOT_READ;
}

const char *
database_error(sqlite3 *db)
{
    return db == NULL || sqlite3_errcode(db) == SQLITE_NOMEM
               ? "SQL needs more memory than the tables leave of it (--memory=MIB grants more)"
               : sqlite3_errmsg(db);
}
#else
typedef int database_needs_sqlite; /* a file must not be empty */
#endif
