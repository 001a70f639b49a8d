#ifndef RUBY_VM_TRACE_STREAMS_THREADS_THREADS_H
#define RUBY_VM_TRACE_STREAMS_THREADS_THREADS_H 1
/*
 * The stream `threads` records for each Ruby thread when it runs, when it waits for the GVL, and when
 * it is blocked, and in what. vm_trace.h declares the hooks.
 *
 * It writes FXT's scheduling records, with one CPU for each ractor: the thread that holds the GVL runs.
 * Besides, a duration `blocked` lies on the thread's track from the moment that it blocks until it
 * is runnable again.
 *
 *   blocks in Queue#pop   woken by another   has the GVL
 *   |---- S, "blocked" ---|------- W --------|---- Running
 */

#include "vm_trace/capture/event.h"

extern struct rb_vm_trace_stream rb_vm_trace_threads;

/* The hooks of these names in vm_trace.h, while the stream is recorded. */
void rb_vm_trace_threads_suspending(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                    enum rb_vm_trace_suspension why);
void rb_vm_trace_threads_suspended(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                   enum rb_vm_trace_suspension why);
void rb_vm_trace_threads_ready(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread);
void rb_vm_trace_threads_resumed(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread);
void rb_vm_trace_threads_blocks_in(struct rb_vm_trace_thread *thread, const void *function, int fd);
void rb_vm_trace_threads_barrier_joined(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread);
void rb_vm_trace_threads_barrier_complete(struct rb_vm_trace_thread *thread);
void rb_vm_trace_threads_barrier_left(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread);

#endif /* RUBY_VM_TRACE_STREAMS_THREADS_THREADS_H */
