/* tables_rows.c - see tables_rows.h */
#include <math.h>
#include <stdlib.h>

#include "base/escape.h"
#include "export/tables_rows.h"

struct rows
rows_new(struct row_spool *spool, enum rows_format format, enum table_id table)
{
    return (struct rows){
        .spool = spool, .out = spool->text, .json = json_to(spool->text), .format = format,
        .columns = table_schemas[table].columns};
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
    if (rows->format == ROWS_CSV) fputs(rows->next == rows->columns ? "" : ",", rows->out);
    else json_key(&rows->json, rows->next->name);
    rows->next++;
}

void
rows_begin(struct rows *rows, struct fxt_string process)
{
    rows->next = rows->columns;
    if (rows->format == ROWS_NDJSON) json_object(&rows->json);
    rows_integer(rows, TABLES_SCHEMA);
    rows_text(rows, process);
}

void
rows_text(struct rows *rows, struct fxt_string text)
{
    next_column(rows, TABLE_TEXT);
    if (rows->format == ROWS_CSV) print_csv_data(rows->out, text);
    else json_text(&rows->json, text);
}

void
rows_integer(struct rows *rows, int64_t number)
{
    next_column(rows, TABLE_INTEGER);
    if (rows->format == ROWS_CSV) fprintf(rows->out, "%" PRId64, number);
    else json_integer(&rows->json, number);
}

/* Neither format has infinity or NaN. */
void
rows_real(struct rows *rows, double number)
{
    next_column(rows, TABLE_REAL);
    if (!isfinite(number)) number = 0;
    if (rows->format == ROWS_CSV) fprintf(rows->out, "%.17g", number);
    else json_double(&rows->json, number, 17);
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
    if (rows->format == ROWS_NDJSON) json_end(&rows->json);
    putc('\n', rows->out);
    row_spool_add(rows->spool, &rows->rows);
}
