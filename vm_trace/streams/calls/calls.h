#ifndef RUBY_VM_TRACE_STREAMS_CALLS_CALLS_H
#define RUBY_VM_TRACE_STREAMS_CALLS_CALLS_H 1
/* The stream of calls, and what frames.c reports to it. GVL held. See open_calls.h. */

#include "vm_trace/capture/stream.h"

struct rb_vm_trace_calls;

extern struct rb_vm_trace_stream rb_vm_trace_calls;

/* An exception is handled in the innermost frame, which may be new: the body of a rescue or an ensure. */
void rb_vm_trace_calls_unwound(struct rb_execution_context_struct *ec);

/* The thread runs another fiber, whose execution context is the current one by now. */
void rb_vm_trace_calls_switched(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to,
                                struct rb_vm_trace_ractor *ractor);

/* An execution context ends; by the thread that runs it, or by any when it runs no more. */
void rb_vm_trace_calls_context_ended(struct rb_vm_trace_calls **slot);

#endif /* RUBY_VM_TRACE_STREAMS_CALLS_CALLS_H */
