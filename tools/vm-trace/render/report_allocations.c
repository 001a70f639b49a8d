/* report_allocations.c - the tables of a report about allocations: what was allocated, and what survived. */
#include <math.h>

#include "render/report_view.h"

/* How a table groups samples. */
struct grouping {
    unsigned by;
    const char *allocations_id, *survivors_id;
    const char *title;  /* after "Allocations" and "Survivors" */
    const char *column; /* its id and title */
};

static const struct grouping groupings[] = {
    {ALLOCATIONS_BY_CLASS, "allocations_by_class", "survivors_by_class", "by class", "class"},
    {ALLOCATIONS_BY_FRAME, "allocations_by_method", "survivors_by_method", "by method and line", "method"},
};
enum { GROUPINGS = sizeof groupings / sizeof *groupings };

static int
compare_names(const struct allocation_row *a, const struct allocation_row *b, const struct pool *pool)
{
    int order = fxt_string_compare(pool_string(pool, a->class_name), pool_string(pool, b->class_name));
    return order != 0 ? order : fxt_string_compare(pool_string(pool, a->frame), pool_string(pool, b->frame));
}

static int
compare_allocated(const void *left, const void *right, void *pool)
{
    const struct allocation_row *a = left, *b = right;
    if (a->all.bytes != b->all.bytes) return a->all.bytes > b->all.bytes ? -1 : 1;
    return compare_names(a, b, pool);
}

static int
compare_survivors(const void *left, const void *right, void *pool)
{
    const struct allocation_row *a = left, *b = right;
    if (a->survivors.bytes != b->survivors.bytes) return a->survivors.bytes > b->survivors.bytes ? -1 : 1;
    return compare_names(a, b, pool);
}

static struct fxt_string
name_of(const struct view *view, const struct grouping *grouping, const struct allocation_row *row)
{
    if (grouping->by == ALLOCATIONS_BY_CLASS) return view_name(view, row->class_name);
    return row->frame == STRING_NONE ? text_of("(no method)") : view_name(view, row->frame);
}

/* "812.3 MB", or "about" that many. */
static struct fxt_string
title_of(const struct view *view, const char *what, const struct grouping *grouping, const struct allocation_row *sum,
         const struct allocation_count *count)
{
    char bytes[NUMBER_TEXT], samples[NUMBER_TEXT];
    bool exact = allocations_exact(sum);
    return document_text(view->document, "%s %s: %s%s in %s %s%s", what, grouping->title, exact ? "" : "about ",
                         bytes_text(bytes, count->bytes), with_commas(samples, count->samples),
                         exact ? "object" : "sample", count->samples == 1 ? "" : "s");
}

/* The share of `count` in `sum`, and its margin where it is an estimate. */
static void
put_share(struct cell *share, struct cell *margin, const struct allocation_count *count,
          const struct allocation_count *sum, bool exact)
{
    *share = cell_share(count->bytes, sum->bytes);
    if (exact || !share->present) return;
    *margin = (struct cell){.present = true, .share = allocation_margin(share->share, sum->samples)};
}

/* --- allocations ------------------------------------------------------------------------------------- */

enum { BYTES, SHARE, MARGIN, OBJECTS, SAMPLES, NAME, CELLS };

static void
put_counts(struct cell *cells, const struct allocation_row *row, const struct allocation_row *sum)
{
    cells[BYTES] = cell_number(row->all.bytes);
    put_share(&cells[SHARE], &cells[MARGIN], &row->all, &sum->all, allocations_exact(sum));
    cells[OBJECTS] = cell_number((uint64_t)(row->objects + 0.5));
    cells[SAMPLES] = cell_number(row->all.samples);
}

static void
add_allocated(const struct view *view, const struct grouping *grouping)
{
    struct allocation_row sum;
    struct row_table rows = allocations_group(&view->report->allocations, grouping->by, &sum);
    bool exact = allocations_exact(&sum);
    const struct column columns[CELLS] = {
        [BYTES] = {"bytes", "bytes", COLUMN_COUNT},
        [SHARE] = {"share", "share", COLUMN_SHARE},
        [MARGIN] = {"margin", exact ? NULL : "±", COLUMN_SHARE},
        [OBJECTS] = {"objects", "objects", COLUMN_COUNT},
        [SAMPLES] = {"samples", exact ? NULL : "samples", COLUMN_COUNT},
        [NAME] = {grouping->column, grouping->column, COLUMN_TEXT},
    };
    struct table *table = document_table(view->document, grouping->allocations_id,
                                         title_of(view, "Allocations", grouping, &sum, &sum.all), COLUMNS(columns));
    table->data = rows.count == 0;
    row_table_sort(&rows, compare_allocated, view->report->pool);
    struct allocation_row rest = {0};
    for (uint32_t i = 0; i < rows.count; i++) {
        struct allocation_row *row = row_table_at(&rows, i);
        row->objects = round(row->objects); /* so that the last row is the sum of what is shown */
        if (i >= view->top) {
            allocation_row_add(&rest, row);
            continue;
        }
        struct cell *cells = table_row(table);
        put_counts(cells, row, &sum);
        cells[NAME] = cell_text(name_of(view, grouping, row));
    }
    if (rows.count > view->top) {
        table->more_rows = rows.count - view->top;
        put_counts(table_row(table), &rest, &sum);
    }
    allocation_rows_free(&rows);
}

