#ifndef RUBY_VM_TRACE_CAPTURE_RACTOR_STATE_H
#define RUBY_VM_TRACE_CAPTURE_RACTOR_STATE_H 1
/*
 * What one ractor records with, and what all ractors share.
 *
 * A ractor state holds the ractor's writer, clock and stack table, and behind them what each stream
 * keeps for a ractor (stream.h). It is used under the GVL of its ractor, so two threads are never
 * in it at once, and it is freed when the ractor ends. The list of all is guarded by capture.lock.
 */

#include "vm_trace/vm_trace_jit.h"
#include "vm_trace/base/clock.h"
#include "vm_trace/capture/stack_table.h"
#include "vm_trace/capture/stream.h"
#include "vm_trace/store/writer.h"

struct rb_vm_trace_ractor {
    struct rb_vm_trace_ractor *next;
    struct rb_vm_trace_ractor **link; /* what points here; NULL: not in the list, for its trace has ended */
    uint64_t lost;               /* events that should be in the file and are not */
    uint64_t late;               /* of these: because the disk was too slow */
    uint64_t unread;             /* of these: records of the kernel that were not read in time */
    uint32_t number;             /* distinguishes its counters from those of other ractors; 0: the first */
    uint32_t epoch;              /* that its counts (lost, events, those of streams) belong to; read by others */
    uint64_t from_ns;            /* no event of it is earlier */
    struct vm_trace_clock clock;
    struct rb_vm_trace_writer writer;
    struct rb_vm_trace_stacks stacks;
};

/*
 * What streams keep is aligned to so many bytes, and that of the first one in the table begins
 * here.
 */
#define VM_TRACE_STATE_ALIGN ((size_t)256)
#define VM_TRACE_FIRST_STATE ((sizeof(struct rb_vm_trace_ractor) + VM_TRACE_STATE_ALIGN - 1) / VM_TRACE_STATE_ALIGN * VM_TRACE_STATE_ALIGN)

enum vm_trace_state {
    VM_TRACE_OFF,     /* never started, or ended */
    VM_TRACE_PENDING, /* child of a fork: the file is made when there is something to write */
    VM_TRACE_ON
};

extern struct vm_trace_capture {
    pthread_mutex_t lock;        /* guards the list, the totals and the change of state */
    int state;                   /* enum vm_trace_state; read without the lock */
    bool by_flags;               /* compiled code has trace points permanently; sites and ractor states stay */
    bool before_program;         /* a flag of the JIT or --vm-trace started the trace: no code was compiled before */
    bool ended;                  /* the process ends: nothing is traced any more */
    bool subscribed;             /* hooks subscribe to every exit */
    const char *jit;             /* "ZJIT" or "YJIT"; static */
    uint32_t pid;
    uint64_t begin_ns;           /* of this process' trace: no event is earlier */
    uint32_t stack_frames;       /* innermost frames that are recorded of each stack; 0: all. Changes only while no trace is on */
    bool in_memory;              /* the trace goes to memory: a reset may come */
    struct rb_vm_trace_chunk_file file;
    struct rb_vm_trace_shared shared; /* for ractors that find no chunk of their own; and orphaned chunks */
    uint32_t first_epoch;        /* of this trace: before any reset */
    uint64_t since_ns[2];        /* when an epoch began, by its low bit (rb_vm_trace_epoch_begin_ns) */
    struct rb_vm_trace_ractor *ractors;
    uint32_t last_number;        /* of a ractor state */
    struct rb_vm_trace_ractor *overflow; /* for ractors that no memory was there for: counts losses */
    bool overflow_used;          /* there was such a ractor */
    struct vm_trace_totals dead;      /* of ractors that have ended, and of sites */
    struct vm_trace_totals dead_base; /* what was there at the last reset */
    uint64_t dead_ns;                 /* and no event of theirs is later */

    struct rb_vm_trace_stream *const *streams; /* the last one is NULL; set before anything is recorded */
    size_t ractor_bytes;         /* of a ractor state, with what streams keep */
    /*
     * The session's: make the file of a forked child and begin it in the ractor's writer. False: it
     * can't be made
     */
    bool (*begin_child_file)(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);
} rb_vm_trace_capture;

/* For each stream that has such a function. The arguments are names, which take no parentheses: NOLINTBEGIN(bugprone-macro-parentheses) */
#define EACH_STREAM(stream, function)                                                                                  \
    for (struct rb_vm_trace_stream *const *at_ = rb_vm_trace_capture.streams, *stream; at_ && (stream = *at_) != NULL; \
         at_++)                                                                                                        \
        if (!stream->function) continue;                                                                               \
        else
/* NOLINTEND(bugprone-macro-parentheses) */

static inline bool
trace_on(void)
{
    return __builtin_expect(__atomic_load_n(&rb_vm_trace_capture.state, __ATOMIC_ACQUIRE) != VM_TRACE_OFF, 1);
}

/*
 * Identifies the trace that is on; not 0. A forked child has another one than its parent: what began
 * there does not end here.
 */
static inline uint64_t
trace_id(void)
{
    return (UINT64_C(1) << 32) | rb_vm_trace_capture.first_epoch;
}

/*
 * Whether anything needs sites and ractor states: a trace, hooks, or code that has trace points
 * permanently.
 */
static inline bool
trace_wanted(void)
{
    return trace_on() || rb_vm_trace_capture.subscribed || (rb_vm_trace_capture.by_flags && !rb_vm_trace_capture.ended);
}

