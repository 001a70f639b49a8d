/*
 * What the VM reports of threads and fibers, passed on to the streams that are recorded, and to the notes of
 * native threads. The hooks of vm_trace.h test one byte and call here: little code is where nothing is recorded.
 * Samples come first where a thread is about to wait: what the other stream writes is no time of its program.
 */
#include "vm_trace/streams/fibers/fibers.h"
#include "vm_trace/streams/frames.h"
#include "vm_trace/streams/kernel/native_threads.h"
#include "vm_trace/streams/samples/samples.h"
#include "vm_trace/streams/threads/threads.h"

uint8_t rb_vm_trace_threads_on;

static bool
threads_p(void)
{
    return rb_vm_trace_threads_on & RB_VM_TRACE_THREADS_STATES;
}

static bool
fibers_p(void)
{
    return rb_vm_trace_threads_on & RB_VM_TRACE_THREADS_FIBERS;
}

static bool
samples_p(void)
{
    return rb_vm_trace_threads_on & RB_VM_TRACE_THREADS_SAMPLES;
}

void
rb_vm_trace_thread_suspending_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                   enum rb_vm_trace_suspension why)
{
    if (samples_p()) rb_vm_trace_samples_suspending(ec, thread, why);
    if (threads_p()) rb_vm_trace_threads_suspending(ec, thread, why);
}

void
rb_vm_trace_thread_suspended_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                  enum rb_vm_trace_suspension why)
{
    if (samples_p()) rb_vm_trace_samples_suspended(ec, thread, why);
    if (threads_p()) rb_vm_trace_threads_suspended(ec, thread, why);
}

void
rb_vm_trace_thread_ready_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (samples_p()) rb_vm_trace_samples_ready(thread);
    if (threads_p()) rb_vm_trace_threads_ready(ec, thread);
}

void
rb_vm_trace_thread_resumed_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (rb_vm_trace_threads_on & RB_VM_TRACE_THREADS_NATIVE) rb_vm_trace_native_runs(ec);
    if (threads_p()) rb_vm_trace_threads_resumed(ec, thread);
    if (samples_p()) rb_vm_trace_samples_resumed(ec, thread);
}

void
rb_vm_trace_thread_blocks_in_slow(struct rb_vm_trace_thread *thread, const void *function, int fd)
{
    if (threads_p()) rb_vm_trace_threads_blocks_in(thread, function, fd);
}

void
rb_vm_trace_barrier_joined_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (samples_p()) rb_vm_trace_samples_barrier_joined(ec, thread);
    if (threads_p()) rb_vm_trace_threads_barrier_joined(ec, thread);
}

void
rb_vm_trace_barrier_complete_slow(struct rb_vm_trace_thread *thread)
{
    if (threads_p()) rb_vm_trace_threads_barrier_complete(thread);
}

void
rb_vm_trace_barrier_left_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (threads_p()) rb_vm_trace_threads_barrier_left(ec, thread);
    if (samples_p()) rb_vm_trace_samples_barrier_left(ec, thread);
}

void
rb_vm_trace_fiber_switched_slow(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to)
{
    bool fibers = fibers_p() && from != to;
    if (fibers) rb_vm_trace_fibers_resumed(from, to);
    if (rb_vm_trace_frames_on) rb_vm_trace_frames_switched(from, to);
    if (rb_vm_trace_threads_on & RB_VM_TRACE_THREADS_NATIVE) rb_vm_trace_native_runs(to);
    if (samples_p()) rb_vm_trace_samples_switched(from);
    if (fibers) rb_vm_trace_fibers_suspended(from);
}

void
rb_vm_trace_fiber_ready_slow(uintptr_t fiber)
{
    if (fibers_p()) rb_vm_trace_fibers_ready(fiber);
}
