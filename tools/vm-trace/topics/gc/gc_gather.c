/* gc_gather.c - gathers garbage collections for a report. */
#include "topics/markers/endpoint_costs.h"
#include "topics/report_data.h"

TOPIC_CALL(init, gc_pauses_init(&report->gc, report->pool))
TOPIC_CALL(free_all, gc_pauses_free(&report->gc))

static void
pair(struct report *report, const struct duration_edge *begin, const struct duration_edge *end, bool wanted)
{
    if (end == NULL) return;
    const struct interval time = {begin->ts_ns, end->ts_ns};
    if (begin->outermost) endpoint_cost_add_time(report, begin->row, time, ENDPOINT_GC);
    uint32_t process = report_thread(report, begin->row)->process;
    gc_pauses_add(&report->gc, process, report_piece(report, process), begin, end, wanted);
}

const struct topic topic_gc = {
    .init = init,
    .free = free_all,
    .durations = {STRING_GC},
    .pair = pair,
    .tables = gc_tables,
};
