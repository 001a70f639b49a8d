/* sql_output.c - see sql_output.h */
#ifdef HAVE_SQLITE3
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "render/display.h"
#include "sql/sql_output.h"
#include "render/text_columns.h"

static struct fxt_string
value_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return (struct fxt_string){.ptr = text ? text : "", .len = (uint32_t)sqlite3_column_bytes(statement, column)};
}

static struct fxt_string
name_of(sqlite3_stmt *statement, int column)
{
    const char *name = sqlite3_column_name(statement, column);
    return text_of(name != NULL ? name : ""); /* NULL: SQLite has no memory for it */
}

/* --- values ----------------------------------------------------------------------------------- */

typedef void print_text(FILE *out, struct fxt_string text);

static void
print_csv_row(sqlite3_stmt *statement, print_text *print, const char *partial)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        if (i > 0) putchar(',');
        switch (sqlite3_column_type(statement, i)) {
          case SQLITE_INTEGER: printf("%lld", (long long)sqlite3_column_int64(statement, i)); break;
          case SQLITE_FLOAT: printf("%f", sqlite3_column_double(statement, i)); break;
          case SQLITE_NULL: fputs("\"[NULL]\"", stdout); break;
          default: print(stdout, value_text(statement, i));
        }
    }
    if (partial != NULL) putchar(',');
    if (partial != NULL && partial[0] != '\0') print(stdout, text_of(partial));
    putchar('\n');
}

static int
print_csv_rows(sqlite3_stmt *statement, const char *partial)
{
    /* As Perfetto's shell does, but for ASCII's control characters; on a terminal others may be
     * commands, too. */
    print_text *print = isatty(STDOUT_FILENO) ? print_csv : print_csv_data;
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        if (i > 0) putchar(',');
        print(stdout, name_of(statement, i));
    }
    if (partial != NULL) putchar(','), print(stdout, text_of("partial"));
    putchar('\n');
    int step;
    for (; (step = sqlite3_step(statement)) == SQLITE_ROW; partial = partial != NULL ? "" : NULL)
        print_csv_row(statement, print, partial);
    return step;
}

/* --- JSON --------------------------------------------------------------------------------------- */

static void
put_json_value(struct json *json, sqlite3_stmt *statement, int column)
{
    switch (sqlite3_column_type(statement, column)) {
      case SQLITE_INTEGER: json_integer(json, sqlite3_column_int64(statement, column)); break;
      case SQLITE_FLOAT: json_double(json, sqlite3_column_double(statement, column), 17); break;
      case SQLITE_NULL: json_null(json); break;
      default: json_text(json, value_text(statement, column));
    }
}

static int
print_json_array(sqlite3_stmt *statement, const char *partial)
{
    struct json json = json_to(stdout);
    json_array(&json);
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        json_object(json_line(&json));
        for (int i = 0; i < sqlite3_column_count(statement); i++)
            put_json_value(json_key_text(&json, name_of(statement, i)), statement, i);
        if (partial != NULL) json_texts(&json, "partial", partial);
        json_end(&json);
        partial = NULL;
    }
    if (partial != NULL) /* a row of its own: that there are none may be due to what is missing */
        json_text_object(json_line(&json), "partial", partial);
    json_end(json_line(&json));
    putchar('\n');
    return step;
}

/* --- tables ---------------------------------------------------------------------------------------- */

enum { ROWS_MEASURED = 1000 };

/* Rows that wait until the widths of the columns are known. The first row has the names. */
struct grid {
    unsigned column_count;
    struct text_column *columns;
    struct text_cell *cells;
    unsigned rows;
};

static struct text_cell
cell_of(struct fxt_string text)
{
    size_t size = 4 * (size_t)text.len + 8; /* a byte becomes at most four */
    char *escaped = escape_into(xrealloc(NULL, size, 1), size, text);
    return (struct text_cell){.text = escaped, .width = display_width(escaped)};
}

static void
print_line(const struct grid *grid, struct text_cell *cells)
{
    text_columns_print(stdout, grid->columns, grid->column_count, 0, cells);
    for (unsigned i = 0; i < grid->column_count; i++) free((char *)cells[i].text);
}

