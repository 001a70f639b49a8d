#ifndef RUBY_VM_TRACE_SESSION_METADATA_H
#define RUBY_VM_TRACE_SESSION_METADATA_H 1
/*
 * What a trace says of itself, for all that write one: the file's end (session.c), and what the
 * flight recorder saves (snapshot.c). `ec` may be NULL: the thread is then the tracer's own.
 */

#include "vm_trace/capture/event.h"

/* Events that are not in the file, and why. */
struct vm_trace_loss {
    uint64_t events;
    const char *why;
};

struct vm_trace_summary {
    struct vm_trace_totals totals;
    const char *snapshot;  /* what the trace was saved for; NULL: it is of the whole run */
    uint64_t least_ns;     /* it is no earlier than that */
};

/*
 * For rb_vm_trace_event_write; the first one, which writes several events if it must, on an empty chunk.
 * `what`: a C string, what the trace is saved for, or NULL; NULL (which JIT the program turned on after the
 * settings were written); a vm_trace_loss; a vm_trace_summary.
 */
bool rb_vm_trace_write_settings(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                const void *what);
bool rb_vm_trace_write_jit(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what);
bool rb_vm_trace_write_loss(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                            const void *what);
bool rb_vm_trace_write_summary(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                               const void *what);

/*
 * Counters that have no room in a summary, in an event `counts` before it: whether there are any, and
 * for rb_vm_trace_event_write. `what`: struct vm_trace_totals.
 */
bool rb_vm_trace_more_counts_p(const struct vm_trace_totals *totals);
bool rb_vm_trace_write_counts(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                              const void *what);

/* Why events were not written, and why older ones are gone. */
const char *rb_vm_trace_loss_reason(void);
const char *rb_vm_trace_late_reason(void);
const char *rb_vm_trace_unread_reason(void);
const char *rb_vm_trace_dropped_reason(void);

#endif /* RUBY_VM_TRACE_SESSION_METADATA_H */
