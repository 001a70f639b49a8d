/* sql_output.c - see sql_output.h */
#ifdef HAVE_SQLITE3
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "render/display.h"
#include "render/sql_output.h"

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

static void
print_csv_row(sqlite3_stmt *statement)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        if (i > 0) putchar(',');
        switch (sqlite3_column_type(statement, i)) {
          case SQLITE_INTEGER: printf("%lld", (long long)sqlite3_column_int64(statement, i)); break;
          case SQLITE_FLOAT: printf("%f", sqlite3_column_double(statement, i)); break;
          case SQLITE_NULL: fputs("\"[NULL]\"", stdout); break;
          default: print_csv(stdout, value_text(statement, i));
        }
    }
    putchar('\n');
}

static int
print_csv_rows(sqlite3_stmt *statement)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        if (i > 0) putchar(',');
        print_csv(stdout, name_of(statement, i));
    }
    putchar('\n');
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) print_csv_row(statement);
    return step;
}

/* --- JSON --------------------------------------------------------------------------------------- */

static void
print_json_value(sqlite3_stmt *statement, int column)
{
    switch (sqlite3_column_type(statement, column)) {
      case SQLITE_INTEGER: printf("%lld", (long long)sqlite3_column_int64(statement, column)); break;
      case SQLITE_FLOAT: { /* JSON has no word for what is not a finite number */
        double real = sqlite3_column_double(statement, column);
        printf(isfinite(real) ? "%.17g" : "\"%f\"", real);
        break;
      }
      case SQLITE_NULL: fputs("null", stdout); break;
      default: print_json(stdout, value_text(statement, column));
    }
}

static int
print_json_array(sqlite3_stmt *statement)
{
    const char *separator = "";
    putchar('[');
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        printf("%s\n{", separator);
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            if (i > 0) putchar(',');
            print_json(stdout, name_of(statement, i));
            putchar(':');
            print_json_value(statement, i);
        }
        putchar('}');
        separator = ",";
    }
    puts("\n]");
    return step;
}

/* --- tables ---------------------------------------------------------------------------------------- */

enum { ROWS_MEASURED = 1000 };

struct cell {
    char *text; /* escaped */
    int width;  /* in columns of a terminal */
    bool number;
};

/* Rows that wait until the widths of their columns are known. */
struct grid {
    int columns;
    int *widths;
    struct cell *cells;
    int rows;
};

static struct cell
cell_of(struct fxt_string text, bool number)
{
    size_t size = 4 * (size_t)text.len + 8; /* a byte becomes four at most */
    struct cell cell = {.text = xrealloc(NULL, size, 1), .number = number};
    escape_into(cell.text, size, text);
    cell.width = (int)display_width(cell.text);
    return cell;
}

static struct cell
cell_of_value(sqlite3_stmt *statement, int column)
{
    int type = sqlite3_column_type(statement, column);
    return cell_of(value_text(statement, column), type == SQLITE_INTEGER || type == SQLITE_FLOAT);
}

static void
print_cell(const struct grid *grid, int column, const struct cell *cell)
{
    bool last = column == grid->columns - 1;
    int blanks = grid->widths[column] > cell->width ? grid->widths[column] - cell->width : 0;
    if (cell->number) printf("%*s%s", blanks, "", cell->text);
    else printf("%s%*s", cell->text, last ? 0 : blanks, "");
    fputs(last ? "\n" : "  ", stdout);
}

static void
print_grid(struct grid *grid)
{
    for (int row = 0; row < grid->rows; row++) {
        for (int i = 0; i < grid->columns; i++) {
            struct cell *cell = &grid->cells[row * grid->columns + i];
            print_cell(grid, i, cell);
            free(cell->text);
        }
        if (row > 0) continue;
        for (int i = 0; i < grid->columns; i++) { /* a line under the names */
            for (int j = 0; j < grid->widths[i]; j++) putchar('-');
            fputs(i == grid->columns - 1 ? "\n" : "  ", stdout);
        }
    }
    grid->rows = 0;
}

static void
add_cell(struct grid *grid, int column, struct cell cell)
{
    grid->cells[grid->rows * grid->columns + column] = cell;
    if (cell.width > grid->widths[column]) grid->widths[column] = cell.width;
}

static int
print_table(sqlite3_stmt *statement)
{
    struct grid grid = {.columns = sqlite3_column_count(statement)};
    grid.widths = xcalloc((size_t)grid.columns, sizeof *grid.widths);
    grid.cells = xcalloc((size_t)grid.columns * (ROWS_MEASURED + 1), sizeof *grid.cells);
    for (int i = 0; i < grid.columns; i++) add_cell(&grid, i, cell_of(name_of(statement, i), false));
    grid.rows = 1;
    int step;
    while (grid.rows <= ROWS_MEASURED && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < grid.columns; i++) {
            struct cell cell = cell_of_value(statement, i);
            add_cell(&grid, i, cell);
            if (grid.rows == 1) grid.cells[i].number = cell.number; /* a name stands as what is below it */
        }
        grid.rows++;
    }
    bool more = grid.rows > ROWS_MEASURED;
    print_grid(&grid);
    while (more && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < grid.columns; i++) {
            struct cell cell = cell_of_value(statement, i);
            print_cell(&grid, i, &cell);
            free(cell.text);
        }
    }
    free(grid.cells);
    free(grid.widths);
    return step;
}

int
rows_print(sqlite3_stmt *statement, enum row_format format)
{
    if (sqlite3_column_count(statement) == 0) return sqlite3_step(statement);
    switch (format) {
      case ROWS_CSV: return print_csv_rows(statement);
      case ROWS_TABLE: return print_table(statement);
      case ROWS_JSON: return print_json_array(statement);
    }
    return SQLITE_ERROR;
}
#else
typedef int rows_need_sqlite; /* an empty file is no C */
#endif
