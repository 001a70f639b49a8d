/* report_gains.c - the table of a report with what methods would gain if none of their calls exited. */
#include "render/report_view.h"

static bool
is_shown(const struct view *view, const struct call_gain *gain)
{
    return call_gain_ns(gain) > 0 && report_iseq_wanted(view->report, gain->iseq);
}

static void
put_times(struct cell *cells, const struct call_times *times)
{
    cells[0] = cell_number(times->calls);
    if (times->calls > 0) cells[1] = cell_number(call_times_mean_ns(times));
}

/* For people calls that exited and those without compiled code are one number. */
void
view_add_gains(const struct view *view)
{
    const struct column columns[] = {
        {"gain_ns", "gain", COLUMN_DURATION},
        {"time_share", view_running_ns(view) > 0 ? "%" : NULL, COLUMN_SHARE},
        {"slow_calls", "slow calls", COLUMN_COUNT},
        {"slow_ns_per_call", "each", COLUMN_DURATION},
        {"exited_calls", NULL, COLUMN_COUNT},
        {"exited_ns_per_call", NULL, COLUMN_DURATION},
        {"interpreted_calls", NULL, COLUMN_COUNT},
        {"interpreted_ns_per_call", NULL, COLUMN_DURATION},
        {"compiled_calls", "compiled calls", COLUMN_COUNT},
        {"compiled_ns_per_call", "each", COLUMN_DURATION},
        {"method", "method", COLUMN_TEXT},
    };
    struct report *report = view->report;
    struct row_table *gains = &report->execution.gains;
    uint32_t wanted = 0, shown = 0;
    for (uint32_t i = 0; i < gains->count; i++) wanted += is_shown(view, row_table_at(gains, i));
    if (wanted == 0) return;
    struct table *table = document_table(view->document, "estimated_gains",
                                         text_of("Estimated gain, if slow calls (exited, or interpreted afterwards) "
                                                 "took as long as compiled ones"),
                                         COLUMNS(columns));
    call_gains_sort(gains, report->pool);
    uint64_t rest_calls = 0;
    for (uint32_t i = 0; i < gains->count; i++) {
        const struct call_gain *gain = row_table_at(gains, i);
        if (!is_shown(view, gain)) continue;
        struct call_times slow = call_gain_slow(gain);
        if (shown == view->top) {
            rest_calls += slow.calls;
            continue;
        }
        struct cell *cells = table_row(table);
        shown++;
        cells[0] = cell_number(call_gain_ns(gain));
        cells[1] = cell_share(call_gain_ns(gain), view_running_ns(view));
        put_times(cells + 2, &slow);
        put_times(cells + 4, &gain->of[CALLS_EXITED]);
        put_times(cells + 6, &gain->of[CALLS_INTERPRETED]);
        put_times(cells + 8, &gain->of[CALLS_COMPILED]);
        cells[10] = cell_text(view_name(view, gain->iseq));
    }
    table->more_rows = wanted - shown;
    /* Gains do not add up: a call's time has that of the calls inside. */
    if (table->more_rows > 0) table_row(table)[2] = cell_number(rest_calls);
}
