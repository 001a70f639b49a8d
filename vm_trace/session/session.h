#ifndef RUBY_VM_TRACE_SESSION_SESSION_H
#define RUBY_VM_TRACE_SESSION_SESSION_H 1
/*
 * Beginning a session with any streams. What else is asked of one is in vm_trace.h.
 */

#include "vm_trace/session/session_state.h"

/*
 * As rb_vm_trace_switch_on (vm_trace.h), with what each stream is to record by its index in the
 * table; config tells of nothing but the JIT and the file. World stopped.
 */
bool rb_vm_trace_begin_session(const struct rb_vm_trace_config *config,
                               const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                               const struct rb_vm_trace_memory_config *memory, char *why_out, size_t why_bytes);

#endif /* RUBY_VM_TRACE_SESSION_SESSION_H */
