/* allocation_tables.c - the tables of a report about allocations: what was allocated, and what survived. */
#include <math.h>

#include "topics/report_view.h"

/* How a table groups samples. */
struct grouping {
    unsigned by;
    const char *allocations_id, *survivors_id, *live_id;
    const char *title;  /* after "Allocations" and "Survivors" */
    const char *column; /* its id and title */
};

static const struct grouping groupings[] = {
    {ALLOCATIONS_BY_CLASS, "allocations_by_class", "survivors_by_class", "live_by_class", "by class", "class"},
    {ALLOCATIONS_BY_FRAME, "allocations_by_method", "survivors_by_method", "live_by_method", "by method and line",
     "method"},
};
enum { GROUPINGS = sizeof groupings / sizeof *groupings };

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

enum { ESTIMATED = 1, EXACT = 2 };
/* For the order of rows. */
#define NAME_COLUMNS                                                                                                   \
    {"class_name", NULL, COLUMN_TEXT, NAMED(allocation_row, class_name), .helper = true},                              \
    {"frame", NULL, COLUMN_TEXT, NAMED(allocation_row, frame), .helper = true}

enum { OBJECTS, MARGIN, SURVIVORS_MARGIN, LIVE_MARGIN, NAME };

/* What the tables of a grouping are made of. */
struct allocation_view {
    const struct view *view;
    const struct grouping *grouping;
    struct allocation_row sum;
    unsigned given;
};

/* The margin of a share where it is an estimate. */
static struct cell
margin_cell(const struct allocation_count *count, const struct allocation_count *sum)
{
    struct cell cell = cell_share(count->bytes, sum->bytes);
    if (cell.present) cell.share = allocation_margin(count, sum);
    return cell;
}

static struct cell
allocation_cell(const struct table_def *def, unsigned own, const void *from)
{
    const struct allocation_view *allocations = def->context;
    const struct allocation_row *row = from, *sum = &allocations->sum;
    switch (own) {
      case OBJECTS: return cell_number((uint64_t)(row->objects + 0.5));
      case MARGIN: return margin_cell(&row->all, &sum->all);
      case SURVIVORS_MARGIN: return margin_cell(&row->survivors, &sum->survivors);
      case LIVE_MARGIN: return cell_number(allocation_live_margin(&row->live));
      default: return cell_text(name_of(def->view, allocations->grouping, row));
    }
}

static void
merge(void *rest, const void *row)
{
    allocation_row_add(rest, row);
}