/*
 * The state of the ractor of `ec`, which may be NULL, to record into. NULL: no trace is on, or the ractor has no state of
 * its own. GVL held.
 */
static inline struct rb_vm_trace_ractor *
recording_ractor(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = ec && trace_on() ? rb_vm_trace_host_ractor(ec) : NULL;
    return ractor != rb_vm_trace_capture.overflow ? ractor : NULL;
}

/*
 * The same for an event: it counts as lost where the ractor has no state of its own, unless that is because the ractor
 * has ended. `ec` is not NULL.
 */
static inline struct rb_vm_trace_ractor *
recording_ractor_or_lost(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = trace_on() ? rb_vm_trace_host_ractor(ec) : NULL;
    if (ractor != rb_vm_trace_capture.overflow) return ractor;
    if (ractor) __atomic_fetch_add(&ractor->lost, 1, __ATOMIC_RELAXED);
    return NULL;
}

/*
 * Give each stream the place of what a ractor keeps for it, and of its counters. Called once, while
 * the program is loaded. `streams` is static.
 */
void rb_vm_trace_capture_register(struct rb_vm_trace_stream *const *streams);

/*
 * Give the ractor's writer a chunk to write into: makes the file of a forked child if that is
 * still to be done. False: no more room, or no file. GVL held.
 */
bool rb_vm_trace_ractor_next_chunk(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/*
 * A ractor state without a list, of zeros and not initialized; NULL: no memory. For the writer of a
 * snapshot.
 */
struct rb_vm_trace_ractor *rb_vm_trace_ractor_zeros(void);

/*
 * Make the overflow state, if there is none, and have it count from 0, in a new epoch. Before
 * rb_vm_trace_ractor_begin. False: no memory.
 */
bool rb_vm_trace_ractor_begin_overflow(void);

/*
 * Count from 0, and know nothing of what happened before. For those that flags have made, whose
 * trace begins anew.
 */
void rb_vm_trace_ractor_begin(struct rb_vm_trace_ractor *ractor);

/*
 * A state for a native thread of the tracer's own, in the list as those of ractors are. It is freed as
 * they are. NULL: no memory. Takes capture.lock.
 */
struct rb_vm_trace_ractor *rb_vm_trace_ractor_own(void);

/* The one that the current thread, which is of the tracer, records with; NULL: another thread. */
extern __thread struct rb_vm_trace_ractor *rb_vm_trace_own_ractor;

/* Give each ractor a new state, or free what each has. World stopped. */
void rb_vm_trace_ractor_renew_all(void);
void rb_vm_trace_ractor_free_all(void);

/*
 * All that was counted since the last reset, less what streams add by `count`. capture.lock held.
 */
struct vm_trace_totals rb_vm_trace_ractor_totals(void);

/*
 * No event of any ractor is later: clocks of ractors differ by the little that each is off. World
 * stopped.
 */
uint64_t rb_vm_trace_ractor_latest_ns(void);

/*
 * The state of the ractor of `ec`. One that began while a trace was started may have none yet, and
 * gets it. NULL: there is no memory. GVL held.
 */
struct rb_vm_trace_ractor *rb_vm_trace_ractor_of(struct rb_execution_context_struct *ec);

/*
 * The state of the current thread's ractor, and the thread's `ec`. NULL: it runs no Ruby, or its
 * ractor shares the overflow state.
 */
struct rb_vm_trace_ractor *rb_vm_trace_ractor_current(struct rb_execution_context_struct **ec_out);

/* --- resets of the flight recorder ---------------------------------------------------------------------
 *
 * A reset begins an epoch and touches no ractor. Each notices at its next event, under its own GVL,
 * and counts from 0: that event is the first of the epoch. A note in the chunk says so, because clocks
 * of ractors can differ by more than any margin: what counts and what a snapshot copies must not depend
 * on them.
 */

/*
 * Begin an epoch. `caller` is the current ractor's state, whose sampling starts again; NULL: none's
 * does. False: no memory, and nothing was done. capture.lock held, the caller's GVL held, no ractor
 * stopped.
 */
bool rb_vm_trace_ractor_reset(struct rb_vm_trace_ractor *caller);

/*
 * The epoch, and when it began: no event of it is earlier, and hardly one from before it is later. Ns of
 * CLOCK_BOOTTIME. Any thread.
 */
uint64_t rb_vm_trace_epoch_begin_ns(uint32_t *epoch_out);

/* For the function below. */
void rb_vm_trace_ractor_begin_epoch(struct rb_vm_trace_ractor *ractor);

/*
 * Before something is counted in a ractor state: count from 0 when there was a reset. Its owner,
 * GVL held.
 */
static inline void
ractor_notice_reset(struct rb_vm_trace_ractor *ractor)
{
    /* What writes a snapshot is in no list and has no resets. */
    if (__builtin_expect(ractor->epoch != trace_epoch() && ractor->link, 0)) rb_vm_trace_ractor_begin_epoch(ractor);
}

/*
 * What the ractor writes into its chunk, or the one that it borrows, belongs to its epoch. Memory only:
 * what goes to a file has no resets. False: the chunk is full. Its owner, GVL held.
 */
static inline bool
ractor_note_epoch(struct rb_vm_trace_ractor *ractor)
{
    struct rb_vm_trace_writer *writer = &ractor->writer;
    if (__builtin_expect(writer->epoch == ractor->epoch, 1) || !rb_vm_trace_capture.in_memory) return true;
    return rb_vm_trace_writer_note_epoch(writer, ractor->epoch);
}

#endif /* RUBY_VM_TRACE_CAPTURE_RACTOR_STATE_H */
