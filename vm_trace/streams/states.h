#ifndef RUBY_VM_TRACE_STREAMS_STATES_H
#define RUBY_VM_TRACE_STREAMS_STATES_H 1
/*
 * What other streams report to that of execution states (levels.h). Each of these does nothing
 * when it is not recorded.
 */

#include "vm_trace/streams/levels.h"

/*
 * A thread stops running what it runs, at `ns`, until rb_vm_trace_states_resume: it gives up the
 * GVL, or collects garbage. `ec` is its execution context. GVL held.
 */
void rb_vm_trace_states_pause(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, uint64_t ns);

/*
 * It runs on at `ns`. It was in `state` meanwhile; from `ready_ns` on, if that is not 0, it waited for the GVL.
 */
void rb_vm_trace_states_resume(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                               enum vm_trace_execution state, uint64_t ready_ns, uint64_t ns);

/*
 * Compiled code of the current thread calls general code of the VM; rb_vm_trace_fallback_end ends
 * that.
 */
void rb_vm_trace_states_fallback(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* The JIT compiles, from _begin to _end, which nest. At `ns`. GVL held. */
void rb_vm_trace_states_compile_begin(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                      uint64_t ns);
void rb_vm_trace_states_compile_end(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                    uint64_t ns);

/* For the stream: recording begins, with the current thread; it ends. World stopped. */
void rb_vm_trace_states_begin(void);
void rb_vm_trace_states_finish(void);

/* ISEQs have moved. World stopped. */
void rb_vm_trace_states_compacted(void);

/* In a forked child: nothing is known yet, and the current thread runs since the trace began. */
void rb_vm_trace_states_after_fork(void);

#endif /* RUBY_VM_TRACE_STREAMS_STATES_H */
