/* call_gather.c - gathers calls for a report. */
#include "topics/report_data.h"

static bool
call_wanted(void *context, uint32_t name)
{
    struct report *report = context;
    return glob_matches(&report->method_glob, report->pool, name);
}

static bool
call_hidden(void *context, uint32_t name)
{
    struct report *report = context;
    return !frame_of_app(&report->owners, name);
}

static void
init(struct report *report)
{
    calls_init(&report->calls, report, call_wanted);
    if (!report->filter.app_only) return;
    report->calls.hidden = call_hidden;
    report->calls.outside = report->owners.outside;
}

TOPIC_CALL(free_all, calls_free(&report->calls))

static void
window(struct report *report, struct interval window)
{
    report->calls.nesting.from_ns = window.from_ns;
    report->calls.nesting.to_ns = window.to_ns;
}

TOPIC_CALL(file_begin, report->calls.file = report->file_count - 1)
static void
file_end(struct report *report)
{
    report->recorded[TOPIC_calls] = report->has[STRING_CALL];
    calls_file_end(&report->calls);
}

static void
about_trace(struct report *report, const struct topic_event *of)
{
    if (of->event->name.id == STRING_SETTINGS) call_nesting_settings(&report->calls.nesting, of->event);
}

/* Calls have no reason. */
static void
of_thread(struct report *report, const struct topic_event *of)
{
    if (report->filter.reason == NULL)
        call_nesting_event(&report->calls.nesting, of->native, report->pool, of->event);
}

TOPIC_CALL(resolve, calls_sort_slowest(&report->calls))

const struct topic topic_calls = {
    .init = init,
    .free = free_all,
    .window = window,
    .file_begin = file_begin,
    .file_end = file_end,
    .categories = {STRING_CALL},
    .about_trace = about_trace,
    .of_thread = of_thread,
    .resolve = resolve,
    .tables = calls_tables,
};
