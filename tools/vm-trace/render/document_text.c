/* document_text.c - prints a document for people, as text or as Markdown.
 *
 * Numbers are aligned to the right, texts to the left. A table that is wider than the page loses
 * its minor column if that has one text in all rows, and is then shortened in steps (see `steps`): texts
 * become shorter, rates get half their width, then none. In the end the last text of each row gets a
 * line of its own, and so do texts that do not fit their column.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "render/display.h"
#include "render/document.h"
#include "render/terminal.h"
#include "render/text_columns.h"

enum { CELL_TEXT = 128, HEAD_WIDTH = 14 };

/* The last column for people. */
static unsigned
last_titled(const struct table *table)
{
    unsigned last = table->column_count - 1;
    while (last > 0 && table->columns[last].title == NULL) last--;
    return last;
}

/* The cell to show. In the row that sums up others, the last column has a text with their
 * number. */
static struct cell
shown_cell(const struct table *table, uint32_t row, unsigned column, char text[CELL_TEXT])
{
    struct cell cell = table->cells[row * table->column_count + column];
    if (table->more_rows == 0 || row + 1 < table->row_count || column != last_titled(table)) return cell;
    char number[NUMBER_TEXT];
    snprintf(text, CELL_TEXT, "in %s more", with_commas(number, table->more_rows));
    return cell_text(text_of(text));
}

/* --- cells --------------------------------------------------------------------------------- */

/* One character per part: eight heights relative to the highest, or a blank where nothing
 * happened. */
static char *
rate_text(const float *rate, unsigned columns)
{
    static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    float parts[DOCUMENT_PARTS] = {0}, most = 0;
    unsigned count = columns < DOCUMENT_PARTS ? DOCUMENT_PARTS / 2 : DOCUMENT_PARTS;
    for (unsigned i = 0; i < DOCUMENT_PARTS; i++) parts[i * count / DOCUMENT_PARTS] += rate[i];
    for (unsigned i = 0; i < count; i++) {
        if (parts[i] > most) most = parts[i];
    }
    char *text = xcalloc(count, sizeof "▁"), *end = text;
    for (unsigned i = 0; i < count; i++) {
        int height = most > 0 ? (int)(parts[i] / most * 7.999F) : 0;
        end = stpcpy(end, parts[i] > 0 ? heights[height] : " ");
    }
    return text;
}

/* Zero has no sign: what was open at the border of a cut begins some nanoseconds before it. */
static const char *
time_text(char text[NUMBER_TEXT], int64_t ns)
{
    enum { SHOWN_NS = 1000 };
    bool zero = ns > -SHOWN_NS / 2 && ns < SHOWN_NS / 2;
    snprintf(text, NUMBER_TEXT, "%.6f s", zero ? 0 : (double)ns / 1e9);
    return text;
}

/* A number as people read it. */
static const char *
number_text(char text[NUMBER_TEXT], const struct table *table, unsigned column, const struct cell *cell)
{
    switch (table->columns[column].kind) {
      case COLUMN_COUNT: return with_commas(text, cell->number);
      case COLUMN_DURATION: return scaled_duration_text(text, &table->scales[column], cell->number);
      case COLUMN_AMOUNT: return amount_text(text, cell->amount);
      case COLUMN_TIME_DELTA: return scaled_delta_text(text, &table->scales[column], cell->time_ns);
      case COLUMN_DELTA: return delta_text(text, cell->amount);
      case COLUMN_CHANGE: snprintf(text, NUMBER_TEXT, "%+.1f%%", cell->share * 100); break;
      case COLUMN_NUMBER: snprintf(text, NUMBER_TEXT, "%" PRIu64, cell->number); break;
      case COLUMN_SHARE: snprintf(text, NUMBER_TEXT, "%.1f%%", cell->share * 100); break;
      case COLUMN_TIME: return time_text(text, cell->time_ns);
      default: text[0] = '\0'; break;
    }
    return text;
}

/* The escaped text; malloc'ed. */
static char *
escaped(struct fxt_string text)
{
    size_t size = 4 * (size_t)text.len + 8; /* a byte becomes at most four */
    return escape_into(xrealloc(NULL, size, 1), size, text);
}

