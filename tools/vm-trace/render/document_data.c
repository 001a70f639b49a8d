/* document_data.c - prints a document for programs, as JSON or CSV.
 *
 * Numbers are written in full. Times and durations are whole nanoseconds, shares are fractions of
 * 1. People open CSV in spreadsheets, so a text that would be a formula there has a mark; a number has none.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "render/document.h"

enum { SHARE_DIGITS = 6, AMOUNT_DIGITS = 15 };

/* --- JSON ---------------------------------------------------------------------------------- */

static void
put_json_cell(struct json *json, const struct column *column, const struct cell *cell)
{
    if (!cell->present) {
        json_null(json);
        return;
    }
    switch (column->kind) {
      case COLUMN_TEXT: json_text(json, cell->text); break;
      case COLUMN_RATE:
        json_array(json);
        for (unsigned i = 0; i < DOCUMENT_PARTS; i++) json_double(json, (double)cell->rate[i], SHARE_DIGITS);
        json_end(json);
        break;
      case COLUMN_SHARE:
      case COLUMN_CHANGE: json_double(json, cell->share, SHARE_DIGITS); break;
      case COLUMN_AMOUNT:
      case COLUMN_DELTA: json_double(json, cell->amount, AMOUNT_DIGITS); break;
      case COLUMN_TIME_DELTA:
      case COLUMN_TIME: json_integer(json, cell->time_ns); break;
      default: json_unsigned(json, cell->number); break;
    }
}

/* {"rows":[{"count":1,...},...],"more_rows":N}. The row that sums up the others is a separate
 * member. */
static void
put_json_table(struct json *json, const struct table *table)
{
    enum { INDENT = 2 };
    json_object(json_key(json, table->id));
    json_array(json_key(json, "rows"));
    for (uint32_t row = 0; row < table->row_count; row++) {
        bool rest = table->more_rows > 0 && row + 1 == table->row_count;
        if (rest) {
            json_end(json);
            json_unsigned(json_key(json_line_indented(json, INDENT), "more_rows"), table->more_rows);
            json_object(json_key(json, "more"));
        }
        else {
            json_object(json_line_indented(json, INDENT));
        }
        for (unsigned i = 0; i < table->column_count; i++) {
            const struct cell *cell = &table->cells[row * table->column_count + i];
            if (!rest || cell->present) put_json_cell(json_key(json, table->columns[i].id), &table->columns[i], cell);
        }
        json_end(json);
    }
    if (table->more_rows == 0) json_end(json);
    json_end(json);
}

void
document_print_json(FILE *out, const struct document *document)
{
    struct json json = json_to(out);
    json_object(&json);
    for (uint32_t i = 0, printed = 0; i < document->table_count; i++) {
        if (document->tables[i]->people) continue;
        put_json_table(printed++ > 0 ? json_line(&json) : &json, document->tables[i]);
    }
    json_end(&json);
    putc('\n', out);
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
put_csv_cell(FILE *out, const struct column *column, const struct cell *cell)
{
    if (!cell->present) return;
    switch (column->kind) {
      case COLUMN_TEXT: print_csv_cell(out, cell->text); break;
      case COLUMN_RATE:
        for (unsigned i = 0; i < DOCUMENT_PARTS; i++)
            fprintf(out, "%s%.*g", i > 0 ? " " : "", SHARE_DIGITS, (double)cell->rate[i]);
        break;
      case COLUMN_SHARE:
      case COLUMN_CHANGE: fprintf(out, "%.*g", SHARE_DIGITS, cell->share); break;
      case COLUMN_AMOUNT:
      case COLUMN_DELTA: fprintf(out, "%.*g", AMOUNT_DIGITS, cell->amount); break;
      case COLUMN_TIME_DELTA:
      case COLUMN_TIME: fprintf(out, "%" PRId64, cell->time_ns); break;
      default: fprintf(out, "%" PRIu64, cell->number); break;
    }
}

static void
print_csv_row(FILE *out, const struct table *table, const struct cell *cells, unsigned id_count, const char *const *ids)
{
    for (unsigned at = 0; at < id_count; at++) {
        putc(',', out);
        for (unsigned i = 0; i < table->column_count; i++) {
            if (strcmp(table->columns[i].id, ids[at]) == 0) put_csv_cell(out, &table->columns[i], &cells[i]);
        }
    }
    putc('\n', out);
}

void
document_print_csv_table(FILE *out, const struct table *table, bool header, const char *partial)
{
    for (unsigned i = 0; header && i < table->column_count; i++) {
        fprintf(out, "%s%s", table->columns[i].id, i + 1 < table->column_count ? "," : partial ? ",partial\n" : "\n");
    }
    uint32_t rows = table->more_rows > 0 ? table->row_count - 1 : table->row_count;
    for (uint32_t row = 0; row < rows; row++) {
        for (unsigned i = 0; i < table->column_count; i++) {
            if (i > 0) putc(',', out);
            put_csv_cell(out, &table->columns[i], &table->cells[(size_t)row * table->column_count + i]);
        }
        if (partial != NULL) putc(',', out), print_csv(out, text_of(partial));
        putc('\n', out);
    }
}

/* All tables as one: the first column names the table, the second is the number of rows that a
 * row sums up. */
void
document_print_csv(FILE *out, const struct document *document)
{
    const char **ids;
    unsigned id_count = all_columns(document, &ids);
    fputs("table,more_rows", out);
    for (unsigned i = 0; i < id_count; i++) fprintf(out, ",%s", ids[i]);
    putc('\n', out);
    for (uint32_t i = 0; i < document->table_count; i++) {
        const struct table *table = document->tables[i];
        for (uint32_t row = 0; row < table->row_count && !table->people; row++) {
            fprintf(out, "%s,", table->id);
            if (table->more_rows > 0 && row + 1 == table->row_count) fprintf(out, "%" PRIu64, table->more_rows);
            print_csv_row(out, table, &table->cells[(size_t)row * table->column_count], id_count, ids);
        }
    }
    free(ids);
}
