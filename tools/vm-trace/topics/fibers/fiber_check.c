/* fiber_check.c - see fiber_check.h */
#include <inttypes.h>

#include "topics/fibers/fiber_check.h"
#include "analysis/event_args.h"
#include "base/escape.h"
#include "fxt/known_strings.h"

/* A wait may be shorter than the setting says, after a run that is not. */
const struct counted_stream fiber_stream = {
    .name = "fibers", .slice = "wait of a fiber", .track = "fiber", .min_ns = STRING_NONE, .count = STRING_FIBER_WAITS,
    .left_out = STRING_NONE,
};

void
fiber_check_event(struct stream_counts *counts, struct reader *reader, const struct fxt_event *event)
{
    uint64_t ready_ns = 0;
    char name[140];
    bool part = fxt_event_arg(event, STRING_BEGAN) != NULL || fxt_event_arg(event, STRING_ENDED) != NULL;
    stream_counts_slice(counts, reader, event, part);
    if (part || event->type != FXT_EVENT_DURATION_COMPLETE) return;
    if (event_read_uint(event, STRING_READY_NS, &ready_ns) && ready_ns > (uint64_t)(event->end_ns - event->ts_ns))
        reader_fault(reader, FXT_FAULT_SCHEMA, event->offset,
                     "wait of a fiber in %s was ready for %" PRIu64 " of %" PRId64 " ns",
                     escape_into(name, sizeof name, event->name), ready_ns, event->end_ns - event->ts_ns);
}