static unsigned
text_width(struct fxt_string text)
{
    char *shown = escaped(text);
    unsigned width = display_width(shown);
    free(shown);
    return width;
}

static bool
left(enum column_kind kind)
{
    return kind == COLUMN_TEXT || kind == COLUMN_RATE;
}

static unsigned
cell_width(const struct table *table, unsigned column, const struct cell *cell)
{
    char text[NUMBER_TEXT];
    enum column_kind kind = table->columns[column].kind;
    if (!cell->present) return 0;
    if (kind == COLUMN_TEXT) return text_width(cell->text);
    return kind == COLUMN_RATE ? DOCUMENT_PARTS : (unsigned)strlen(number_text(text, table, column, cell));
}

/* The escaped text, shortened to the columns; malloc'ed. */
static char *
shortened(struct fxt_string text, unsigned columns)
{
    char *shown = escaped(text), *fit = display_fit(shown, columns);
    free(shown);
    return fit;
}

/* A cell as text; malloc'ed. columns: for a text or a rate; UINT_MAX shows all of it. */
static char *
cell_string(const struct table *table, unsigned column, const struct cell *cell, unsigned columns)
{
    enum column_kind kind = table->columns[column].kind;
    if (!cell->present) return xcalloc(1, 1);
    if (kind == COLUMN_TEXT) return shortened(cell->text, columns);
    if (kind == COLUMN_RATE) return rate_text(cell->rate, columns);
    char *text = xcalloc(NUMBER_TEXT, 1);
    number_text(text, table, column, cell);
    return text;
}

static void
put_cell(FILE *out, const struct table *table, unsigned column, const struct cell *cell, unsigned columns)
{
    char *text = cell_string(table, column, cell, columns);
    bool styled = cell->style != STYLE_PLAIN;
    fprintf(out, "%s%s%s", styled ? style(out, cell->style) : "", text, styled ? style(out, STYLE_PLAIN) : "");
    free(text);
}

/* --- on a terminal ---------------------------------------------------------------------------- */

enum { INDENT = 2, HIDDEN = 0, BELOW_INDENT = 13, COUNTS_LEAST = 10, SHORTEST = 6 };

struct layout {
    unsigned page;
    unsigned *widths; /* HIDDEN: not shown, or on a line of its own */
    unsigned below;   /* the column with lines of its own; column_count: none */
    unsigned wanted;  /* width of the whole table, if rates were left out; else 0 */
};

/* The natural width of each column; HIDDEN for a column that is not for people. Counts have a
 * minimum width, so that they align in all tables. */
static unsigned *
column_widths(const struct table *table, unsigned counts_least)
{
    unsigned *widths = xcalloc(table->column_count, sizeof *widths);
    for (unsigned i = 0; i < table->column_count; i++) {
        if (table->columns[i].title == NULL) continue;
        widths[i] = display_width(table->columns[i].title);
        unsigned least = table->columns[i].kind == COLUMN_COUNT ? counts_least : 1;
        if (widths[i] < least) widths[i] = least;
        for (uint32_t row = 0; row < table->row_count; row++) {
            char text[CELL_TEXT];
            struct cell cell = shown_cell(table, row, i, text);
            unsigned width = cell_width(table, i, &cell);
            if (width > widths[i]) widths[i] = width;
        }
    }
    return widths;
}

static unsigned
last_column(const unsigned *widths, unsigned count)
{
    while (count > 1 && widths[count - 1] == HIDDEN) count--;
    return count - 1;
}

static unsigned
table_width(const unsigned *widths, unsigned count)
{
    unsigned width = INDENT;
    for (unsigned i = 0; i < count; i++) width += widths[i] == HIDDEN ? 0 : widths[i] + TEXT_COLUMN_GAP;
    return width - TEXT_COLUMN_GAP;
}

static bool
same_text_in_all_rows(const struct table *table, unsigned column)
{
    const struct cell *first = &table->cells[column];
    for (uint32_t row = 1; row < table->row_count; row++) {
        const struct cell *cell = &table->cells[row * table->column_count + column];
        if (cell->present && (!first->present || !fxt_string_equal(cell->text, first->text))) return false;
    }
    return table->row_count > 1;
}

