/* counter_gather.c - gathers for a report what compiled code counted. */
#include "analysis/event_args.h"
#include "topics/report_data.h"

TOPIC_CALL(init, jit_counters_init(&report->counters))
TOPIC_CALL(free_all, jit_counters_free(&report->counters))

static void
about_trace(struct report *report, const struct topic_event *of)
{
    struct pool *pool = report->pool;
    if (of->event->name.id != STRING_COUNTER) return;
    report->recorded[TOPIC_counters] = true;
    if (!report->times_only && report_exit_wanted(report, event_text(pool, of->event, STRING_COUNTER),
                                                  event_text(pool, of->event, STRING_LOCATION)))
        jit_counters_add(&report->counters, pool, of->event, report_process(report, of->process)->file);
}

const struct topic topic_counters = {
    .init = init,
    .free = free_all,
    .about_trace = about_trace,
    .tables = counters_tables,
};
