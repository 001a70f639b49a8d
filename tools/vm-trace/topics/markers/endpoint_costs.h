#ifndef ENDPOINT_COSTS_H
#define ENDPOINT_COSTS_H
/* endpoint_costs.h - what other topics know of requests: costs, for a report with `endpoints` that have all spans.
 * Other reports ignore them. */
#include "topics/report_data.h"

struct endpoint_thread_key {
    uint32_t words[ENDPOINT_THREAD_KEYS];
};
struct endpoint_thread_key endpoint_key(const struct report *report, const struct report_thread *thread);

/* At a moment of a thread (its number in the report), in the code of a label. */
void endpoint_cost_add(struct report *report, uint32_t native, int64_t at_ns, enum endpoint_cost cost, uint64_t amount,
                       uint32_t label);
/* A time of a thread. */
void endpoint_cost_add_time(struct report *report, uint32_t native, struct interval time, enum endpoint_cost cost);

#endif
