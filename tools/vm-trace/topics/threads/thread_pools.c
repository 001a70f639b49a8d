/* thread_pools.c - see report_view.h: threads of a pool as one row.
 *
 * The table is made a second time, with a row for each thread, however many there are. Then rows are joined, sorted
 * again, and cut to as many as a table has. Each row is compared with each other one, so not with very many threads.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topics/report_view.h"

enum { THREADS_COMPARED = 2000 };

static int
column_of(const struct table *table, const char *id)
{
    for (unsigned i = 0; id != NULL && i < table->column_count; i++) {
        if (strcmp(table->columns[i].id, id) == 0) return (int)i;
    }
    return -1;
}

static struct cell *
row_at(const struct table *table, uint32_t row)
{
    return table->cells + (size_t)row * table->column_count;
}

/* --- names ---------------------------------------------------------------------------------------------- */

/* The tracer's own name of a thread without one: "Thread app.rb:12". Its digits are a line. */
static bool
place_p(struct fxt_string name)
{
    static const char thread[] = "Thread ";
    return name.len > strlen(thread) && memcmp(name.ptr, thread, strlen(thread)) == 0;
}

/* Whether two names differ only in their digits. */
static bool
same_pool_p(struct fxt_string a, struct fxt_string b)
{
    const char *x = a.ptr, *x_end = a.ptr + a.len, *y = b.ptr, *y_end = b.ptr + b.len;
    bool digits = false;
    if (place_p(a)) return false;
    while (x < x_end && y < y_end) {
        if (isdigit((unsigned char)*x) && isdigit((unsigned char)*y)) {
            while (x < x_end && isdigit((unsigned char)*x)) x++;
            while (y < y_end && isdigit((unsigned char)*y)) y++;
            digits = true;
        }
        else if (*x++ != *y++) return false;
    }
    return digits && x == x_end && y == y_end;
}

/* "puma srv tp N (5 threads)" */
static struct fxt_string
pool_name(struct document *document, struct fxt_string name, uint32_t count)
{
    char *text = strndup(name.ptr, name.len);
    size_t kept = 0;
    if (text == NULL) return name;
    for (const char *at = text; *at != '\0';) {
        if (isdigit((unsigned char)*at)) {
            while (isdigit((unsigned char)*at)) at++;
            text[kept++] = 'N';
        }
        else text[kept++] = *at++;
    }
    text[kept] = '\0';
    struct fxt_string shown = document_text(document, "%s (%u threads)", text, (unsigned)count);
    free(text);
    return shown;
}

/* --- rows ------------------------------------------------------------------------------------------------- */

/* Adds a row to another one. of: the column that shares are of, or -1: of all. */
static void
join(const struct table *table, struct cell *into, const struct cell *from, int of)
{
    double into_whole = of >= 0 ? (double)into[of].number : 0, from_whole = of >= 0 ? (double)from[of].number : 0;
    bool longer = false;
    for (unsigned i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        bool longest = strncmp(column->id, "longest", 7) == 0, id = strcmp(column->id, "pid") == 0;
        if (column->kind == COLUMN_SHARE && into[i].present && from[i].present) {
            double sum = of >= 0 ? into[i].share * into_whole + from[i].share * from_whole : 0, whole = into_whole + from_whole;
            into[i].share = of < 0 ? into[i].share + from[i].share : whole > 0 ? sum / whole : 0;
        }
        else if (longest && column->kind == COLUMN_DURATION) {
            longer = from[i].number > into[i].number;
            if (longer) into[i] = from[i];
        }
        else if (column->kind == COLUMN_COUNT || column->kind == COLUMN_DURATION) into[i].number += from[i].number;
        else if (column->kind == COLUMN_NUMBER && !id) into[i] = (struct cell){0}; /* a tid */
        else if (longer && strcmp(column->id, "thread") != 0) into[i] = from[i]; /* when, and in what */
    }
}

/* Joins the rows of each pool. Returns false if there is none. */
static bool
join_pools(struct document *document, struct table *table, int thread, int pid, int of)
{
    uint32_t kept = 0;
    uint32_t *counts = calloc(table->row_count + 1, sizeof *counts);
    bool any = false;
    if (counts == NULL) return false;
    for (uint32_t row = 0; row < table->row_count; row++) {
        const struct cell *cells = row_at(table, row);
        uint32_t pool = 0;
        while (pool < kept && (row_at(table, pool)[pid].number != cells[pid].number ||
                               !same_pool_p(row_at(table, pool)[thread].text, cells[thread].text))) pool++;
        if (pool == kept) memmove(row_at(table, kept++), cells, table->column_count * sizeof *cells);
        else join(table, row_at(table, pool), cells, of), any = true;
        counts[pool]++;
    }
    table->row_count = kept;
    for (uint32_t row = 0; row < kept; row++) {
        struct cell *name = &row_at(table, row)[thread];
        if (counts[row] > 1) *name = cell_text(pool_name(document, name->text, counts[row]));
    }
    free(counts);
    return any;
}

/* By a column, the largest number first; in place, and stable. */
static void
sort_rows(struct table *table, int by)
{
    size_t bytes = table->column_count * sizeof *table->cells;
    struct cell *moved = malloc(bytes);
    if (moved == NULL) return;
    for (uint32_t row = 1; row < table->row_count; row++) {
        uint32_t to = row;
        while (to > 0 && row_at(table, to - 1)[by].number < row_at(table, row)[by].number) to--;
        memcpy(moved, row_at(table, row), bytes);
        memmove(row_at(table, to + 1), row_at(table, to), (row - to) * bytes);
        memcpy(row_at(table, to), moved, bytes);
    }
    free(moved);
}

static void
cut_rows(struct table *table, uint64_t top, int of)
{
    if (table->row_count <= top) return;
    struct cell *rest = row_at(table, (uint32_t)top);
    for (uint32_t row = (uint32_t)top + 1; row < table->row_count; row++) join(table, rest, row_at(table, row), of);
    for (unsigned i = 0; i < table->column_count; i++) {
        enum column_kind kind = table->columns[i].kind;
        bool sum = kind == COLUMN_COUNT || kind == COLUMN_DURATION || kind == COLUMN_SHARE;
        if (!sum || strncmp(table->columns[i].id, "longest", 7) == 0) rest[i] = (struct cell){0};
    }
    table->more_rows = table->row_count - top;
    table->row_count = (uint32_t)top + 1;
}

static void
drop_last(struct document *document)
{
    struct table *table = document->tables[--document->table_count];
    free(table->cells);
    free(table->columns);
    free(table->scales);
    free(table);
}

void
view_thread_pools(const struct view *view, void (*add)(const struct view *view), const char *by, const char *share_of)
{
    struct document *document = view->document;
    uint32_t at = document->table_count, lines = document->line_count;
    add(view);
    bool many = view->report->threads.count > THREADS_COMPARED;
    if (many || view->report->each_thread || document->table_count != at + 1 || document->tables[at]->data) return;
    struct view all = *view;
    all.top = UINT64_MAX;
    uint32_t head = document->line_count;
    add(&all);
    document->line_count = head > lines ? head : lines; /* its lines of the head are there */
    struct table *people = document->tables[document->table_count - 1];
    int thread = column_of(people, "thread"), pid = column_of(people, "pid"), of = column_of(people, share_of);
    if (thread < 0 || pid < 0 || !join_pools(document, people, thread, pid, of)) {
        drop_last(document);
        return;
    }
    sort_rows(people, column_of(people, by));
    cut_rows(people, view->top, of);
    document->tables[at]->data = people->people = true;
}
