/*
 * The event of a call, where it has more than its times or its chunk does not have all names yet.
 * See open_calls.h.
 */
#include "vm_trace/streams/calls/open_calls.h"

#include <string.h>

struct call_event {
    struct rb_vm_trace_calls *calls;
    const struct vm_trace_open_call *call;
    uint64_t end_ns;
    enum vm_trace_call_end end;
};

static size_t
name_track(const void *what, char *buffer, size_t capacity)
{
    const struct rb_vm_trace_calls *calls = what;
    if (!calls->track) return rb_vm_trace_host_fiber_name(calls->ec, buffer, capacity);
    memcpy(buffer, calls->track, calls->track_bytes < capacity ? calls->track_bytes : capacity);
    return calls->track_bytes;
}

static bool
write_call(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    (void)ec;
    const struct call_event *written = what;
    struct rb_vm_trace_calls *calls = written->calls;
    const struct vm_trace_open_call *call = written->call;
    struct vm_trace_event event;
    unsigned in, name;
    if (!rb_vm_trace_event_begin_on(&event, ractor, calls->id, name_track, calls, call->begin_ns)) return false;
    /* One that was open at a reset begins before it (open_calls.c), unless another reset has come since. */
    if (calls->epoch == ractor->epoch) event.record[1] = call->begin_ns;
    uint64_t end_ns = written->end_ns > event.record[1] ? written->end_ns : event.record[1];
    if (!writer_interned(event.writer, KNOWN(CALL), &in) || !writer_interned(event.writer, call->name, &name))
        return false;
    if (!calls->copy && &ractor->writer == event.writer) { /* the next ones take the short way */
        struct vm_trace_call_name *known = &calls_of(ractor)->names[call->slot];
        if (known->text == call->name) {
            known->header = fxt_event_header(FXT_EVENT_DURATION_COMPLETE, VM_TRACE_CALL_WORDS, 0, 0, in, name);
            known->chunk = event.writer->serial;
        }
        calls->thread = fxt_field(event.thread, FXT_EVENT_THREAD);
        calls->chunk = event.writer->serial;
        calls->reused = event.writer->reused;
        calls->renamed = event.writer->renamed;
    }
    if (call->left_out && (!event_uint64_rarely(&event, KNOWN(LEFT_OUT), call->left_out) ||
                           !event_uint64_rarely(&event, KNOWN(LEFT_OUT_NS), call->left_out_ns)))
        return false;
    if (call->began_before && !event_interned_rarely(&event, KNOWN(BEGAN), KNOWN(BEFORE_THE_TRACE))) return false;
    if (written->end != VM_TRACE_CALL_ENDED &&
        !event_interned_rarely(&event, KNOWN(ENDED),
                               written->end == VM_TRACE_CALL_OPEN ? KNOWN(AFTER_THE_TRACE) : KNOWN(NEVER)))
        return false;
    return event_end_id(&event, FXT_EVENT_DURATION_COMPLETE, (enum known_string)in, name, end_ns);
}

bool
rb_vm_trace_call_write_slow(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls,
                            const struct vm_trace_open_call *call, uint64_t end_ns, enum vm_trace_call_end end)
{
    const struct call_event event = { calls, call, end_ns, end };
    return rb_vm_trace_event_write(ractor, calls->ec, write_call, &event);
}
