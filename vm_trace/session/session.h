#ifndef RUBY_VM_TRACE_SESSION_SESSION_H
#define RUBY_VM_TRACE_SESSION_SESSION_H 1
/*
 * Sessions of a running program. What flags start is in vm_trace_jit.h and vm_trace.h.
 */

#include "vm_trace/session/session_state.h"

/* What RubyVM::Trace.status and stop return. */
struct rb_vm_trace_status {
    bool on;
    uint64_t session_number; /* of the trace that is on, unique in this process, from 1; 0: none is on */
    bool by_flags;           /* a flag started it: compiled code keeps its trace points permanently */
    uint64_t memory_bytes;   /* it is recorded into memory, of at most that; 0: into a file */
    const char *spool;       /* the folder for its pieces; static; NULL: there is none */
    const char *path;        /* valid until a trace starts or stops; NULL: no file, or none yet (forked child) */
    const char *loss;        /* why events were lost; NULL: none were */
    uint64_t events, sampled, lost; /* as in struct vm_trace_totals */
    struct rb_vm_trace_count {
        const char *name;    /* as in the summary */
        uint64_t count;
    } counts[VM_TRACE_MAX_COUNTERS]; /* of streams */
    unsigned count_count;
    uint64_t begin_ns;       /* CLOCK_BOOTTIME */
};

/*
 * Start a session without a line on stderr, into memory if `memory` says so. `requests` has what
 * each stream records, by its index in the table; `config` has the JIT and the file. False: why_out
 * has the reason. World stopped.
 */
bool rb_vm_trace_start_session(const struct rb_vm_trace_config *config,
                               const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                               const struct rb_vm_trace_memory_config *memory, char *why_out, size_t why_bytes);

/*
 * Before a session with these requests is started, and after one has ended or failed to start: do what can be done
 * in pieces while the program runs, for about `ns`. Whether there is more to do. World stopped.
 */
bool rb_vm_trace_prepare_session(const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS], uint64_t ns);
bool rb_vm_trace_restore_session(uint64_t ns);

/* Stop it, whoever started it. False: none is recorded. World stopped. */
bool rb_vm_trace_stop_session(struct rb_vm_trace_status *status_out);

/* Its state. World stopped. */
void rb_vm_trace_status(struct rb_vm_trace_status *status_out);

#endif /* RUBY_VM_TRACE_SESSION_SESSION_H */
