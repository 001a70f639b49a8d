#ifndef RUBY_VM_TRACE_STREAMS_STATES_THREAD_TIMES_H
#define RUBY_VM_TRACE_STREAMS_STATES_THREAD_TIMES_H 1
/* How long each thread was in each execution state: the sums, and the event that has them. */

#include "vm_trace/streams/states/levels.h"

/*
 * Include an execution context in the times of its thread, and let `slot` point to it. Returns the
 * times; NULL: no memory. GVL held.
 */
struct vm_trace_thread_times *rb_vm_trace_thread_times_join(struct rb_vm_trace_states *states,
                                                            struct rb_vm_trace_states **slot);

/* The execution context has ended. Frees the times with the last one of a thread. Any thread. */
void rb_vm_trace_thread_times_leave(struct rb_vm_trace_states *states);

/* Call a function with each execution context of this trace. World stopped. */
void rb_vm_trace_thread_times_each_context(void (*function)(struct rb_vm_trace_states *states));

/* After a reset of the flight recorder, count from 0. Returns the later of the reset and `from_ns`. */
uint64_t rb_vm_trace_thread_times_renew(struct vm_trace_thread_times *times, uint64_t from_ns);

/* Returns from when the time since `from_ns` counts. */
static inline uint64_t
counted_from(struct vm_trace_thread_times *times, uint64_t from_ns)
{
    if (__builtin_expect(times->epoch == trace_epoch(), 1)) return from_ns;
    return rb_vm_trace_thread_times_renew(times, from_ns);
}

/*
 * The thread was in the state for `ns`, all of it after the last reset (counted_from). Called by the
 * thread itself, GVL held; others may read the sums.
 */
static inline void
rb_vm_trace_thread_times_add(struct vm_trace_thread_times *times, enum vm_trace_execution state, uint64_t ns)
{
    __atomic_store_n(&times->ns[state], times->ns[state] + ns, __ATOMIC_RELAXED);
}

/* The function after this one, when it is due. */
uint64_t rb_vm_trace_thread_times_look(struct vm_trace_thread_times *times, uint64_t spent_ns, uint64_t ns);

/*
 * Returns how much of the last `spent_ns` of the thread with the GVL, until `ns`, it had no CPU, and
 * adds that to its sum. Called by the thread itself when a state ends. A millisecond after the last look
 * the next one is due, which reads the system's CPU clock of the native thread. A wait for a CPU is
 * mostly longer than that, so that the state that ends with a look is the one in which it was.
 */
static inline uint64_t
thread_times_no_cpu(struct vm_trace_thread_times *times, uint64_t spent_ns, uint64_t ns)
{
    if (__builtin_expect(ns < times->look.due_ns, 1)) return 0;
    return rb_vm_trace_thread_times_look(times, spent_ns, ns);
}

/* After each change. */
static inline void
states_changed(struct rb_vm_trace_states *states)
{
    states->head.compiled = states->levels[states->depth].state == VM_TRACE_COMPILED;
    states->times->changes++;
}

/* The thread of `ec` ends: write its event. Called by the thread itself, GVL held. */
void rb_vm_trace_thread_times_end(struct vm_trace_thread_times *times, struct rb_vm_trace_ractor *ractor,
                                  struct rb_execution_context_struct *ec);

/* Write the events of all live threads. World stopped. */
void rb_vm_trace_thread_times_report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* For snapshots (stream.h). They lack the time since the last change of state. */
bool rb_vm_trace_thread_times_snapshot_room(void);
void rb_vm_trace_thread_times_snapshot_begin(void);
bool rb_vm_trace_thread_times_snapshot_write(struct rb_vm_trace_ractor *ractor);
void rb_vm_trace_thread_times_snapshot_end(void);

/* Remove all times, and clear the pointers of execution contexts. World stopped. */
void rb_vm_trace_thread_times_free_all(void);

/* In a forked child: drop the parent's times without writing to them. */
void rb_vm_trace_thread_times_after_fork(void);

#endif /* RUBY_VM_TRACE_STREAMS_STATES_THREAD_TIMES_H */
