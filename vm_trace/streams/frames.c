/*
 * What the VM and compiled code report of frames, passed on to the streams `calls` and `states`, and
 * which entries into compiled code the host notes for `samples`.
 * Calls come first where a frame begins: its time includes what the other stream does.
 */
#include "vm_trace/streams/frames.h"
#include "vm_trace/host/host.h"
#include "vm_trace/streams/calls/calls.h"
#include "vm_trace/streams/states/states.h"
#include "vm_trace/vm_trace_jit.h"

uint8_t rb_vm_trace_frames_on, rb_vm_trace_entries_on;

static inline bool
calls_p(void)
{
    return rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_CALLS;
}

static inline bool
states_p(void)
{
    return rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_STATES;
}

void
rb_vm_trace_frames_report(int stream, bool on)
{
    if (on) rb_vm_trace_entries_on |= stream;
    else rb_vm_trace_entries_on &= ~stream;
    rb_vm_trace_frames_on = rb_vm_trace_entries_on & ~RB_VM_TRACE_FRAMES_SAMPLES;
    rb_vm_trace_host_watch_entries(rb_vm_trace_entries_on);
}

void
rb_vm_trace_uncompiled_slow(struct rb_execution_context_struct *ec, uint64_t calls, uint64_t threshold)
{
    if (calls_p()) rb_vm_trace_host_call_begun(ec);
    if (states_p()) rb_vm_trace_states_uncompiled(ec, calls, threshold);
}

void
rb_vm_trace_frame_begun_slow(struct rb_execution_context_struct *ec)
{
    if (calls_p()) rb_vm_trace_host_call_begun(ec);
}

void
rb_vm_trace_jit_frame_begun(struct rb_execution_context_struct *ec)
{
    if (calls_p()) rb_vm_trace_host_call_begun(ec);
}

void
rb_vm_trace_interpreted(struct rb_execution_context_struct *ec)
{
    if (calls_p()) rb_vm_trace_host_call_begun(ec);
}

void
rb_vm_trace_frame_popped(struct rb_execution_context_struct *ec)
{
    if (states_p()) rb_vm_trace_states_popped(ec);
    if (calls_p()) rb_vm_trace_host_calls_left(ec);
}

void
rb_vm_trace_unwound_slow(struct rb_execution_context_struct *ec)
{
    if (rb_vm_trace_entries_on & RB_VM_TRACE_FRAMES_SAMPLES) rb_vm_trace_host_unwound(ec);
    if (states_p()) rb_vm_trace_states_unwound(ec);
    if (calls_p()) rb_vm_trace_calls_unwound(ec);
}

void
rb_vm_trace_frames_switched(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to)
{
    struct rb_vm_trace_ractor *ractor = trace_on() && from != to ? rb_vm_trace_host_ractor(to) : NULL;
    if (ractor && states_p()) rb_vm_trace_states_switched(from, to, ractor);
    if (ractor && calls_p()) rb_vm_trace_calls_switched(from, to, ractor);
}

void
rb_vm_trace_calls_ended_slow(struct rb_vm_trace_calls **calls)
{
    rb_vm_trace_calls_context_ended(calls);
}
