/* endpoint_costs.c - see endpoint_costs.h */
#include "topics/markers/endpoint_costs.h"

struct endpoint_thread_key
endpoint_key(const struct report *report, const struct report_thread *thread)
{
    const struct report_process *process = report_process(report, thread->process);
    return (struct endpoint_thread_key){{process->recording, process->pid, thread->tid}};
}

static bool
adds_costs(const struct report *report)
{
    return report->endpoints != NULL && report->endpoints->complete;
}

void
endpoint_cost_add(struct report *report, uint32_t native, int64_t at_ns, enum endpoint_cost cost, uint64_t amount,
                  uint32_t label)
{
    if (!adds_costs(report)) return;
    uint32_t owner = report->by_gem ? frame_owner(&report->owners, label) : STRING_NONE;
    struct endpoint_thread_key key = endpoint_key(report, report_thread(report, native));
    endpoints_add(report->endpoints, key.words, at_ns, cost, amount, owner);
}

void
endpoint_cost_add_time(struct report *report, uint32_t native, struct interval time, enum endpoint_cost cost)
{
    if (!adds_costs(report)) return;
    struct endpoint_thread_key key = endpoint_key(report, report_thread(report, native));
    endpoints_add_time(report->endpoints, key.words, time, cost);
}
