#ifndef RUBY_VM_TRACE_STREAMS_THREADS_THREAD_RECORDS_H
#define RUBY_VM_TRACE_STREAMS_THREADS_THREAD_RECORDS_H 1
/*
 * The records of the stream `threads`: context switches, wake-ups, and what a thread is blocked in.
 * threads.c decides what happened and when; this file writes the records.
 *
 * A program blocks in few places again and again. What such a suspension and the resumption after
 * it consist of is kept as a template, and only times and the waker are filled in.
 */

#include "vm_trace/capture/event.h"

/*
 * What is remembered of a Ruby thread, in rb_thread_t. The thread itself writes it, with the GVL. Only
 * ready_stamp, waker and ready_runs are also written by who wakes it, under the scheduler's lock.
 * `sampled` belongs to the stream `samples`, the rest to `threads`.
 */
struct rb_vm_trace_thread {
    uint64_t host[3];
    struct vm_trace_sampled_slot {
        uint32_t session;   /* of the sampler, that the rest belongs to */
        uint32_t number;    /* of what the sampler knows of the thread */
    } sampled;
    uint64_t trace;         /* that the rest belongs to (trace_id) */
    uint64_t suspended_ns;
    uint64_t ready_stamp;   /* clock_stamp of its wake-up; 0: not yet */
    const void *function;   /* what it is about to block in; NULL: not known */
    uint32_t waker;         /* id of the thread that woke it; 0: none of Ruby's */
    int32_t fd_and_1;       /* 0: none */
    uint32_t label;         /* of the method that blocks, in the ractor's stacks, until it runs again; 0: none */
    uint32_t template_and_1; /* that its suspension was written with; 0: with none */
    uint64_t label_changes; /* the stacks' `changes` when label was stored: it is valid while they are equal */
    uint8_t why;            /* enum rb_vm_trace_suspension */
    bool suspended;
    bool in_blocked;        /* its `blocked` has begun */
    bool stack;             /* the ractor's stacks hold its stack while label_changes is current */
    bool ready_runs;        /* it woke itself and got the GVL at once, so it runs from ready_stamp on */
};
_Static_assert(sizeof(struct rb_vm_trace_thread) <= RB_VM_TRACE_THREAD_BYTES, "vm_core.h reserves that much");

#define VM_TRACE_THREAD_FUNCTIONS 64  /* a power of two, as the next one */
#define VM_TRACE_THREAD_TEMPLATES 256
/* A switch, and the begin of `blocked` with method, descriptor and function. */
#define VM_TRACE_THREAD_TEMPLATE_WORDS (2 + 2 + 3)

struct vm_trace_thread_template {
    uint32_t chunk;         /* the writer's serial that all indexes belong to; 0: there is no template */
    uint32_t label;
    uint64_t label_changes;
    const void *function;
    int32_t fd_and_1;
    uint16_t thread, nobody; /* indexes of threads */
    uint16_t words;
    uint64_t suspended[VM_TRACE_THREAD_TEMPLATE_WORDS];
    uint64_t end, woken, woken_by, waker, runs; /* first words of records, and of an argument, of the resumption */
} __attribute__((aligned(64)));

/* Of a ractor. Zeroed before; rb_vm_trace_thread_records_free ends it. */
struct vm_trace_threads_state {
    uint64_t suspended_ns;  /* when a thread of this ractor gave up the GVL last */
    uint64_t resumed_ns;    /* when one got it last */
    uint64_t suspensions;
    uint64_t left_out;      /* of these: without callers, because they were shorter than `min` */
    struct {                /* that gave up the GVL without having said so before; nothing is written of it yet */
        struct rb_vm_trace_thread *thread; /* NULL: none */
        struct rb_execution_context_struct *ec;
        uint64_t stamp;     /* when: a clock_stamp */
    } late;
    uint32_t cpu_and_1;     /* 0: none yet */
    uint32_t nobody;        /* index of the thread that stands for nobody, if it still is */
    struct {
        const void *function;
        struct vm_trace_string *name; /* NULL: it has none */
    } functions[VM_TRACE_THREAD_FUNCTIONS]; /* by address */
    struct vm_trace_thread_template templates[VM_TRACE_THREAD_TEMPLATES];
};

struct vm_trace_suspension {
    struct vm_trace_threads_state *state; /* of its ractor */
    struct rb_vm_trace_thread *thread;
    enum rb_vm_trace_suspension why;
    uint64_t ns;
    uint64_t runs_from_ns;  /* when it began to run, if that is not recorded yet; else 0 */
    uint32_t label;         /* of the method that it is in, in the ractor's stacks; 0: none */
    size_t frames;          /* of the stack of a preempted thread that are recorded; the ractor's stacks hold them */
};

struct vm_trace_resumption {
    struct vm_trace_threads_state *state;
    const struct rb_vm_trace_thread *thread;
    uint64_t ns, ready_ns;  /* ready_ns 0: not known */
    uint32_t label;         /* of what it blocked in; 0: none */
    bool ends_blocked;
    bool barrier;           /* it was blocked in another ractor's barrier */
    bool stack;             /* the ractor's stacks hold the thread's */
};

/*
 * Give the ractor its CPU number, which its records name. from_ns: the time of its first record. A
 * thread that has run since the trace began says so only later: if another ractor ended meanwhile, that
 * one's number was not free then.
 */
void rb_vm_trace_thread_have_cpu_slow(struct vm_trace_threads_state *state, struct rb_execution_context_struct *ec,
                                      uint64_t from_ns);

static inline void
thread_have_cpu(struct vm_trace_threads_state *state, struct rb_execution_context_struct *ec, uint64_t from_ns)
{
    if (__builtin_expect(!state->cpu_and_1, 0)) rb_vm_trace_thread_have_cpu_slow(state, ec, from_ns);
}

/* Give back the CPU and free names, when the ractor ends. */
void rb_vm_trace_thread_records_free(struct vm_trace_threads_state *state);

/*
 * Write all records of a suspension or a resumption, or none. The caller holds the GVL, and perhaps
 * the scheduler's lock. False: they could not be written, and are counted as lost.
 */
bool rb_vm_trace_thread_write_suspension(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                         const struct vm_trace_suspension *suspension);
bool rb_vm_trace_thread_write_resumption(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                         const struct vm_trace_resumption *resumption);

#endif /* RUBY_VM_TRACE_STREAMS_THREADS_THREAD_RECORDS_H */
