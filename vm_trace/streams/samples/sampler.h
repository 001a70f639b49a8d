#ifndef RUBY_VM_TRACE_STREAMS_SAMPLES_SAMPLER_H
#define RUBY_VM_TRACE_STREAMS_SAMPLES_SAMPLER_H 1
/*
 * The sampler: a native thread of the tracer's own that looks at all Ruby threads at each period of the
 * clock. It charges a period to what each thread does, its phase, which the threads keep up to date
 * themselves. Only to a thread that runs Ruby it sends a signal, whose handler copies the stack. What a
 * thread does not change while it waits, it writes itself when it runs on: so nothing interrupts a system
 * call of a thread without the GVL.
 *
 * Moments of wall-clock time are due at one random moment of each period, the same for all threads. On a
 * busy machine the sampler gets a CPU late, for instance when the thread that it was to look at waits
 * again. So a thread whose phase changes charges the moments that were due before to the phase that ends.
 *
 *     periods    |    d   |d       |      d |
 *     thread     RUNS RUNS   RUNS BLOCKS BLOCKS    the second one was due when the thread ran
 *     sampler         ^             ^        ^     although the sampler was late
 *
 * The signal is SIGURG, which is ignored by default, also after exec(2). A thread that has the GVL and
 * sleeps in the kernel gets none, unless the system call is one that goes on after a signal.
 *
 *     RUNS ⇄ SIGNALLED     it has the GVL; a signal is on its way
 *     SETTLES              it is about to give up the GVL, or writes samples
 *     COLLECTS             it collects garbage
 *     BLOCKS, WAITS        without the GVL: for something else, or for the GVL
 */

#include "vm_trace/platform/platform.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rb_execution_context_struct;
struct rb_vm_trace_ractor;
struct vm_trace_sample_ring;

enum vm_trace_phase {
    VM_TRACE_NOBODY,           /* free */
    VM_TRACE_RUNS,
    VM_TRACE_SIGNALLED,
    VM_TRACE_SETTLES,
    VM_TRACE_COLLECTS,
    VM_TRACE_BLOCKS,
    VM_TRACE_WAITS
};

/* What time is charged to. */
enum vm_trace_charge {
    VM_TRACE_CHARGE_RUNNING, VM_TRACE_CHARGE_NO_CPU, VM_TRACE_CHARGE_GC, VM_TRACE_CHARGE_BLOCKED,
    VM_TRACE_CHARGE_WAITING,
    VM_TRACE_CHARGES
};

struct vm_trace_charged {
    uint64_t ns;               /* 0: nothing */
    uint64_t ticks;            /* how often the sampler looked */
};

/* What the sampler knows of a Ruby thread. */
struct vm_trace_sampled {
    _Atomic uint32_t phase;    /* enum vm_trace_phase; the sampler changes only RUNS to SIGNALLED */
    _Atomic uint32_t tid;      /* of the native thread that runs it */
    struct {
        _Atomic uint64_t ns, ticks;
    } charged[VM_TRACE_CHARGES]; /* the sampler adds, the thread takes */
    _Atomic uint64_t due_ns;   /* the first moment that is not charged; of wall-clock time alone */
    _Atomic uint64_t cpu_ns;   /* CPU time of the native thread that is charged already */
    _Atomic uint64_t ran_until_ns; /* when it gave up the GVL; 0: its CPU time until then is charged */
    _Atomic uint64_t without_ns; /* since the last look: how long it had no GVL, but for a wait that it is in */
    _Atomic uint32_t waits;    /* how often it has given up the GVL */
    _Atomic bool shares_native; /* while it waits, its native thread may run others */
    /* Of a wait: when it was seen first, the CPU time of its native thread, and when that was. */
    _Atomic uint32_t seen_wait; /* number of the wait */
    _Atomic uint64_t seen_cpu_ns, seen_ns;
    /* The thread's own. */
    struct rb_vm_trace_ractor *ractor; /* whose it is */
    struct vm_trace_sample_ring *ring; /* while it has the GVL, or its stacks could not be named; else NULL */
    uint32_t collections;      /* how many had begun when it kept such stacks */
    struct rb_execution_context_struct *ec; /* while it does not */
    uint64_t since_ns;         /* of the phases BLOCKS and COLLECTS */
    bool computes;             /* it had a CPU in the last wait that was charged */
    /* The sampler's own; they stay when the thread has ended. */
    struct vm_trace_thread_file file; /* what tells whether it runs */
    uint32_t cpu_tid;          /* whose CPU time the clock of wall time was compared with last */
    uint64_t delay_ns;         /* how long that one has waited for a CPU, as far as it is charged, */
    bool delayed;              /* and whether it may have waited longer */
    uint32_t unanswered;       /* looks at which it ran, but had not handled the last signal */
    _Atomic bool answered;     /* the handler has run since the last look */
};

