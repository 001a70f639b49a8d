/* allocation_gather.c - gathers sampled allocations for a report. */
#include "analysis/event_args.h"
#include "topics/markers/endpoint_costs.h"
#include "topics/report_data.h"

TOPIC_CALL(init, allocations_init(&report->allocations))
TOPIC_CALL(free_all, allocations_free(&report->allocations))

static bool
is_fate(const struct fxt_event *event)
{
    return event->name.id == STRING_FREED || event->name.id == STRING_ALIVE;
}

static bool
read_allocation(struct report *report, const struct fxt_event *event, uint32_t process, struct allocation *allocation)
{
    *allocation = (struct allocation){
        .process = process,
        .file = report->file_count - 1,
        .sample = event_uint(event, STRING_SAMPLE, UINT64_MAX),
        .class_name = event_reason(report->pool, event),
        .frame = report_own_frame(report, event),
        .size_bytes = event_uint(event, STRING_SIZE, 0),
        .weight_bytes = event_uint(event, STRING_WEIGHT, 0),
        .ts_ns = event->ts_ns,
        .untracked = event_uint(event, STRING_UNTRACKED, 0) != 0,
        .buffer = event->name.id == STRING_BUFFER,
    };
    return report->filter.reason == NULL && glob_matches(&report->method_glob, report->pool, allocation->frame);
}

/* By method or by class; there is no reason. */
static void
add_allocation(struct report *report, const struct fxt_event *event, uint32_t process)
{
    struct allocation allocation;
    if (read_allocation(report, event, process, &allocation)) allocations_add(&report->allocations, &allocation);
}

/* Another thread may collect the object, at another time. */
static void
add_fate(struct report *report, const struct fxt_event *event, uint32_t process)
{
    struct allocation allocation;
    struct allocation_fate fate = {
        .process = process,
        .sample = event_uint(event, STRING_SAMPLE, UINT64_MAX),
        .alive = event->name.id == STRING_ALIVE,
        .ts_ns = event->ts_ns,
        .survived = event_uint(event, STRING_SURVIVED, 0),
        .malloc_bytes = event_uint(event, STRING_MALLOC_BYTES, UINT64_MAX),
        .holder = fxt_event_arg(event, STRING_HOLDER) == NULL ? STRING_NONE
                  : pool_without_addresses(report->pool, event_text(report->pool, event, STRING_HOLDER)),
    };
    /* Which thread allocated it is not there. */
    bool described = event_uint(event, STRING_WEIGHT, 0) > 0 && report->filter.thread == NULL;
    if (described && read_allocation(report, event, process, &allocation)) {
        uint64_t age_ns = event_uint(event, STRING_AGE_NS, 0);
        uint32_t class_name = event_text(report->pool, event, STRING_CLASS);
        allocation.class_name = pool_without_addresses(report->pool, class_name);
        allocation.buffer = class_name == STRING_BUFFER;
        allocation.ts_ns -= age_ns < INT64_MAX ? (int64_t)age_ns : INT64_MAX;
        if (report->alive_of_any_age || report_time_wanted(report, allocation.ts_ns)) fate.allocation = &allocation;
    }
    allocations_fate(&report->allocations, &fate);
}

static void
any(struct report *report, const struct topic_event *of)
{
    if (of->event->type == FXT_EVENT_INSTANT && is_fate(of->event)) add_fate(report, of->event, of->process);
}

static void
wanted(struct report *report, const struct topic_event *of)
{
    const struct fxt_event *event = of->event;
    if (event->type != FXT_EVENT_INSTANT || is_fate(event)) return;
    add_allocation(report, event, of->process);
    endpoint_cost_add(report, of->native, event->ts_ns, ENDPOINT_ALLOCATED, event_uint(event, STRING_WEIGHT, 0),
                      report_own_frame(report, event));
}

static int64_t
unended_ns(const void *context, uint32_t number)
{
    const struct report *report = context;
    const struct report_process *process = report_process(report, number);
    bool whole = process->setting_count > 0 && process->lost == 0 && !process->cut && !process->snapshot &&
                 !report_ends_unread(report, process);
    return whole && !process->summarized ? process->last_ns : ALLOCATIONS_ENDED;
}

TOPIC_CALL(resolve, allocations_resolve(&report->allocations, unended_ns, report))

const struct topic topic_allocations = {
    .init = init,
    .free = free_all,
    .categories = {STRING_ALLOCATION},
    .any = any,
    .wanted = wanted,
    .resolve = resolve,
};