static void
hide_minor_column(const struct table *table, unsigned *widths)
{
    if (table->minor == NULL) return;
    for (unsigned i = 0; i < table->column_count; i++) {
        if (strcmp(table->columns[i].id, table->minor) == 0 && same_text_in_all_rows(table, i)) widths[i] = HIDDEN;
    }
}

/* Takes columns from the widest text until the table fits, but no fewer than `least` and its
 * title. Returns false if the table is still too wide. */
static bool
narrow(const struct table *table, unsigned *widths, unsigned page, unsigned last_least, unsigned least)
{
    unsigned count = table->column_count, last = last_column(widths, count);
    while (table_width(widths, count) > page) {
        unsigned widest = count, most = 0;
        for (unsigned i = 0; i < count; i++) {
            if (table->columns[i].kind != COLUMN_TEXT || widths[i] == HIDDEN) continue;
            unsigned title = display_width(table->columns[i].title), floor = i == last ? last_least : least;
            if (floor < title) floor = title;
            if (widths[i] > floor && widths[i] > most) widest = i, most = widths[i];
        }
        if (widest == count) return false;
        widths[widest]--;
    }
    return true;
}

/* Steps for a table that is too wide: the minimum widths of texts, and the width of rates. */
static const struct {
    unsigned last_least, least, rate;
} steps[] = {{40, 24, DOCUMENT_PARTS}, {36, 24, DOCUMENT_PARTS / 2}, {24, 20, HIDDEN}};

static void
fit_to_page(const struct table *table, struct layout *layout)
{
    unsigned count = table->column_count, *widths = layout->widths, *natural = xcalloc(count, sizeof *natural);
    bool fits = false, rates = false;
    for (unsigned i = 0; i < count; i++) {
        natural[i] = table->columns[i].kind == COLUMN_TEXT && widths[i] > layout->page ? layout->page : widths[i];
        rates = rates || (table->columns[i].kind == COLUMN_RATE && widths[i] != HIDDEN);
    }
    if (table->one_line) {
        narrow(table, widths, layout->page, SHORTEST, SHORTEST);
        fits = true;
    }
    for (size_t step = 0; step < sizeof steps / sizeof *steps && !fits; step++) {
        for (unsigned i = 0; i < count; i++) {
            widths[i] = table->columns[i].kind == COLUMN_RATE && natural[i] != HIDDEN ? steps[step].rate : natural[i];
        }
        fits = narrow(table, widths, layout->page, steps[step].last_least, steps[step].least);
        if (rates && steps[step].rate == HIDDEN) layout->wanted = table_width(natural, count);
    }
    unsigned last = last_column(widths, count);
    if (!fits && count > 1 && table->columns[last].kind == COLUMN_TEXT) {
        for (unsigned i = 0; i < count; i++) widths[i] = table->columns[i].kind == COLUMN_RATE ? HIDDEN : natural[i];
        layout->below = last;
        widths[last] = HIDDEN;
        narrow(table, widths, layout->page, 8, 8);
    }
    free(natural);
}

static void
put_blanks(FILE *out, unsigned count)
{
    fprintf(out, "%*s", (int)count, "");
}

#define TITLE_ROW UINT32_MAX

static void
put_title(FILE *out, const char *title)
{
    fprintf(out, "%s%s%s", style(out, STYLE_DIM), title, style(out, STYLE_PLAIN));
}

static void
print_below(FILE *out, const struct table *table, const struct layout *layout, uint32_t row)
{
    char text[CELL_TEXT];
    const struct column *column = &table->columns[layout->below];
    struct cell cell =
        row == TITLE_ROW ? cell_text(text_of(column->title)) : shown_cell(table, row, layout->below, text);
    if (!cell.present) return;
    put_blanks(out, BELOW_INDENT);
    if (row == TITLE_ROW) put_title(out, column->title);
    else put_cell(out, table, layout->below, &cell, layout->page - BELOW_INDENT);
    putc('\n', out);
}

