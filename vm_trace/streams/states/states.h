#ifndef RUBY_VM_TRACE_STREAMS_STATES_STATES_H
#define RUBY_VM_TRACE_STREAMS_STATES_STATES_H 1
/*
 * Other streams and frames.c call these functions to report to the stream of execution states
 * (levels.h). They do nothing while that stream is not recorded.
 */

#include "vm_trace/streams/states/levels.h"

/* Not 0 while states are recorded; changes with the world stopped. */
extern int rb_vm_trace_states_on;

/* What vm_trace.h's functions of these names report. */
void rb_vm_trace_states_uncompiled(struct rb_execution_context_struct *ec, uint64_t calls, uint64_t threshold);
void rb_vm_trace_states_popped(struct rb_execution_context_struct *ec);
void rb_vm_trace_states_unwound(struct rb_execution_context_struct *ec);
void rb_vm_trace_states_switched(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to,
                                 struct rb_vm_trace_ractor *ractor);

/*
 * A thread pauses at `ns`, until rb_vm_trace_states_resume: it gives up the GVL, or collects garbage.
 * `ec` is its execution context. GVL held.
 */
void rb_vm_trace_states_pause(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, uint64_t ns);

/*
 * It continues at `ns`. Meanwhile it was in `state`, but waited for the GVL from `ready_ns` on, if that
 * is not 0.
 */
void rb_vm_trace_states_resume(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                               enum vm_trace_execution state, uint64_t ready_ns, uint64_t ns);

/*
 * Compiled code of the current thread calls general code of the VM, until
 * rb_vm_trace_fallback_end.
 */
void rb_vm_trace_states_fallback(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* The JIT compiles, from _begin to _end, which nest. At `ns`. GVL held. */
void rb_vm_trace_states_compile_begin(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                      uint64_t ns);
void rb_vm_trace_states_compile_end(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                    uint64_t ns);

/* For the stream: start recording with the current thread; stop recording. World stopped. */
void rb_vm_trace_states_begin(void);
void rb_vm_trace_states_finish(void);

/* ISEQs have moved. World stopped. */
void rb_vm_trace_states_compacted(void);

/* In a forked child: nothing is known yet, and the current thread runs since the trace began. */
void rb_vm_trace_states_after_fork(void);

#endif /* RUBY_VM_TRACE_STREAMS_STATES_STATES_H */
