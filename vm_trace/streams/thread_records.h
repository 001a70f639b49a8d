#ifndef RUBY_VM_TRACE_STREAMS_THREAD_RECORDS_H
#define RUBY_VM_TRACE_STREAMS_THREAD_RECORDS_H 1
/*
 * The records of the stream `threads`: context switches, wake-ups, and what a thread is blocked in.
 * threads.c decides what happened and when; here it becomes words in the file.
 *
 * A program blocks in few places again and again. What such a suspension and the resumption after
 * it consist of is kept as a template, and only times and the waker are filled in.
 */

#include "vm_trace/capture/event.h"

/*
 * What is remembered of a Ruby thread, in rb_thread_t. Written by the thread itself with the GVL,
 * except for what `ready` notes.
 */
struct rb_vm_trace_thread {
    uint64_t host;
    uint64_t trace;         /* that the rest belongs to (trace_id) */
    uint64_t suspended_ns;
    uint64_t ready_stamp;   /* clock_stamp of when it was woken; 0: not yet. The scheduler's lock guards the next two, too */
    const void *function;   /* what it is about to block in; NULL: not known */
    uint32_t waker;         /* id of the thread that woke it; 0: none of Ruby's */
    int32_t fd_and_1;       /* 0: none */
    uint32_t label;         /* of the method that blocks, in the ractor's stacks, until it runs again; 0: none */
    uint32_t template_and_1; /* that its suspension was written with; 0: with none */
    uint64_t label_changes; /* rb_vm_trace_changes that label belongs to */
    uint8_t why;            /* enum rb_vm_trace_suspension */
    bool suspended;
    bool in_blocked;        /* its `blocked` has begun */
    bool stack;             /* the ractor's stacks hold its own, as long as label_changes says */
    bool ready_runs;        /* it woke itself and got the GVL at once: it has run since ready_stamp */
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
    uint64_t left_out;      /* of these: whose callers were left out, for they were shorter than `min` */
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
    uint64_t runs_from_ns;  /* it was not seen to begin to run; 0: it was */
    uint32_t label;         /* of the method that it is in, in the ractor's stacks; 0: none */
    size_t frames;          /* of its stack, which the ractor's stacks hold, to be recorded of a preempted one; 0: none */
};

struct vm_trace_resumption {
    struct vm_trace_threads_state *state;
    const struct rb_vm_trace_thread *thread;
    uint64_t ns, ready_ns;  /* ready_ns 0: not known */
    uint32_t label;         /* of what it blocked in; 0: none */
    bool ends_blocked;
    bool stack;             /* the ractor's stacks hold the thread's */
};

/* Make the strings. False: no memory. */
bool rb_vm_trace_thread_records_init(void);

/*
 * Have the ractor's number of a CPU ready, which its records name. Before the time of an event is
 * read: writing it may take so long, where it needs a chunk, that another ractor ends meanwhile.
 * Its CPU is not free at that time.
 */
void rb_vm_trace_thread_have_cpu_slow(struct vm_trace_threads_state *state, struct rb_execution_context_struct *ec);

static inline void
thread_have_cpu(struct vm_trace_threads_state *state, struct rb_execution_context_struct *ec)
{
    if (__builtin_expect(!state->cpu_and_1, 0)) rb_vm_trace_thread_have_cpu_slow(state, ec);
}

/* Give back the CPU and free names, when the ractor ends. */
void rb_vm_trace_thread_records_free(struct vm_trace_threads_state *state);

/*
 * Write a suspension, a resumption: all of its records or none. GVL held, and the scheduler's lock
 * may be. What can't be written is counted as lost. False: it was.
 */
bool rb_vm_trace_thread_write_suspension(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                         const struct vm_trace_suspension *suspension);
bool rb_vm_trace_thread_write_resumption(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                         const struct vm_trace_resumption *resumption);

#endif /* RUBY_VM_TRACE_STREAMS_THREAD_RECORDS_H */