static void
add_allocated(const struct allocation_view *allocations, struct row_table *rows)
{
    const char *name = allocations->grouping->column;
    const struct table_column columns[] = {
        {"bytes", "bytes", COLUMN_COUNT, SUMMED(allocation_row, all.bytes)},
        {"share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("bytes")},
        {"margin", "±", COLUMN_SHARE, OWN_SUM(MARGIN), .people_if = ESTIMATED, .value_if = ESTIMATED},
        {"objects", "objects", COLUMN_COUNT, OWN_SUM(OBJECTS)},
        {"samples", "samples", COLUMN_COUNT, SUMMED(allocation_row, all.samples), .people_if = ESTIMATED},
        {"malloc_bytes", "malloc", COLUMN_COUNT, SUMMED(allocation_row, malloc_bytes), .unless_empty = true},
        {name, name, COLUMN_TEXT, OWN_CELL(NAME)}, NAME_COLUMNS,
    };
    const struct allocation_row *sum = &allocations->sum;
    for (uint32_t i = 0; i < rows->count; i++) { /* so that the last row is the sum of what is shown */
        struct allocation_row *row = row_table_at(rows, i);
        row->objects = round(row->objects);
    }
    view_table(&(struct table_def){
        .view = allocations->view, .id = allocations->grouping->allocations_id, .rows = rows, COLUMNS_OF(columns),
        .title = title_of(allocations->view, "Allocations", allocations->grouping, sum, &sum->all),
        .sort = {"bytes", "class_name", "frame"}, .unless_zero = "samples", .cell = allocation_cell, .merge = merge,
        .context = allocations, .whole = sum->all.bytes, .given = allocations->given});
}

static void
add_survivors(const struct allocation_view *allocations, struct row_table *rows)
{
    const char *name = allocations->grouping->column;
    const struct table_column columns[] = {
        {"bytes", "bytes", COLUMN_COUNT, SUMMED(allocation_row, survivors.bytes)},
        {"share", NULL, COLUMN_SHARE, SHARE_OF_WHOLE("bytes")}, /* people need the space for names */
        {"margin", NULL, COLUMN_SHARE, OWN_SUM(SURVIVORS_MARGIN), .value_if = ESTIMATED},
        {"samples", allocations->given == EXACT ? "objects" : "samples", COLUMN_COUNT,
         SUMMED(allocation_row, survivors.samples)},
        {"alive_bytes", "alive", COLUMN_COUNT, SUMMED(allocation_row, alive.bytes)},
        {"alive_samples", NULL, COLUMN_COUNT, SUMMED(allocation_row, alive.samples)},
        {"survived_1_bytes", "1 GC", COLUMN_COUNT, SUMMED(allocation_row, once.bytes)},
        {"survived_1_samples", NULL, COLUMN_COUNT, SUMMED(allocation_row, once.samples)},
        {"survived_3_bytes", "3 GCs", COLUMN_COUNT, SUMMED(allocation_row, three_times.bytes)},
        {"survived_3_samples", NULL, COLUMN_COUNT, SUMMED(allocation_row, three_times.samples)},
        {"median_survived", "median", COLUMN_NUMBER, QUANTILE(50, allocation_row, survived)},
        {name, name, COLUMN_TEXT, OWN_CELL(NAME)}, NAME_COLUMNS,
    };
    const struct allocation_row *sum = &allocations->sum;
    view_table(&(struct table_def){
        .view = allocations->view, .id = allocations->grouping->survivors_id, .rows = rows, COLUMNS_OF(columns),
        .title = title_of(allocations->view, "Survivors (alive at the end, or after a garbage collection)",
                          allocations->grouping, sum, &sum->survivors),
        .sort = {"bytes", "class_name", "frame"}, .unless_zero = "samples", .cell = allocation_cell, .merge = merge,
        .context = allocations, .whole = sum->survivors.bytes, .given = allocations->given});
}

/* "Alive at the end, by class: about 104.2 MB ± 3.1 MB, of it 100.0 MB by malloc, in 210 samples" */
static struct fxt_string
live_title(const struct allocation_view *allocations)
{
    char bytes[NUMBER_TEXT], margin[NUMBER_TEXT], held[NUMBER_TEXT], samples[NUMBER_TEXT];
    const struct allocation_row *sum = &allocations->sum;
    const struct allocation_live *live = &sum->live;
    bool exact = live->variance == 0, read = live->unread < live->samples;
    bytes_text(bytes, sum->live_bytes);
    bytes_text(margin, allocation_live_margin(live));
    bytes_text(held, sum->live_malloc_bytes);
    return document_text(allocations->view->document, "Alive at the end, %s: %s%s%s%s, %s%s, in %s %s%s",
                         allocations->grouping->title, exact ? "" : "about ", bytes, exact ? "" : " ± ",
                         exact ? "" : margin, read ? "of it by malloc " : "without what they hold by malloc",
                         read ? held : "", with_commas(samples, live->samples), exact ? "object" : "sample",
                         live->samples == 1 ? "" : "s");
}

static void
add_live(const struct allocation_view *allocations, struct row_table *rows)
{
    const char *name = allocations->grouping->column;
    const struct table_column columns[] = {
        {"bytes", "bytes", COLUMN_COUNT, SUMMED(allocation_row, live_bytes)},
        {"margin", "±", COLUMN_COUNT, OWN_CELL(LIVE_MARGIN), .unless_empty = true},
        {"malloc_bytes", "malloc", COLUMN_COUNT, SUMMED(allocation_row, live_malloc_bytes), .unless_empty = true},
        {"malloc_unread", NULL, COLUMN_COUNT, SUMMED(allocation_row, live.unread)},
        {"objects", "objects", COLUMN_COUNT, SUMMED(allocation_row, live_objects)},
        {"samples", NULL, COLUMN_COUNT, SUMMED(allocation_row, live.samples)},
        {"age_ns", "age", COLUMN_DURATION, QUANTILE(50, allocation_row, ages)},
        {"oldest_ns", NULL, COLUMN_DURATION, QUANTILE(100, allocation_row, ages)},
        {name, name, COLUMN_TEXT, OWN_CELL(NAME)}, NAME_COLUMNS,
    };
    view_table(&(struct table_def){
        .view = allocations->view, .id = allocations->grouping->live_id, .rows = rows, COLUMNS_OF(columns),
        .title = live_title(allocations), .sort = {"bytes", "class_name", "frame"}, .unless_zero = "samples",
        .cell = allocation_cell, .merge = merge, .context = allocations, .given = allocations->given});
}

static void
add_table(const struct view *view, const struct grouping *grouping,
          void (*add)(const struct allocation_view *allocations, struct row_table *rows))
{
    struct allocation_view allocations = {.view = view, .grouping = grouping};
    struct row_table rows = allocations_group(&view->report->allocations, grouping->by, &allocations.sum);
    allocations.given = allocations_exact(&allocations.sum) ? EXACT : ESTIMATED;
    add(&allocations, &rows);
    allocation_rows_free(&rows);
}

/* For programs: the numbers in the titles and in the head. */
static void
add_totals(const struct view *view)
{
    static const struct table_column columns[] = {
        {"bytes", NULL, COLUMN_COUNT, MEMBER(allocation_row, all.bytes)},
        {"objects", NULL, COLUMN_COUNT, OWN_CELL(OBJECTS)},
        {"samples", NULL, COLUMN_COUNT, MEMBER(allocation_row, all.samples)},
        {"freed_bytes", NULL, COLUMN_COUNT, MEMBER(allocation_row, freed.bytes)},
        {"freed_samples", NULL, COLUMN_COUNT, MEMBER(allocation_row, freed.samples)},
        {"alive_bytes", NULL, COLUMN_COUNT, MEMBER(allocation_row, alive.bytes)},
        {"alive_samples", NULL, COLUMN_COUNT, MEMBER(allocation_row, alive.samples)},
        {"buffer_bytes", NULL, COLUMN_COUNT, MEMBER(allocation_row, buffers.bytes)},
        {"buffer_samples", NULL, COLUMN_COUNT, MEMBER(allocation_row, buffers.samples)},
        {"not_followed_bytes", NULL, COLUMN_COUNT, MEMBER(allocation_row, not_followed.bytes)},
        {"not_followed_samples", NULL, COLUMN_COUNT, MEMBER(allocation_row, not_followed.samples)},
        {"malloc_bytes", NULL, COLUMN_COUNT, MEMBER(allocation_row, malloc_bytes)},
        {"live_bytes", NULL, COLUMN_COUNT, MEMBER(allocation_row, live_bytes)},
        {"live_margin", NULL, COLUMN_COUNT, OWN_CELL(LIVE_MARGIN)},
        {"live_malloc_bytes", NULL, COLUMN_COUNT, MEMBER(allocation_row, live_malloc_bytes)},
        {"live_samples", NULL, COLUMN_COUNT, MEMBER(allocation_row, live.samples)},
    };
    struct allocation_view allocations = {.view = view};
    struct row_table rows = allocations_group(&view->report->allocations, 0, &allocations.sum);
    allocation_rows_free(&rows);
    struct row_table sum = ROWS_OF(&allocations.sum, 1);
    view_table(&(struct table_def){.view = view, .id = "allocations", .title = text_of("Allocations"), .rows = &sum,
                                   COLUMNS_OF(columns), .cell = allocation_cell, .context = &allocations,
                                   .data = true});
}

void
view_add_allocations(const struct view *view)
{
    if (view->report->allocations.sites.count == 0) return; /* not recorded */
    add_totals(view);
    for (unsigned i = 0; i < GROUPINGS; i++) add_table(view, &groupings[i], add_allocated);
    for (unsigned i = 0; i < GROUPINGS; i++) add_table(view, &groupings[i], add_survivors);
    for (unsigned i = 0; i < GROUPINGS; i++) add_table(view, &groupings[i], add_live);
}