/* Whether a text gets a line of its own: in a table that has such lines, if it does not fit its
 * column. */
static bool
overflows(const struct table *table, const struct layout *layout, unsigned column, const struct cell *cell)
{
    return layout->below < table->column_count && cell->present && table->columns[column].kind == COLUMN_TEXT &&
           text_width(cell->text) > layout->widths[column];
}

static void
print_overflow(FILE *out, const struct table *table, const struct layout *layout, unsigned column,
               const struct cell *cell)
{
    const char *title = table->columns[column].title;
    put_blanks(out, BELOW_INDENT);
    put_title(out, title);
    fputs(": ", out);
    put_cell(out, table, column, cell, layout->page - BELOW_INDENT - display_width(title) - 2);
    putc('\n', out);
}

static void
print_row(FILE *out, const struct table *table, const struct layout *layout, uint32_t row)
{
    unsigned count = table->column_count;
    struct text_column *columns = xcalloc(count, sizeof *columns);
    struct text_cell *cells = xcalloc(count, sizeof *cells);
    bool title = row == TITLE_ROW;
    char more[CELL_TEXT];
    for (unsigned i = 0; i < count; i++) {
        const struct column *column = &table->columns[i];
        unsigned width = layout->widths[i];
        columns[i] = (struct text_column){.width = width, .hidden = width == HIDDEN};
        if (width == HIDDEN) continue;
        struct cell cell = title ? cell_text(text_of(column->title)) : shown_cell(table, row, i, more);
        if (!title && overflows(table, layout, i, &cell)) cell.present = false;
        char *text = title ? shortened(cell.text, width) : cell_string(table, i, &cell, width);
        cells[i] = (struct text_cell){.text = text, .width = display_width(text), .right = !left(column->kind),
                                      .style = title ? STYLE_DIM : cell.style};
    }
    text_columns_print(out, columns, count, INDENT, cells);
    for (unsigned i = 0; i < count; i++) {
        struct cell cell = {0};
        if (!title && !columns[i].hidden) cell = shown_cell(table, row, i, more);
        if (overflows(table, layout, i, &cell)) print_overflow(out, table, layout, i, &cell);
        free((char *)cells[i].text);
    }
    free(cells);
    free(columns);
    if (layout->below < count) print_below(out, table, layout, row);
}

/* Returns the page width needed for rates that were left out; 0 if none were. */
static unsigned
print_table(FILE *out, const struct table *table, unsigned page)
{
    table_choose_scales(table);
    struct layout layout = {.page = page, .widths = column_widths(table, COUNTS_LEAST), .below = table->column_count};
    if (!table->whole_lines && table_width(layout.widths, table->column_count) > page) {
        free(layout.widths);
        layout.widths = column_widths(table, 1);
        hide_minor_column(table, layout.widths);
        fit_to_page(table, &layout);
    }
    fprintf(out, "\n%s", style(out, STYLE_BOLD));
    print_escaped(out, table->title);
    fprintf(out, "%s\n", style(out, STYLE_PLAIN));
    if (table->row_count > 0) print_row(out, table, &layout, TITLE_ROW);
    for (uint32_t row = 0; row < table->row_count; row++) print_row(out, table, &layout, row);
    free(layout.widths);
    return layout.wanted;
}

static void
print_prose(FILE *out, const struct table *table)
{
    fprintf(out, "\n%s", style(out, STYLE_BOLD));
    print_escaped(out, table->title);
    fprintf(out, "%s\n", style(out, STYLE_PLAIN));
    document_prose_text(out, table);
}

/* Escapes what Markdown would interpret, and otherwise like text. */
static void
put_markdown(FILE *out, struct fxt_string text)
{
    for (uint32_t at = 0, from = 0; at <= text.len; at++) {
        bool special = at < text.len && strchr("\\`*_[]<>|#&", text.ptr[at]) != NULL && text.ptr[at] != '\0';
        if (at < text.len && !special) continue;
        print_escaped(out, (struct fxt_string){.ptr = text.ptr + from, .len = at - from});
        if (special) fprintf(out, "\\%c", text.ptr[at]);
        from = at + 1;
    }
}

