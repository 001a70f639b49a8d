#ifndef TRACE_HOST_H
#define TRACE_HOST_H
/* trace_host.h - where a process ran, and whether the time of day jumped there: all its events `host`. */
#include <stdbool.h>
#include <sys/stat.h>

#include "analysis/origin.h"

struct trace_host {
    bool known;
    struct origin origin;       /* of the first event */
    int64_t first_ns, last_ns;  /* times of the first and the last event */
    int64_t last_offset_ns;     /* as unix_offset_ns of the origin: they differ when the clock was set */
};

/* Takes an event trace/host. */
void trace_host_event(struct trace_host *host, struct pool *pool, const struct fxt_event *event);
/* Unix time at 0 of the trace's clock. Without an event `host` the trace, whose last event is at last_ns, ends when
 * its file was last changed. */
int64_t trace_host_boot_ns(const struct trace_host *host, const struct stat *file, int64_t last_ns);

/* Sum and difference of times; 0 if 64 bits do not hold it, which only a damaged trace brings about. */
static inline int64_t
time_sum(int64_t a_ns, int64_t b_ns)
{
    int64_t sum_ns;
    return __builtin_add_overflow(a_ns, b_ns, &sum_ns) ? 0 : sum_ns;
}

static inline int64_t
time_difference(int64_t a_ns, int64_t b_ns)
{
    int64_t difference_ns;
    return __builtin_sub_overflow(a_ns, b_ns, &difference_ns) ? 0 : difference_ns;
}

#endif
