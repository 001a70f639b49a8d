/* report_tables.c - the tables of a report: all, or those of a topic. */
#include "report/report_tables.h"

void
report_topic(struct report *report, struct document *document, uint64_t top, enum topic_number topic)
{
    topics[topic]->tables(&(const struct view){report, document, top});
}

void
report_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    view_add_totals(&view);
    view_add_execution(&view);
    view_add_samples(&view);
    view_add_calls(&view);
    view_add_exits(&view);
    view_add_interpreted(&view);
    view_add_recompiled(&view);
    view_add_loops(&view);
    view_add_fallbacks(&view);
    view_add_counters(&view);
    view_add_compilations(&view);
    view_add_durations(&view);
    view_add_thread_states(&view);
    view_add_fibers(&view);
    view_add_cpus(&view);
    view_add_syscalls(&view);
    view_add_gc(&view);
    view_add_allocations(&view);
    view_thread_pools(&view, view_add_threads, "count", NULL);
}
