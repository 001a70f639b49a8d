#ifndef RUBY_VM_TRACE_STREAMS_THREAD_TIMES_H
#define RUBY_VM_TRACE_STREAMS_THREAD_TIMES_H 1
/* How long each thread was in each execution state: the sums, and the event that says them. */

#include "vm_trace/streams/levels.h"

/* Make the strings. False: no memory. */
bool rb_vm_trace_thread_times_init(void);

/*
 * Have the thread's times include an execution context of it, which `slot` points to from now on.
 * Returns them; NULL: no memory. GVL held.
 */
struct vm_trace_thread_times *rb_vm_trace_thread_times_join(struct rb_vm_trace_states *states,
                                                            struct rb_vm_trace_states **slot);

/* The execution context has ended. Frees the times with the last one of a thread. Any thread. */
void rb_vm_trace_thread_times_leave(struct rb_vm_trace_states *states);

/* Call it with each execution context of this trace. World stopped. */
void rb_vm_trace_thread_times_each_context(void (*function)(struct rb_vm_trace_states *states));

/* The flight recorder was reset: count from 0. Returns when that was, or `from_ns`, if that is later. */
uint64_t rb_vm_trace_thread_times_renew(struct vm_trace_thread_times *times, uint64_t from_ns);

/* The time from `from_ns` on is to be added: returns since when it counts. */
static inline uint64_t
counted_from(struct vm_trace_thread_times *times, uint64_t from_ns)
{
    if (__builtin_expect(times->epoch == trace_epoch(), 1)) return from_ns;
    return rb_vm_trace_thread_times_renew(times, from_ns);
}

/*
 * The thread was in the state for `ns`, none of it before the last reset (counted_from). By itself,
 * GVL held; others may read the sums.
 */
static inline void
rb_vm_trace_thread_times_add(struct vm_trace_thread_times *times, enum vm_trace_execution state, uint64_t ns)
{
    __atomic_store_n(&times->ns[state], times->ns[state] + ns, __ATOMIC_RELAXED);
}

/* After each change. */
static inline void
states_changed(struct rb_vm_trace_states *states)
{
    states->head.compiled = states->levels[states->depth].state == VM_TRACE_COMPILED;
    states->times->changes++;
}

/* The thread of `ec` ends: write its event. By itself, GVL held. */
void rb_vm_trace_thread_times_end(struct vm_trace_thread_times *times, struct rb_vm_trace_ractor *ractor,
                                  struct rb_execution_context_struct *ec);

/* Write those of all threads that live. World stopped. */
void rb_vm_trace_thread_times_report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* For snapshots, as stream.h has it: of what is on, the time since the last change is left out. */
bool rb_vm_trace_thread_times_snapshot_room(void);
void rb_vm_trace_thread_times_snapshot_begin(void);
bool rb_vm_trace_thread_times_snapshot_write(struct rb_vm_trace_ractor *ractor);
void rb_vm_trace_thread_times_snapshot_end(void);

/* Forget all, and have execution contexts point nowhere. World stopped. */
void rb_vm_trace_thread_times_free_all(void);

/* In a forked child: forget what is the parent's without a touch. */
void rb_vm_trace_thread_times_after_fork(void);

#endif /* RUBY_VM_TRACE_STREAMS_THREAD_TIMES_H */
