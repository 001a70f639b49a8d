#ifndef RUBY_VM_TRACE_SESSION_FORK_H
#define RUBY_VM_TRACE_SESSION_FORK_H 1
/*
 * Forks: Ruby's own call the hooks of vm_trace.h, others the C library's handlers.
 */

/*
 * Have the C library call handlers around fork(2). Called when a trace begins; again has no effect.
 */
void rb_vm_trace_handle_forks(void);

#endif /* RUBY_VM_TRACE_SESSION_FORK_H */
