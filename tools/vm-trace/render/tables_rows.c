/* tables_rows.c - see tables_rows.h */
#include <math.h>
#include <stdlib.h>

#include "base/escape.h"
#include "render/tables_rows.h"

struct rows
rows_new(struct row_spool *spool, enum rows_format format, enum table_id table)
{
    return (struct rows){
        .spool = spool, .out = spool->text, .format = format, .columns = table_schemas[table].columns};
}

void
rows_print_head(const struct rows *rows, FILE *out)
{
    for (const struct table_column *column = rows->columns; rows->format == ROWS_CSV && column->name != NULL; column++)
        fprintf(out, "%s%c", column->name, column[1].name != NULL ? ',' : '\n');
}

/* What comes before a value. */
static void
next_column(struct rows *rows, enum table_type type)
{
    if (rows->next->name == NULL || rows->next->type != type) abort(); /* of a caller */
    bool first = rows->next == rows->columns;
    if (rows->format == ROWS_CSV) fputs(first ? "" : ",", rows->out);
    else fprintf(rows->out, "%s\"%s\":", first ? "{" : ",", rows->next->name);
    rows->next++;
}

void
rows_begin(struct rows *rows, struct fxt_string process)
{
    rows->next = rows->columns;
    rows_integer(rows, TABLES_SCHEMA);
    rows_text(rows, process);
}

void
rows_text(struct rows *rows, struct fxt_string text)
{
    next_column(rows, TABLE_TEXT);
    (rows->format == ROWS_CSV ? print_csv_data : print_json)(rows->out, text);
}

void
rows_integer(struct rows *rows, int64_t number)
{
    next_column(rows, TABLE_INTEGER);
    fprintf(rows->out, "%" PRId64, number);
}

/* Neither format has infinity or NaN. */
void
rows_real(struct rows *rows, double number)
{
    next_column(rows, TABLE_REAL);
    fprintf(rows->out, "%.17g", isfinite(number) ? number : 0.0);
}

void
rows_moment(struct rows *rows, int64_t ts_ns, int64_t boot_ns)
{
    rows_integer(rows, ts_ns);
    rows_integer(rows, time_sum(ts_ns, boot_ns));
}

void
rows_end(struct rows *rows)
{
    if (rows->next->name != NULL) abort(); /* of a caller */
    fputs(rows->format == ROWS_CSV ? "\n" : "}\n", rows->out);
    row_spool_add(rows->spool, &rows->rows);
}
