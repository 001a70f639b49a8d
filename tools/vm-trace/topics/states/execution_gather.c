/* execution_gather.c - gathers for a report the sums of the stream `states`. */
#include "topics/report_data.h"

TOPIC_CALL(init, execution_init(&report->execution))
TOPIC_CALL(free_all, execution_free(&report->execution))
TOPIC_CALL(file_end, execution_file_end(&report->execution))

/* Sums of threads and ISEQs are of the whole trace. */
static void
about_trace(struct report *report, const struct topic_event *of)
{
    bool of_thread = of->event->name.id == STRING_STATES;
    if (!of_thread && of->event->name.id != STRING_INTERPRETED) return;
    report_process(report, of->process)->timed = true;
    if (report->windowed) return;
    if (!of_thread) {
        if (report->filter.thread == NULL)
            execution_add_iseq(&report->execution, report->pool, of->whole, of->event);
    }
    else if (report_thread_wanted(report, of->native)) {
        execution_add_thread(&report->execution, of->native, of->event);
    }
}

const struct topic topic_states = {
    .init = init,
    .free = free_all,
    .file_end = file_end,
    .about_trace = about_trace,
};
