#ifndef RUBY_VM_TRACE_SESSION_SESSION_H
#define RUBY_VM_TRACE_SESSION_SESSION_H 1
/*
 * Sessions of a running program. What flags start is in vm_trace_jit.h and vm_trace.h.
 */

#include "vm_trace/session/session_state.h"

/*
 * Start a session without a line on stderr, into memory if `memory` says so. `requests` has what
 * each stream records, by its index in the table; `config` has the JIT and the file. False: why_out
 * has the reason. World stopped.
 */
bool rb_vm_trace_start_session(const struct rb_vm_trace_config *config,
                               const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                               const struct rb_vm_trace_memory_config *memory, char *why_out, size_t why_bytes);

/* Stop it, whoever started it. False: none is recorded. World stopped. */
bool rb_vm_trace_stop_session(struct rb_vm_trace_status *status_out);

/* Its state. World stopped. */
void rb_vm_trace_status(struct rb_vm_trace_status *status_out);

#endif /* RUBY_VM_TRACE_SESSION_SESSION_H */
