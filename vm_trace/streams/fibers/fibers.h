#ifndef RUBY_VM_TRACE_STREAMS_FIBERS_FIBERS_H
#define RUBY_VM_TRACE_STREAMS_FIBERS_FIBERS_H 1
/*
 * The stream `fibers`: what fibers wait for, who resumes them, and how long a fiber kept its thread before it let
 * others run. A wait is one event on the fiber's track, written when it ends: `fiber` (doc/internals/events.md).
 */

#include "vm_trace/capture/event.h"

extern struct rb_vm_trace_stream rb_vm_trace_fibers;

/*
 * A thread switches between two fibers; `to` is the current execution context already. The first function runs before
 * other streams learn of the switch, the second after them: so what they record around a wait encloses it. GVL held.
 */
void rb_vm_trace_fibers_resumed(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to);
void rb_vm_trace_fibers_suspended(struct rb_execution_context_struct *from);

/* A fiber is unblocked (Fiber::Scheduler#unblock). `fiber` is a Ruby object. GVL held. */
void rb_vm_trace_fibers_ready(uintptr_t fiber);

#endif /* RUBY_VM_TRACE_STREAMS_FIBERS_FIBERS_H */
