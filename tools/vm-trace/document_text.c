/* document_text.c - a document for people: on a terminal, or as Markdown.
 *
 * Columns of numbers stand at the right of their width, texts at the left. The last column of a table is a text, and may be as
 * long as it likes; others are lined up as far as they are no wider than TEXT_COLUMN_MOST.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "escape.h"
#include "terminal.h"
#include "xalloc.h"

enum { CELL_TEXT = 128, TEXT_COLUMN_MOST = 48, HEAD_WIDTH = 14 };

/* The text of the row that sums up those that are not shown, in the last column; elsewhere the cell's own. */
static struct cell
shown_cell(const struct table *table, uint32_t row, unsigned column, char text[CELL_TEXT])
{
    struct cell cell = table->cells[row * table->column_count + column];
    if (table->more_rows == 0 || row + 1 < table->row_count || column + 1 < table->column_count) return cell;
    char number[NUMBER_TEXT];
    snprintf(text, CELL_TEXT, "in %s more", with_commas(number, table->more_rows));
    return cell_text(text_of(text));
}

/* --- cells --------------------------------------------------------------------------------- */

/* Eight heights, relative to the highest; a blank where there is nothing at all. */
static void
put_rate(FILE *out, const float *rate)
{
    static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    float most = 0;
    for (unsigned i = 0; i < DOCUMENT_PARTS; i++) {
        if (rate[i] > most) most = rate[i];
    }
    for (unsigned i = 0; i < DOCUMENT_PARTS; i++) {
        int height = most > 0 ? (int)(rate[i] / most * 7.999F) : 0;
        fputs(rate[i] > 0 ? heights[height] : " ", out);
    }
}

/* How a number reads. */
static const char *
number_text(char text[NUMBER_TEXT], enum column_kind kind, const struct cell *cell)
{
    switch (kind) {
      case COLUMN_COUNT: return with_commas(text, cell->number);
      case COLUMN_DURATION: return duration_text(text, cell->number);
      case COLUMN_AMOUNT: return amount_text(text, cell->amount);
      case COLUMN_DELTA: return delta_text(text, cell->amount);
      case COLUMN_CHANGE: snprintf(text, NUMBER_TEXT, "%+.1f%%", cell->share * 100); break;
      case COLUMN_NUMBER: snprintf(text, NUMBER_TEXT, "%" PRIu64, cell->number); break;
      case COLUMN_SHARE: snprintf(text, NUMBER_TEXT, "%.1f%%", cell->share * 100); break;
      case COLUMN_TIME: snprintf(text, NUMBER_TEXT, "%.6f s", (double)cell->time_ns / 1e9); break;
      default: text[0] = '\0'; break;
    }
    return text;
}

/* Characters of a text as it is printed: names are short, and wide characters rare. */
static unsigned
text_width(struct fxt_string text)
{
    char shown[4 * CELL_TEXT];
    escape_into(shown, sizeof shown, text);
    unsigned width = 0;
    for (const char *byte = shown; *byte != '\0'; byte++) width += (*byte & 0xc0) != 0x80;
    return width;
}

static bool
left(enum column_kind kind)
{
    return kind == COLUMN_TEXT || kind == COLUMN_RATE;
}

static unsigned
cell_width(enum column_kind kind, const struct cell *cell)
{
    char text[NUMBER_TEXT];
    if (!cell->there) return 0;
    if (kind == COLUMN_TEXT) return text_width(cell->text);
    return kind == COLUMN_RATE ? DOCUMENT_PARTS : (unsigned)strlen(number_text(text, kind, cell));
}

static void
put_cell(const struct column *column, const struct cell *cell)
{
    char text[NUMBER_TEXT];
    if (!cell->there) return;
    if (cell->style != STYLE_PLAIN) fputs(style(cell->style), stdout);
    if (column->kind == COLUMN_TEXT) print_escaped(stdout, cell->text);
    else if (column->kind == COLUMN_RATE) put_rate(stdout, cell->rate);
    else fputs(number_text(text, column->kind, cell), stdout);
    if (cell->style != STYLE_PLAIN) fputs(style(STYLE_PLAIN), stdout);
}

/* --- on a terminal ---------------------------------------------------------------------------- */

static unsigned *
column_widths(const struct table *table)
{
    unsigned *widths = xcalloc(table->column_count, sizeof *widths);
    for (unsigned i = 0; i < table->column_count; i++) {
        if (table->columns[i].title == NULL) continue;
        widths[i] = (unsigned)strlen(table->columns[i].title);
        unsigned least = table->columns[i].kind == COLUMN_COUNT ? 10 : 0;
        if (widths[i] < least) widths[i] = least;
        for (uint32_t row = 0; row < table->row_count; row++) {
            unsigned width = cell_width(table->columns[i].kind, &table->cells[row * table->column_count + i]);
            bool long_text = table->columns[i].kind == COLUMN_TEXT && width > TEXT_COLUMN_MOST;
            if (width > widths[i] && !long_text) widths[i] = width;
        }
    }
    return widths;
}

