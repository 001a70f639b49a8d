/* document_data.c - prints a document for programs, as JSON or CSV.
 *
 * Numbers are written in full. Times and durations are whole nanoseconds, shares are fractions of
 * 1. People open CSV in spreadsheets, so a text that would be a formula there has a mark; a number has none.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "render/document.h"

static void
put_number(const struct column *column, const struct cell *cell)
{
    switch (column->kind) {
      case COLUMN_SHARE:
      case COLUMN_CHANGE: printf("%.6g", cell->share); break;
      case COLUMN_AMOUNT:
      case COLUMN_DELTA: printf("%.15g", cell->amount); break;
      case COLUMN_TIME_DELTA:
      case COLUMN_TIME: printf("%" PRId64, cell->time_ns); break;
      default: printf("%" PRIu64, cell->number); break;
    }
}

static void
put_rate(const float *rate, const char *between)
{
    for (unsigned i = 0; i < DOCUMENT_PARTS; i++) printf("%s%.6g", i > 0 ? between : "", (double)rate[i]);
}

/* --- JSON ---------------------------------------------------------------------------------- */

static void
put_json_cell(const struct column *column, const struct cell *cell)
{
    if (!cell->present) {
        fputs("null", stdout);
    }
    else if (column->kind == COLUMN_TEXT) {
        print_json(stdout, cell->text);
    }
    else if (column->kind == COLUMN_RATE) {
        putchar('[');
        put_rate(cell->rate, ",");
        putchar(']');
    }
    else {
        put_number(column, cell);
    }
}

/* {"rows":[{"count":1,...},...],"more_rows":N}. The row that sums up the others is a separate
 * member. */
static void
print_json_table(const struct table *table)
{
    printf("\"%s\":{\"rows\":[", table->id);
    for (uint32_t row = 0; row < table->row_count; row++) {
        bool rest = table->more_rows > 0 && row + 1 == table->row_count;
        if (rest) printf("],\n  \"more_rows\":%" PRIu64 ",\"more\":", table->more_rows);
        else printf("%s\n  ", row > 0 ? "," : "");
        const char *before = "{";
        for (unsigned i = 0; i < table->column_count; i++) {
            const struct cell *cell = &table->cells[row * table->column_count + i];
            if (rest && !cell->present) continue;
            printf("%s\"%s\":", before, table->columns[i].id);
            put_json_cell(&table->columns[i], cell);
            before = ",";
        }
        putchar('}');
    }
    fputs(table->more_rows > 0 ? "}" : "]}", stdout);
}

void
document_print_json(const struct document *document)
{
    const char *before = "{";
    for (uint32_t i = 0; i < document->table_count; i++) {
        if (document->tables[i]->people) continue;
        fputs(before, stdout);
        print_json_table(document->tables[i]);
        before = ",\n";
    }
    puts("}");
}

/* --- CSV ----------------------------------------------------------------------------------- */

/* Returns the number of different columns, and their ids; the caller frees the array. */
static unsigned
all_columns(const struct document *document, const char ***ids_out)
{
    unsigned count = 0, most = 1;
    for (uint32_t i = 0; i < document->table_count; i++) most += document->tables[i]->column_count;
    const char **ids = xcalloc(most, sizeof *ids);
    *ids_out = ids;
    for (uint32_t i = 0; i < document->table_count; i++) {
        const struct table *table = document->tables[i];
        for (unsigned column = 0; column < table->column_count; column++) {
            unsigned at = 0;
            while (at < count && strcmp(ids[at], table->columns[column].id) != 0) at++;
            if (at == count) ids[count++] = table->columns[column].id;
        }
    }
    return count;
}

static void
put_csv_cell(const struct column *column, const struct cell *cell)
{
    if (!cell->present) return;
    if (column->kind == COLUMN_TEXT) print_csv_cell(stdout, cell->text);
    else if (column->kind == COLUMN_RATE) put_rate(cell->rate, " ");
    else put_number(column, cell);
}

static void
print_csv_row(const struct table *table, const struct cell *cells, unsigned id_count, const char *const *ids)
{
    for (unsigned at = 0; at < id_count; at++) {
        putchar(',');
        for (unsigned i = 0; i < table->column_count; i++) {
            if (strcmp(table->columns[i].id, ids[at]) == 0) put_csv_cell(&table->columns[i], &cells[i]);
        }
    }
    putchar('\n');
}

void
document_print_csv_table(const struct table *table, bool header, const char *partial)
{
    for (unsigned i = 0; header && i < table->column_count; i++) {
        printf("%s%s", table->columns[i].id, i + 1 < table->column_count ? "," : partial ? ",partial\n" : "\n");
    }
    uint32_t rows = table->more_rows > 0 ? table->row_count - 1 : table->row_count;
    for (uint32_t row = 0; row < rows; row++) {
        for (unsigned i = 0; i < table->column_count; i++) {
            if (i > 0) putchar(',');
            put_csv_cell(&table->columns[i], &table->cells[(size_t)row * table->column_count + i]);
        }
        if (partial != NULL) putchar(','), print_csv(stdout, text_of(partial));
        putchar('\n');
    }
}

/* All tables as one: the first column names the table, the second is the number of rows that a
 * row sums up. */
void
document_print_csv(const struct document *document)
{
    const char **ids;
    unsigned id_count = all_columns(document, &ids);
    fputs("table,more_rows", stdout);
    for (unsigned i = 0; i < id_count; i++) printf(",%s", ids[i]);
    putchar('\n');
    for (uint32_t i = 0; i < document->table_count; i++) {
        const struct table *table = document->tables[i];
        for (uint32_t row = 0; row < table->row_count && !table->people; row++) {
            printf("%s,", table->id);
            if (table->more_rows > 0 && row + 1 == table->row_count) printf("%" PRIu64, table->more_rows);
            print_csv_row(table, &table->cells[(size_t)row * table->column_count], id_count, ids);
        }
    }
    free(ids);
}