/* The line under the names. */
static void
print_underline(const struct grid *grid)
{
    for (unsigned i = 0; i < grid->column_count; i++) {
        for (unsigned j = 0; j < grid->columns[i].width; j++) putchar('-');
        printf("%*s", i + 1 < grid->column_count ? TEXT_COLUMN_GAP : 0, "");
    }
    putchar('\n');
}

static struct text_cell *
row_at(const struct grid *grid, unsigned row)
{
    return grid->cells + (size_t)row * grid->column_count;
}

/* The values of the statement's row. Numbers are aligned to the right. */
static void
fill_row(const struct grid *grid, sqlite3_stmt *statement, struct text_cell *cells)
{
    for (unsigned i = 0; i < grid->column_count; i++) {
        int type = sqlite3_column_type(statement, (int)i);
        cells[i] = cell_of(value_text(statement, (int)i));
        cells[i].right = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
    }
}

/* On a terminal: takes width from the widest columns until a line fits, but leaves each some. A column that is not
 * narrowed shows all. Returns whether texts have to be shortened. */
static bool
narrow(struct grid *grid)
{
    enum { LEAST = 8 };
    if (!isatty(STDOUT_FILENO) || grid->column_count == 0) return false;
    unsigned page = display_columns(stdout), width = (grid->column_count - 1) * TEXT_COLUMN_GAP;
    for (unsigned i = 0; i < grid->column_count; i++) width += grid->columns[i].width;
    bool shortened = width > page;
    while (width > page) {
        unsigned widest = 0;
        for (unsigned i = 1; i < grid->column_count; i++) {
            if (grid->columns[i].width > grid->columns[widest].width) widest = i;
        }
        if (grid->columns[widest].width <= LEAST) break;
        grid->columns[widest].width--;
        width--;
    }
    return shortened;
}

static void
shorten(const struct grid *grid, struct text_cell *cells)
{
    for (unsigned i = 0; i < grid->column_count; i++) {
        struct text_cell *cell = &cells[i];
        if (cell->width <= grid->columns[i].width) continue;
        char *fit = display_fit(cell->text, grid->columns[i].width);
        free((char *)cell->text);
        cell->text = fit;
        cell->width = display_width(fit);
    }
}

static int
print_table(sqlite3_stmt *statement)
{
    struct grid grid = {.column_count = (unsigned)sqlite3_column_count(statement)};
    grid.columns = xcalloc(grid.column_count, sizeof *grid.columns);
    grid.cells = xcalloc((size_t)grid.column_count * (ROWS_MEASURED + 1), sizeof *grid.cells);
    for (unsigned i = 0; i < grid.column_count; i++) grid.cells[i] = cell_of(name_of(statement, (int)i));
    grid.rows = 1;
    int step;
    while (grid.rows <= ROWS_MEASURED && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        fill_row(&grid, statement, row_at(&grid, grid.rows));
        grid.rows++;
    }
    /* Align each name like the value below it. */
    for (unsigned i = 0; i < grid.column_count && grid.rows > 1; i++) grid.cells[i].right = row_at(&grid, 1)[i].right;
    for (unsigned row = 0; row < grid.rows; row++) {
        for (unsigned i = 0; i < grid.column_count; i++) {
            unsigned width = row_at(&grid, row)[i].width;
            if (width > grid.columns[i].width) grid.columns[i].width = width;
        }
    }
    bool shortened = narrow(&grid);
    for (unsigned row = 0; row < grid.rows; row++) {
        if (shortened) shorten(&grid, row_at(&grid, row));
        print_line(&grid, row_at(&grid, row));
        if (row == 0) print_underline(&grid);
    }
    while (grid.rows > ROWS_MEASURED && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        fill_row(&grid, statement, grid.cells);
        if (shortened) shorten(&grid, grid.cells);
        print_line(&grid, grid.cells);
    }
    free(grid.cells);
    free(grid.columns);
    return step;
}

int
sql_output_print(sqlite3_stmt *statement, enum sql_format format, const char *partial)
{
    if (sqlite3_column_count(statement) == 0) return sqlite3_step(statement);
    switch (format) {
      case SQL_CSV: return print_csv_rows(statement, partial);
      case SQL_TABLE:
        if (partial != NULL) printf("partial: %s\n", partial);
        return print_table(statement);
      case SQL_JSON: return print_json_array(statement, partial);
    }
    return SQLITE_ERROR;
}
#else
typedef int sql_output_needs_sqlite; /* a file must not be empty */
#endif