static void
put_blanks(unsigned count)
{
    printf("%*s", (int)count, "");
}

#define TITLE_ROW UINT32_MAX

/* Blanks before a cell, which stand there only when something comes behind them. */
static void
print_row(const struct table *table, const unsigned *widths, uint32_t row)
{
    char text[CELL_TEXT];
    unsigned blanks = 2;
    for (unsigned i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        if (column->title == NULL) continue;
        struct cell cell = row == TITLE_ROW ? cell_text(text_of(column->title)) : shown_cell(table, row, i, text);
        unsigned width = cell_width(row == TITLE_ROW ? COLUMN_TEXT : column->kind, &cell);
        unsigned pad = width < widths[i] ? widths[i] - width : 0;
        if (width > 0) {
            put_blanks(blanks + (left(column->kind) ? 0 : pad));
            blanks = 0;
            if (row == TITLE_ROW) printf("%s%s%s", style(STYLE_DIM), column->title, style(STYLE_PLAIN));
            else put_cell(column, &cell);
        }
        blanks += 2 + (width > 0 && !left(column->kind) ? 0 : pad);
    }
    putchar('\n');
}

static void
print_table(const struct table *table)
{
    unsigned *widths = column_widths(table);
    printf("\n%s", style(STYLE_BOLD));
    print_escaped(stdout, table->title);
    printf("%s\n", style(STYLE_PLAIN));
    if (table->row_count > 0) print_row(table, widths, TITLE_ROW);
    for (uint32_t row = 0; row < table->row_count; row++) print_row(table, widths, row);
    free(widths);
}

void
document_print_text(const struct document *document)
{
    fputs(style(STYLE_BOLD), stdout);
    print_escaped(stdout, document->title);
    printf("%s\n", style(STYLE_PLAIN));
    for (uint32_t i = 0; i < document->line_count; i++) {
        unsigned width = text_width(text_of(document->lines[i].title));
        fputs("  ", stdout);
        print_escaped(stdout, text_of(document->lines[i].title));
        printf("%*s ", width < HEAD_WIDTH ? (int)(HEAD_WIDTH - width) : 0, "");
        print_escaped(stdout, document->lines[i].text);
        putchar('\n');
    }
    for (uint32_t i = 0; i < document->table_count; i++) {
        if (!document->tables[i]->data) print_table(document->tables[i]);
    }
}

/* --- Markdown -------------------------------------------------------------------------------- */

/* What Markdown would take for its own is escaped; the rest as for a terminal. */
static void
put_markdown(struct fxt_string text)
{
    for (uint32_t at = 0, from = 0; at <= text.len; at++) {
        bool special = at < text.len && strchr("\\`*_[]<>|#&", text.ptr[at]) != NULL && text.ptr[at] != '\0';
        if (at < text.len && !special) continue;
        print_escaped(stdout, (struct fxt_string){.ptr = text.ptr + from, .len = at - from});
        if (special) printf("\\%c", text.ptr[at]);
        from = at + 1;
    }
}

static void
print_markdown_table(const struct table *table)
{
    fputs("\n## ", stdout);
    put_markdown(table->title);
    puts("\n");
    if (table->row_count == 0) return;
    for (unsigned i = 0; i < table->column_count; i++) {
        if (table->columns[i].title != NULL) printf("| %s ", table->columns[i].title);
    }
    puts("|");
    for (unsigned i = 0; i < table->column_count; i++) {
        if (table->columns[i].title != NULL) fputs(left(table->columns[i].kind) ? "|---" : "|---:", stdout);
    }
    puts("|");
    for (uint32_t row = 0; row < table->row_count; row++) {
        for (unsigned i = 0; i < table->column_count; i++) {
            char text[CELL_TEXT];
            struct cell cell = shown_cell(table, row, i, text);
            if (table->columns[i].title == NULL) continue;
            fputs("| ", stdout);
            if (table->columns[i].kind == COLUMN_TEXT && cell.there) put_markdown(cell.text);
            else put_cell(&table->columns[i], &cell);
            putchar(' ');
        }
        puts("|");
    }
}

void
document_print_markdown(const struct document *document)
{
    fputs("# ", stdout);
    put_markdown(document->title);
    puts("\n");
    for (uint32_t i = 0; i < document->line_count; i++) {
        bool more = document->lines[i].title[0] == '\0'; /* of the line before */
        fputs(more ? "  - " : "- **", stdout);
        put_markdown(text_of(document->lines[i].title));
        fputs(more ? "" : "**: ", stdout);
        put_markdown(document->lines[i].text);
        putchar('\n');
    }
    for (uint32_t i = 0; i < document->table_count; i++) {
        if (!document->tables[i]->data) print_markdown_table(document->tables[i]);
    }
}