/* --- survivors --------------------------------------------------------------------------------------- */

enum {
    S_BYTES, S_SHARE, S_MARGIN, S_SAMPLES, S_ALIVE, S_ALIVE_SAMPLES, S_ONCE, S_ONCE_SAMPLES, S_THREE, S_THREE_SAMPLES,
    S_MEDIAN, S_NAME, S_CELLS
};

static void
put_survivors(struct cell *cells, const struct allocation_row *row, const struct allocation_row *sum)
{
    cells[S_BYTES] = cell_number(row->survivors.bytes);
    put_share(&cells[S_SHARE], &cells[S_MARGIN], &row->survivors, &sum->survivors, allocations_exact(sum));
    cells[S_SAMPLES] = cell_number(row->survivors.samples);
    cells[S_ALIVE] = cell_number(row->alive.bytes);
    cells[S_ALIVE_SAMPLES] = cell_number(row->alive.samples);
    cells[S_ONCE] = cell_number(row->once.bytes);
    cells[S_ONCE_SAMPLES] = cell_number(row->once.samples);
    cells[S_THREE] = cell_number(row->three_times.bytes);
    cells[S_THREE_SAMPLES] = cell_number(row->three_times.samples);
}

static void
add_survivors(const struct view *view, const struct grouping *grouping)
{
    struct allocation_row sum;
    struct row_table rows = allocations_group(&view->report->allocations, grouping->by, &sum);
    bool exact = allocations_exact(&sum);
    const struct column columns[S_CELLS] = {
        [S_BYTES] = {"bytes", "bytes", COLUMN_COUNT},
        [S_SHARE] = {"share", NULL, COLUMN_SHARE}, /* people need the space for names */
        [S_MARGIN] = {"margin", NULL, COLUMN_SHARE},
        [S_SAMPLES] = {"samples", exact ? "objects" : "samples", COLUMN_COUNT},
        [S_ALIVE] = {"alive_bytes", "alive", COLUMN_COUNT},
        [S_ALIVE_SAMPLES] = {"alive_samples", NULL, COLUMN_COUNT},
        [S_ONCE] = {"survived_1_bytes", "1 GC", COLUMN_COUNT},
        [S_ONCE_SAMPLES] = {"survived_1_samples", NULL, COLUMN_COUNT},
        [S_THREE] = {"survived_3_bytes", "3 GCs", COLUMN_COUNT},
        [S_THREE_SAMPLES] = {"survived_3_samples", NULL, COLUMN_COUNT},
        [S_MEDIAN] = {"median_survived", "median", COLUMN_NUMBER},
        [S_NAME] = {grouping->column, grouping->column, COLUMN_TEXT},
    };
    struct table *table =
        document_table(view->document, grouping->survivors_id,
                       title_of(view, "Survivors (alive at the end, or after a garbage collection)", grouping, &sum,
                                &sum.survivors),
                       COLUMNS(columns));
    table->data = sum.survivors.samples == 0;
    row_table_sort(&rows, compare_survivors, view->report->pool);
    struct allocation_row rest = {0};
    uint32_t shown = 0;
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct allocation_row *row = row_table_at(&rows, i);
        if (row->survivors.samples == 0) continue;
        if (shown == view->top) {
            table->more_rows++;
            allocation_row_add(&rest, row);
            continue;
        }
        shown++;
        struct cell *cells = table_row(table);
        put_survivors(cells, row, &sum);
        cells[S_MEDIAN] = cell_number(durations_quantile(&row->survived, 0.5));
        cells[S_NAME] = cell_text(name_of(view, grouping, row));
    }
    if (table->more_rows > 0) put_survivors(table_row(table), &rest, &sum);
    allocation_rows_free(&rows);
}

/* For programs: the numbers in the titles and in the head. */
static void
add_totals(const struct view *view)
{
    static const struct column columns[] = {
        {"bytes", NULL, COLUMN_COUNT},       {"objects", NULL, COLUMN_COUNT},       {"samples", NULL, COLUMN_COUNT},
        {"freed_bytes", NULL, COLUMN_COUNT}, {"freed_samples", NULL, COLUMN_COUNT}, {"alive_bytes", NULL, COLUMN_COUNT},
        {"alive_samples", NULL, COLUMN_COUNT},
    };
    struct allocation_row sum;
    struct row_table rows = allocations_group(&view->report->allocations, 0, &sum);
    allocation_rows_free(&rows);
    struct table *table = document_table(view->document, "allocations", text_of("Allocations"), COLUMNS(columns));
    table->data = true;
    const uint64_t numbers[] = {sum.all.bytes,     (uint64_t)(sum.objects + 0.5), sum.all.samples,  sum.freed.bytes,
                                sum.freed.samples, sum.alive.bytes,               sum.alive.samples};
    struct cell *cells = table_row(table);
    for (unsigned i = 0; i < table->column_count; i++) cells[i] = cell_number(numbers[i]);
}

void
view_add_allocations(const struct view *view)
{
    if (view->report->allocations.sites.count == 0) return; /* not recorded */
    add_totals(view);
    for (unsigned i = 0; i < GROUPINGS; i++) add_allocated(view, &groupings[i]);
    for (unsigned i = 0; i < GROUPINGS; i++) add_survivors(view, &groupings[i]);
}