void
document_print_partial(FILE *out, const struct document *document, bool markdown)
{
    const struct table *partial = document->partial;
    for (uint32_t row = 0; partial != NULL && row < partial->row_count; row++) {
        const struct cell *cells = &partial->cells[(size_t)row * partial->column_count];
        fputs(markdown ? "> **Partial**: " : "partial: ", out);
        (markdown ? put_markdown : print_escaped)(out, cells[PARTIAL_FILE].text);
        fputs(": ", out);
        (markdown ? put_markdown : print_escaped)(out, cells[PARTIAL_WHAT].text);
        fputs(markdown ? "\n\n" : "\n", out);
    }
}

void
document_print_text(FILE *out, const struct document *document)
{
    document_print_partial(out, document, false);
    fputs(style(out, STYLE_BOLD), out);
    print_escaped(out, document->title);
    fprintf(out, "%s\n", style(out, STYLE_PLAIN));
    for (uint32_t i = 0; i < document->line_count; i++) {
        unsigned width = text_width(text_of(document->lines[i].title));
        fputs("  ", out);
        print_escaped(out, text_of(document->lines[i].title));
        fprintf(out, "%*s ", width < HEAD_WIDTH ? (int)(HEAD_WIDTH - width) : 0, "");
        print_escaped(out, document->lines[i].text);
        putc('\n', out);
    }
    unsigned page = display_columns(out);
    unsigned most = 0;
    for (uint32_t i = 0; i < document->table_count; i++) {
        const struct table *table = document->tables[i];
        if (table->prose && !table->data) print_prose(out, table);
        unsigned wanted = table->data || table->prose ? 0 : print_table(out, table, page);
        if (wanted > most) most = wanted;
    }
    if (most > 0) {
        fprintf(out, "\n%s\"over time\" is left out of tables over %u columns wide; COLUMNS=%u shows it.%s\n",
                style(out, STYLE_DIM), page, most, style(out, STYLE_PLAIN));
    }
}

/* --- Markdown -------------------------------------------------------------------------------- */

static void
print_markdown_table(FILE *out, const struct table *table)
{
    table_choose_scales(table);
    fputs("\n## ", out);
    put_markdown(out, table->title);
    fputs("\n\n", out);
    if (table->prose) {
        document_prose_markdown(out, table);
        return;
    }
    if (table->row_count == 0) return;
    for (unsigned i = 0; i < table->column_count; i++) {
        if (table->columns[i].title != NULL) fprintf(out, "| %s ", table->columns[i].title);
    }
    fputs("|\n", out);
    for (unsigned i = 0; i < table->column_count; i++) {
        if (table->columns[i].title != NULL) fputs(left(table->columns[i].kind) ? "|---" : "|---:", out);
    }
    fputs("|\n", out);
    for (uint32_t row = 0; row < table->row_count; row++) {
        for (unsigned i = 0; i < table->column_count; i++) {
            char text[CELL_TEXT];
            struct cell cell = shown_cell(table, row, i, text);
            if (table->columns[i].title == NULL) continue;
            fputs("| ", out);
            if (table->columns[i].kind == COLUMN_TEXT && cell.present) put_markdown(out, cell.text);
            else put_cell(out, table, i, &cell, UINT_MAX);
            putc(' ', out);
        }
        fputs("|\n", out);
    }
}

void
document_print_markdown(FILE *out, const struct document *document)
{
    document_print_partial(out, document, true);
    fputs("# ", out);
    put_markdown(out, document->title);
    fputs("\n\n", out);
    for (uint32_t i = 0; i < document->line_count; i++) {
        bool more = document->lines[i].title[0] == '\0'; /* continues the line above */
        fputs(more ? "  - " : "- **", out);
        put_markdown(out, text_of(document->lines[i].title));
        fputs(more ? "" : "**: ", out);
        put_markdown(out, document->lines[i].text);
        putc('\n', out);
    }
    for (uint32_t i = 0; i < document->table_count; i++) {
        if (!document->tables[i]->data) print_markdown_table(out, document->tables[i]);
    }
}