/* How time is sampled. */
struct vm_trace_sampling {
    uint64_t period_ns;
    bool cpu;                  /* CPU time is charged, not wall-clock time */
    /* Copies the stack, in the handler: `context` is the third argument of one. */
    void (*take)(struct vm_trace_sampled *thread, void *context);
};

/*
 * Start it. Threads are added by rb_vm_trace_sampled_of. NULL, or why it can't start. World stopped, or
 * one thread.
 */
const char *rb_vm_trace_sampler_start(const struct vm_trace_sampling *sampling);

/* Stop it: no thread is signalled from now on. No lock held. */
void rb_vm_trace_sampler_stop(void);

/* In a forked child: there is no sampler, and nothing is sampled. */
void rb_vm_trace_sampler_after_fork(void);

/* No thread is sampled, and no handler runs: free all. */
void rb_vm_trace_sampler_forget(void);

/* Periods that it was late by; and looks at which the program handled the signal itself. */
uint64_t rb_vm_trace_sampler_late(void);
uint64_t rb_vm_trace_sampler_unhandled(void);

/*
 * The slot with that number of a session; a new one where `session` is another one's. NULL: all are in
 * use, or there is no memory. The thread itself, or the world is stopped.
 */
struct vm_trace_sampled *rb_vm_trace_sampled_of(uint32_t *session, uint32_t *number);

/* That of an earlier call; NULL: it is of another session. Any thread. */
struct vm_trace_sampled *rb_vm_trace_sampled_find(uint32_t session, uint32_t number);

/* The thread has ended. */
void rb_vm_trace_sampled_end(struct vm_trace_sampled *thread);

/* Call it for each thread. World stopped. */
void rb_vm_trace_sampled_each(void (*function)(struct vm_trace_sampled *thread, void *data), void *data);

/*
 * Charge the moments that were due until `now_ns` (rb_vm_trace_clock_system_ns) to the phase that the thread is in,
 * which is about to change. Any thread; takes no lock.
 */
void rb_vm_trace_sampled_charge_due(struct vm_trace_sampled *thread, uint64_t now_ns);

/* The current native thread runs this Ruby thread from now on; NULL: none. */
void rb_vm_trace_sampled_run(struct vm_trace_sampled *thread);

/* What the current native thread runs; NULL: nothing that is sampled. */
struct vm_trace_sampled *rb_vm_trace_sampled_current(void);

/*
 * The current thread takes no signal any more from now on (phase SETTLES), and none is on its way, unless
 * the system does not deliver it within 1 ms.
 */
void rb_vm_trace_sampled_settle(struct vm_trace_sampled *thread);

/* The current thread has the GVL again. If CPU time is sampled: what it took without it counts as blocked. */
void rb_vm_trace_sampled_charge_cpu(struct vm_trace_sampled *thread);

/*
 * The thread waits: note its CPU time, if nobody has. The sampler does that at its first look, so that short waits take
 * no clock; a thread whose wait before was C that computes does it itself, or what is before a late look would be lost.
 * Not under the scheduler's lock.
 */
void rb_vm_trace_sampled_see_wait(struct vm_trace_sampled *thread);

/*
 * What share of a wait that was seen, and that ended at `to_ns`, a thread without the GVL had a CPU for: a
 * method in C computes so. 0: its native thread may have run others. From now on the wait counts as not seen. The
 * thread itself, or who has its ractor's GVL while it waits.
 */
double rb_vm_trace_sampled_cpu_share(struct vm_trace_sampled *thread, uint64_t to_ns);

/* Take what is charged. */
static inline struct vm_trace_charged
sampled_take(struct vm_trace_sampled *thread, enum vm_trace_charge charge)
{
    struct vm_trace_charged charged = { 0, 0 };
    if (!atomic_load_explicit(&thread->charged[charge].ns, memory_order_relaxed)) return charged;
    charged.ns = atomic_exchange_explicit(&thread->charged[charge].ns, 0, memory_order_acquire);
    charged.ticks = atomic_exchange_explicit(&thread->charged[charge].ticks, 0, memory_order_relaxed);
    return charged;
}

static inline void
sampled_charge(struct vm_trace_sampled *thread, enum vm_trace_charge charge, uint64_t ns, uint64_t ticks)
{
    atomic_fetch_add_explicit(&thread->charged[charge].ticks, ticks, memory_order_relaxed);
    atomic_fetch_add_explicit(&thread->charged[charge].ns, ns, memory_order_release);
}

static inline void
sampled_phase(struct vm_trace_sampled *thread, enum vm_trace_phase phase)
{
    atomic_store_explicit(&thread->phase, phase, memory_order_release);
}

#endif /* RUBY_VM_TRACE_STREAMS_SAMPLES_SAMPLER_H */
