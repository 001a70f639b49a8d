/*
 * The table of streams. See table.h.
 */
#include "vm_trace/streams/table.h"
#include "vm_trace/streams/allocations/allocations.h"
#include "vm_trace/streams/calls/calls.h"
#include "vm_trace/streams/compiles/counters.h"
#include "vm_trace/streams/exit_state.h"
#include "vm_trace/streams/fibers/fibers.h"
#include "vm_trace/streams/gc/gc.h"
#include "vm_trace/streams/markers/markers.h"
#include "vm_trace/streams/samples/samples.h"
#include "vm_trace/streams/kernel/sched.h"
#include "vm_trace/streams/kernel/syscalls.h"
#include "vm_trace/streams/threads/threads.h"
#include "vm_trace/streams/code/versions.h"

struct rb_vm_trace_stream *const rb_vm_trace_streams[] = {
    &rb_vm_trace_exits, /* stays first, see exits_of */
    &rb_vm_trace_fallbacks,
    &rb_vm_trace_compiles,
    &rb_vm_trace_invalidations,
    &rb_vm_trace_markers,
    &rb_vm_trace_threads,
    &rb_vm_trace_fibers,
    &rb_vm_trace_gc,
    &rb_vm_trace_allocations,
    &rb_vm_trace_states,
    &rb_vm_trace_calls,
    &rb_vm_trace_syscalls,
    &rb_vm_trace_sched,
    &rb_vm_trace_samples,
    &rb_vm_trace_jit_counters,
    NULL
};

_Static_assert(sizeof(rb_vm_trace_streams) / sizeof(rb_vm_trace_streams[0]) <= VM_TRACE_MAX_STREAMS,
               "requests are that many");

/* Before main(): machine code and ractor states hold the places that this gives. */
__attribute__((constructor)) static void
register_streams(void)
{
    rb_vm_trace_capture_register(rb_vm_trace_streams);
}

void
rb_vm_trace_streams_request(const struct rb_vm_trace_config *config,
                            struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS])
{
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
        requests[i] = (struct vm_trace_stream_request){ .rate = 0 };
        if (stream == &rb_vm_trace_exits)
            requests[i] = (struct vm_trace_stream_request){ .rate = config->exit_rate, .only = config->counter };
        else if (stream == &rb_vm_trace_fallbacks) requests[i].rate = config->fallback_rate;
        else if (stream == &rb_vm_trace_compiles)
            requests[i] = (struct vm_trace_stream_request){ .rate = config->compiles, .only = config->code_text };
        else if (stream == &rb_vm_trace_invalidations) requests[i].rate = config->invalidations;
        else if (stream == &rb_vm_trace_jit_counters) requests[i].rate = config->counters;
    }
}

void
rb_vm_trace_streams_config(const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                           struct rb_vm_trace_config *config)
{
    for (size_t i = 0; rb_vm_trace_streams[i]; i++) {
        const struct rb_vm_trace_stream *stream = rb_vm_trace_streams[i];
        if (!requests[i].rate) continue;
        if (stream == &rb_vm_trace_exits && !config->exit_rate) {
            config->exit_rate = requests[i].rate;
            config->counter = requests[i].only;
        }
        else if (stream == &rb_vm_trace_fallbacks && !config->fallback_rate) config->fallback_rate = requests[i].rate;
        else if (stream == &rb_vm_trace_compiles) {
            config->compiles = true;
            if (!config->code_text) config->code_text = requests[i].only;
        }
        else if (stream == &rb_vm_trace_invalidations) config->invalidations = true;
        else if (stream == &rb_vm_trace_jit_counters) config->counters = true;
    }
}
