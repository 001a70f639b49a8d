/* trace_host.c - see trace_host.h */
#include "base/portable.h"
#include "analysis/event_args.h"
#include "analysis/trace_host.h"
#include "fxt/known_strings.h"

#define TIMES_MAX (INT64_C(1) << 62) /* the year 2116: differences of such times have 64 bits */

void
trace_host_event(struct trace_host *host, struct pool *pool, const struct fxt_event *event)
{
    uint64_t unix_ns = event_uint(event, STRING_UNIX_NS, 0);
    if (unix_ns == 0 || unix_ns > TIMES_MAX || event->ts_ns < 0 || event->ts_ns > TIMES_MAX) return;
    struct origin origin = origin_read(pool, event);
    if (!host->known || event->ts_ns < host->first_ns) {
        host->origin = origin;
        host->first_ns = event->ts_ns;
    }
    if (!host->known || event->ts_ns >= host->last_ns) {
        host->last_ns = event->ts_ns;
        host->last_offset_ns = origin.unix_offset_ns;
    }
    host->known = true;
}

int64_t
trace_host_boot_ns(const struct trace_host *host, const struct stat *file, int64_t last_ns)
{
    if (host->known) return host->origin.unix_offset_ns;
    return time_difference((int64_t)file->st_mtim.tv_sec * 1000000000 + file->st_mtim.tv_nsec, last_ns);
}
