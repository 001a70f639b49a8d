/* report_gc.c - the tables of a report about garbage collections. */
#include "render/report_view.h"

static int
compare_reasons(const void *left, const void *right, void *context)
{
    const struct gc_reason *a = left, *b = right;
    const struct pool *pool = context;
    if (a->pauses.total_ns != b->pauses.total_ns) return a->pauses.total_ns > b->pauses.total_ns ? -1 : 1;
    const uint32_t a_key[] = {a->kind, a->reason, a->major_by}, b_key[] = {b->kind, b->reason, b->major_by};
    for (unsigned i = 0; i < GC_REASON_KEYS; i++) {
        int order = fxt_string_compare(pool_string(pool, a_key[i]), pool_string(pool, b_key[i]));
        if (order != 0) return order;
    }
    return 0;
}

static void
add_reasons(const struct view *view)
{
    const struct column columns[] = {
        {"collections", "collections", COLUMN_COUNT},
        {"pauses", "pauses", COLUMN_COUNT},
        {"total_ns", "total", COLUMN_DURATION},
        {"share", "share", COLUMN_SHARE},
        {"median_ns", "median", COLUMN_DURATION},
        {"longest_ns", "longest", COLUMN_DURATION},
        {"kind", "kind", COLUMN_TEXT},
        {"major_by", "major by", COLUMN_TEXT},
        {"reason", "reason", COLUMN_TEXT},
    };
    enum { MAJOR_BY = 7 };
    struct row_table *reasons = &view->report->gc.reasons;
    row_table_sort(reasons, compare_reasons, view->report->pool);
    uint64_t collections[2] = {0}, pauses = 0, total_ns = 0;
    uint32_t count = 0;
    bool major_by = false;
    for (uint32_t i = 0; i < reasons->count; i++) {
        const struct gc_reason *reason = row_table_at(reasons, i);
        if (reason->pauses.count == 0) continue; /* of other threads, or of another time */
        count++;
        collections[reason->kind == STRING_GC_MAJOR] += reason->collections;
        pauses += reason->pauses.count;
        total_ns += reason->pauses.total_ns;
        major_by |= reason->major_by != STRING_NONE;
    }
    char minor[NUMBER_TEXT], major[NUMBER_TEXT], all[NUMBER_TEXT], time[NUMBER_TEXT];
    struct fxt_string title = document_text(
        view->document, "Garbage collections: %s minor, %s major; %s pause%s, %s in all",
        with_commas(minor, collections[0]), with_commas(major, collections[1]), with_commas(all, pauses),
        pauses == 1 ? "" : "s", duration_text(time, total_ns));
    struct column shown_columns[sizeof columns / sizeof *columns];
    for (unsigned i = 0; i < sizeof columns / sizeof *columns; i++) shown_columns[i] = columns[i];
    if (!major_by) shown_columns[MAJOR_BY].title = NULL;
    struct table *table = document_table(view->document, "gc", title, COLUMNS(shown_columns));
    table->data = count == 0;
    uint64_t rest[3] = {0};
    uint32_t shown = 0;
    for (uint32_t i = 0; i < reasons->count; i++) {
        const struct gc_reason *reason = row_table_at(reasons, i);
        if (reason->pauses.count == 0) continue;
        if (shown == view->top) {
            rest[0] += reason->collections, rest[1] += reason->pauses.count, rest[2] += reason->pauses.total_ns;
            continue;
        }
        shown++;
        struct cell *cells = table_row(table);
        cells[0] = cell_number(reason->collections);
        cells[1] = cell_number(reason->pauses.count);
        cells[2] = cell_number(reason->pauses.total_ns);
        cells[3] = cell_share(reason->pauses.total_ns, total_ns);
        cells[4] = cell_number(durations_quantile(&reason->pauses, 0.5));
        cells[5] = cell_number(reason->pauses.longest_ns);
        cells[6] = cell_text(view_name(view, reason->kind));
        if (reason->major_by != STRING_NONE) cells[MAJOR_BY] = cell_text(view_name(view, reason->major_by));
        cells[8] = cell_text(view_name(view, reason->reason));
    }
    if (count <= shown) return;
    table->more_rows = count - shown;
    struct cell *cells = table_row(table);
    for (unsigned i = 0; i < 3; i++) cells[i] = cell_number(rest[i]);
    cells[3] = cell_share(rest[2], total_ns);
}

static int
compare_phases(const void *left, const void *right, void *context)
{
    const struct gc_phase *a = left, *b = right;
    const struct pool *pool = context;
    if (a->durations.total_ns != b->durations.total_ns) return a->durations.total_ns > b->durations.total_ns ? -1 : 1;
    return fxt_string_compare(pool_string(pool, a->name), pool_string(pool, b->name));
}

static void
add_phases(const struct view *view)
{
    static const struct column columns[] = {
        {"count", "count", COLUMN_COUNT},
        {"total_ns", "total", COLUMN_DURATION},
        {"median_ns", "median", COLUMN_DURATION},
        {"longest_ns", "longest", COLUMN_DURATION},
        {"freed_slots", "freed slots", COLUMN_COUNT},
        {"name", "phase", COLUMN_TEXT},
    };
    struct row_table *phases = &view->report->gc.phases;
    row_table_sort(phases, compare_phases, view->report->pool);
    struct table *table =
        document_table(view->document, "gc_phases", text_of("Garbage collections by phase"), COLUMNS(columns));
    table->data = phases->count == 0;
    uint64_t rest[3] = {0};
    for (uint32_t i = 0; i < phases->count; i++) {
        const struct gc_phase *phase = row_table_at(phases, i);
        const struct durations *durations = &phase->durations;
        if (i >= view->top) {
            rest[0] += durations->count, rest[1] += durations->total_ns, rest[2] += phase->freed_slots;
            continue;
        }
        struct cell *cells = table_row(table);
        cells[0] = cell_number(durations->count);
        cells[1] = cell_number(durations->total_ns);
        cells[2] = cell_number(durations_quantile(durations, 0.5));
        cells[3] = cell_number(durations->longest_ns);
        if (phase->freed_slots > 0) cells[4] = cell_number(phase->freed_slots);
        cells[5] = cell_text(view_name(view, phase->name));
    }
    if (phases->count <= view->top) return;
    table->more_rows = phases->count - view->top;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest[0]);
    cells[1] = cell_number(rest[1]);
    cells[4] = cell_number(rest[2]);
}

void
view_add_gc(const struct view *view)
{
    const struct gc_pauses *gc = &view->report->gc;
    if (gc->processes.count + gc->phases.count == 0) return; /* not recorded */
    add_reasons(view);
    add_phases(view);
}
