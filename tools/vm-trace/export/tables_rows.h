#ifndef TABLES_ROWS_H
#define TABLES_ROWS_H
/* tables_rows.h - writes the rows of a table of tables_schema.h, as CSV or as newline JSON, into a spool.
 *
 *      rows_begin -> rows_text, rows_integer, rows_real for each column, in their order -> rows_end
 *
 * A value of the wrong type, or a row with too few or too many, ends the program: the columns would shift. One row ends
 * before another one, of any table, begins.
 */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/trace_host.h"
#include "base/json.h"
#include "export/row_spool.h"
#include "export/tables_schema.h"

enum rows_format { ROWS_CSV, ROWS_NDJSON };

struct rows {
    struct row_spool *spool; /* the caller's */
    FILE *out;               /* of it */
    struct json json;        /* on it */
    struct spooled rows;
    enum rows_format format;
    const struct table_column *columns;
    const struct table_column *next; /* to be written */
};

struct rows rows_new(struct row_spool *spool, enum rows_format format, enum table_id table);
/* Prints the head of the file, if the format has one. */
void rows_print_head(const struct rows *rows, FILE *out);
/* Begins a row with its schema and its process. */
void rows_begin(struct rows *rows, struct fxt_string process);
void rows_text(struct rows *rows, struct fxt_string text);
void rows_integer(struct rows *rows, int64_t number);
void rows_real(struct rows *rows, double number);
/* The two columns of a moment: by the trace's clock, and in Unix ns. `boot_ns`: Unix time at 0 of that clock. */
void rows_moment(struct rows *rows, int64_t ts_ns, int64_t boot_ns);
void rows_end(struct rows *rows);

/* A count that no trace brings beyond 63 bits; if one does, the largest number. */
static inline void
rows_count(struct rows *rows, uint64_t number)
{
    rows_integer(rows, number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

#endif
