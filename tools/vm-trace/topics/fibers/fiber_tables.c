/* fiber_tables.c - the tables of a report about fibers: what they waited for, how long they kept their threads, and
 * both by fiber. */
#include <inttypes.h>

#include "topics/report_view.h"

enum { HAS_READY = 1 }; /* a fiber was unblocked before it ran */

static unsigned
given(const struct view *view)
{
    const struct row_table *waits = &view->report->fibers.waits;
    for (uint32_t i = 0; i < waits->count; i++) {
        if (((const struct fiber_wait *)row_table_at(waits, i))->ready > 0) return HAS_READY;
    }
    return 0;
}

static void
add_waits(const struct view *view)
{
    static const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, SUMMED(fiber_wait, durations.count)},
        {"total_ns", "total", COLUMN_DURATION, SUMMED(fiber_wait, durations.total_ns)},
        {"median_ns", "median", COLUMN_DURATION, QUANTILE(50, fiber_wait, durations)},
        {"p95_ns", "95 %", COLUMN_DURATION, QUANTILE(95, fiber_wait, durations)},
        {"longest_ns", "longest", COLUMN_DURATION, MEMBER(fiber_wait, durations.longest_ns)},
        {"ready", NULL, COLUMN_COUNT, SUMMED(fiber_wait, ready)},
        {"ready_ns", "ready", COLUMN_DURATION, SUMMED(fiber_wait, ready_ns), .people_if = HAS_READY},
        {"ready_longest_ns", "longest", COLUMN_DURATION, MEMBER(fiber_wait, ready_max_ns), .people_if = HAS_READY},
        {"method", "waits in", COLUMN_TEXT, NAMED(fiber_wait, name)},
        {"scheduler", "of the scheduler", COLUMN_TEXT, NAMED_IF_ANY(fiber_wait, scheduler), .unless_empty = true},
        {"location", "from", COLUMN_TEXT, NAMED(fiber_wait, frame)},
    };
    struct fibers *fibers = &view->report->fibers;
    struct fxt_string title = text_of("What fibers waited for (ready: unblocked, but not running yet)");
    view_table(&(struct table_def){.view = view, .id = "fiber_waits", .given = given(view),
                                   .title = view_title(view, title, fibers->uncounted, "places"),
                                   .rows = &fibers->waits, COLUMNS_OF(columns), .sort = {"total_ns", "method", "location"}});
}

static void
add_runs(const struct view *view)
{
    static const struct table_column columns[] = {
        {"longest_ns", "longest", COLUMN_DURATION, MEMBER(fiber_run, durations.longest_ns)},
        {"p95_ns", "95 %", COLUMN_DURATION, QUANTILE(95, fiber_run, durations)},
        {"median_ns", "median", COLUMN_DURATION, QUANTILE(50, fiber_run, durations)},
        {"count", "count", COLUMN_COUNT, SUMMED(fiber_run, durations.count)},
        {"total_ns", "total", COLUMN_DURATION, SUMMED(fiber_run, durations.total_ns)},
        {"start_ns", "start", COLUMN_TIME, SINCE_START(fiber_run, longest_at_ns)},
        {"tid", NULL, COLUMN_NUMBER, AT(SOURCE_TID, fiber_run, longest_in)},
        THREAD_COLUMN(fiber_run, longest_in),
        {"method", "until it waited in", COLUMN_TEXT, NAMED(fiber_run, name)},
        {"location", "from", COLUMN_TEXT, NAMED(fiber_run, frame)},
    };
    view_table(&(struct table_def){.view = view, .id = "fiber_runs",
                                   .title = text_of("How long fibers kept their thread without a switch"),
                                   .rows = &view->report->fibers.runs, COLUMNS_OF(columns),
                                   .sort = {"longest_ns", "method", "location"}});
}

static void
add_tracks(const struct view *view)
{
    static const struct table_column columns[] = {
        {"waited_ns", "waited", COLUMN_DURATION, SUMMED(fiber_track, waited_ns)},
        {"ready_ns", "ready", COLUMN_DURATION, SUMMED(fiber_track, ready_ns), .people_if = HAS_READY},
        {"ran_ns", "ran", COLUMN_DURATION, SUMMED(fiber_track, ran_ns)},
        {"longest_run_ns", "longest", COLUMN_DURATION, MEMBER(fiber_track, longest_run_ns)},
        {"waits", "waits", COLUMN_COUNT, SUMMED(fiber_track, waits)},
        THREAD_COLUMNS(fiber_track, thread),
    };
    view_table(&(struct table_def){.view = view, .id = "fibers", .given = given(view),
                                   .title = text_of("Fibers, by track (that of one that has ended is the next one's)"),
                                   .rows = &view->report->fibers.tracks, COLUMNS_OF(columns),
                                   .sort = {"waited_ns", "tid"}});
}

static void
add_all(const struct view *view)
{
    add_waits(view);
    add_runs(view);
    view_thread_pools(view, add_tracks, "waited_ns", NULL);
}

void
fibers_tables(const struct view *view)
{
    struct document *document = view->document;
    const struct fibers *fibers = &view->report->fibers;
    if (fibers->tracks.count == 0) document_line(document, "fibers", view_nothing(view, TOPIC_fibers));
    if (fibers->left_out > 0)
        document_line(document, "left_out",
                      document_text(document, "%" PRIu64 " short waits of fibers", fibers->left_out));
    add_all(view);
}

void
view_add_fibers(const struct view *view)
{
    if (view->report->fibers.tracks.count > 0) add_all(view);
}
