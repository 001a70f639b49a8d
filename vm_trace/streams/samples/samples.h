#ifndef RUBY_VM_TRACE_STREAMS_SAMPLES_SAMPLES_H
#define RUBY_VM_TRACE_STREAMS_SAMPLES_SAMPLES_H 1
/*
 * The stream `samples`: what the threads of all ractors do at regular times, and their stacks, as
 * Perfetto's stack samples. sampler.h says how a sample comes about; vm_trace.h declares the hooks.
 *
 *     --vm-trace=samples:1ms       wall-clock time, of running and of waiting threads
 *     --vm-trace=samples:cpu:1ms   CPU time
 */

#include "vm_trace/capture/event.h"

extern struct rb_vm_trace_stream rb_vm_trace_samples;

/* The hooks of these names in vm_trace.h, while the stream is recorded. */
void rb_vm_trace_samples_suspending(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                    enum rb_vm_trace_suspension why);
void rb_vm_trace_samples_suspended(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                   enum rb_vm_trace_suspension why);
void rb_vm_trace_samples_ready(struct rb_vm_trace_thread *thread);
void rb_vm_trace_samples_resumed(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread);
void rb_vm_trace_samples_barrier_joined(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread);
void rb_vm_trace_samples_barrier_left(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread);

/* The thread leaves that fiber for another one. */
void rb_vm_trace_samples_switched(struct rb_execution_context_struct *from);

/* A pause of the garbage collector begins, ends. By the thread that collects, GVL held. */
void rb_vm_trace_samples_gc_enter(void);
void rb_vm_trace_samples_gc_exit(void);

#endif /* RUBY_VM_TRACE_STREAMS_SAMPLES_SAMPLES_H */
