#ifndef RUBY_VM_TRACE_STREAMS_STATES_CALL_TIMES_H
#define RUBY_VM_TRACE_STREAMS_STATES_CALL_TIMES_H 1
/*
 * How long calls of each ISEQ take: calls that stay in compiled code, calls whose compiled code exits,
 * and calls without compiled code, by reason. All ractors share one table. Entries stay until the
 * trace ends.
 */

#include "vm_trace/streams/states/levels.h"

/* Make the strings. False: no memory. */
bool rb_vm_trace_call_times_init(void);

/* The entry of an ISEQ, made if it has none. NULL: no memory. GVL held. */
struct vm_trace_call_times *rb_vm_trace_call_times_of(const struct rb_iseq_struct *iseq);

/* Label of its ISEQ. It lives as long as the entry. */
const struct vm_trace_string *rb_vm_trace_call_times_label(const struct vm_trace_call_times *entry);

/*
 * The state of a call without compiled code. `given_up`: the ISEQ was called often enough to be
 * compiled. `entry` may be NULL.
 */
enum vm_trace_execution rb_vm_trace_call_times_state(const struct vm_trace_call_times *entry, bool given_up);

/*
 * A call that began at `begin_ns` in that state has ended. It ran for `ran_ns`, without the time that
 * its thread waited, and was interpreted for `interpreted_ns`, without compiled callees. It stands
 * for `weight` calls. Any thread.
 */
struct vm_trace_call {
    enum vm_trace_execution state; /* up to REPROFILED */
    unsigned weight;
    uint64_t begin_ns, ran_ns, interpreted_ns;
};
void rb_vm_trace_call_times_add(struct vm_trace_call_times *entry, const struct vm_trace_call *call);

/* The ISEQ has compiled code now. Later calls without compiled code are due to its invalidation. */
void rb_vm_trace_call_times_compiled(uintptr_t unit);

/* The ISEQ is freed: another one may have its address. */
void rb_vm_trace_call_times_unit_freed(uintptr_t unit);

/* How traces spell a state of the interpreter. */
const struct vm_trace_string *rb_vm_trace_call_times_why(enum vm_trace_execution state);

/* Write an event for each entry that took long enough. capture.lock held. */
void rb_vm_trace_call_times_report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* The same for snapshots, a few at a time. False: all are written. Entries stay meanwhile. */
void rb_vm_trace_call_times_snapshot_begin(void);
bool rb_vm_trace_call_times_snapshot_write(struct rb_vm_trace_ractor *ractor);

/* Remove all entries. World stopped. */
void rb_vm_trace_call_times_free_all(void);

#endif /* RUBY_VM_TRACE_STREAMS_STATES_CALL_TIMES_H */
