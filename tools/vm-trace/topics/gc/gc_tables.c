/* gc_tables.c - the tables of a report about garbage collections. */
#include "topics/report_view.h"

static void
add_reasons(const struct view *view)
{
    static const struct table_column columns[] = {
        {"collections", "collections", COLUMN_COUNT, SUMMED(gc_reason, collections)},
        {"pauses", "pauses", COLUMN_COUNT, SUMMED(gc_reason, pauses.count)},
        {"total_ns", "total", COLUMN_DURATION, SUMMED(gc_reason, pauses.total_ns)},
        {"share", "share", COLUMN_SHARE, SHARE_OF("total_ns")},
        {"median_ns", "median", COLUMN_DURATION, QUANTILE(50, gc_reason, pauses)},
        {"longest_ns", "longest", COLUMN_DURATION, MEMBER(gc_reason, pauses.longest_ns)},
        {"kind", "kind", COLUMN_TEXT, NAMED(gc_reason, kind)},
        {"major_by", "major by", COLUMN_TEXT, NAMED_IF_ANY(gc_reason, major_by), .unless_empty = true},
        {"reason", "reason", COLUMN_TEXT, NAMED(gc_reason, reason)},
    };
    struct table_def def = {.view = view, .id = "gc", .rows = &view->report->gc.reasons, COLUMNS_OF(columns),
                            .sort = {"total_ns", "kind", "reason", "major_by"},
                            .unless_zero = "pauses"}; /* others are of other threads, or of another time */
    uint64_t collections[2] = {0}, pauses = view_table_sum(&def, "pauses");
    for (uint32_t i = 0; i < def.rows->count; i++) {
        const struct gc_reason *reason = row_table_at(def.rows, i);
        if (reason->pauses.count > 0) collections[reason->kind == STRING_GC_MAJOR] += reason->collections;
    }
    char minor[NUMBER_TEXT], major[NUMBER_TEXT], all[NUMBER_TEXT], time[NUMBER_TEXT];
    def.title = document_text(view->document, "Garbage collections: %s minor, %s major; %s pause%s, %s in all",
                              with_commas(minor, collections[0]), with_commas(major, collections[1]),
                              with_commas(all, pauses), pauses == 1 ? "" : "s",
                              duration_text(time, view_table_sum(&def, "total_ns")));
    view_table(&def);
}

static void
add_phases(const struct view *view)
{
    static const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, SUMMED(gc_phase, durations.count)},
        {"total_ns", "total", COLUMN_DURATION, SUMMED(gc_phase, durations.total_ns)},
        {"median_ns", "median", COLUMN_DURATION, QUANTILE(50, gc_phase, durations)},
        {"longest_ns", "longest", COLUMN_DURATION, MEMBER(gc_phase, durations.longest_ns)},
        {"freed_slots", "freed slots", COLUMN_COUNT, SUMMED(gc_phase, freed_slots), .blank_zero = true},
        {"name", "phase", COLUMN_TEXT, NAMED(gc_phase, name)},
    };
    view_table(&(struct table_def){.view = view, .id = "gc_phases", .title = text_of("Garbage collections by phase"),
                                   .rows = &view->report->gc.phases, COLUMNS_OF(columns),
                                   .sort = {"total_ns", "name"}});
}

void
view_add_gc(const struct view *view)
{
    const struct gc_pauses *gc = &view->report->gc;
    if (gc->processes.count + gc->phases.count == 0) return; /* not recorded */
    add_reasons(view);
    add_phases(view);
}

void
gc_tables(const struct view *view)
{
    view_add_gc(view);
    view_add_allocations(view);
    if (view->report->gc.reasons.count == 0)
        document_line(view->document, "gc",
                      text_of("no collections: --vm-trace=gc,allocations records them, and what allocates"));
}
