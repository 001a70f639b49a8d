#ifndef RUBY_VM_TRACE_CAPTURE_STREAM_H
#define RUBY_VM_TRACE_CAPTURE_STREAM_H 1
/*
 * The stream interface: what a kind of event (exits, compilations, markers, ...) registers. The
 * session and the ractor states call it through the table (streams/table.c) and know no stream by
 * name. To add a stream, write a file in a folder of streams/ and a line in that table.
 *
 * Each function may be NULL: then the stream has nothing to do at that moment. None of them may
 * raise or allocate a Ruby object.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rb_execution_context_struct;
struct rb_vm_trace_ractor;
struct vm_trace_event;

/* Counters of all streams together. */
#define VM_TRACE_MAX_COUNTERS 32

/* What was recorded; of a ractor, of all, or of those that have ended. */
struct vm_trace_totals {
    uint64_t events;
    uint64_t sampled;      /* events of the `sampled_categories` of streams */
    uint64_t lost;         /* events that should be in the file and are not */
    uint64_t late;         /* of these: because the disk was too slow */
    uint64_t unread;       /* of these: records of the kernel that were not read in time */
    uint64_t counters[VM_TRACE_MAX_COUNTERS]; /* stream_counter */
};

/* How much of a stack the events of a stream have. */
enum vm_trace_stack_part {
    VM_TRACE_STACK_ALL,
    VM_TRACE_STACK_TOP,    /* the innermost frame */
    VM_TRACE_STACK_NONE
};

struct rb_vm_trace_stream {
    const char *name;            /* in --vm-trace=NAME, RubyVM::Trace.start(NAME: true), and the settings of a trace */
    const char *options;         /* that --vm-trace=NAME:OPTION takes, for messages; NULL: none */
    /*
     * Names of its counters in the summary, RubyVM::Trace.status and stop, the last one NULL; NULL:
     * none.
     */
    const char *const *counters;
    uint64_t sampled_categories; /* a bit for each known string whose events count as `sampled` */
    uint64_t default_rate;       /* what it records where no OPTION says so; 0: 1, which is all */
    bool by_name;                /* no preset has it, because it makes compiled code slower */
    bool without_jit;            /* records without trace points in compiled code */
    bool needs_jit;              /* there is nothing to record before a JIT is on: a preset and --vm-trace wait for one
                                    that the program turns on (jit_ready) */
    const char *with;            /* a list as in --vm-trace=LIST: recorded along with it, with these options
                                    unless the user chooses others; NULL: nothing */
    bool takes_min;              /* it has the option min=DURATION (min_ns below) */
    bool takes_stack;            /* and stack=PART (stack_part) */
    bool takes_samples;          /* and samples */
    bool takes_depth;            /* and depth=N (depth) */
    bool starts_in_children;     /* a child that Ruby forks has its file at once, and `start` is called again
                                    there, with the GVL and no lock */
    uint64_t default_min_ns;
    size_t ractor_bytes;         /* of what a ractor keeps for it (stream_state): zeroed, aligned to 256 bytes */

    /*
     * Options. `request` reads one OPTION of --vm-trace=NAME:OPTION ("rate=97") into *rate_out, or
     * into *only_out, as a part of `option`. False: the stream has no such option.
     */
    bool (*request)(const char *option, uint64_t *rate_out, const char **only_out);
    /*
     * Why it can't be recorded like this; NULL: it can. `rate` may be 0: it is not requested. World
     * stopped, as below.
     */
    const char *(*refuse)(uint64_t rate, const char *only);
    /*
     * Before a session is started in a program that runs, and after one has ended: patch compiled code for about
     * `ns`, 0 for as long as it takes, or have it be what it was. Whether there is more to do (vm_trace_jit.h).
     * World stopped.
     */
    bool (*prepare)(uint64_t rate, const char *only, uint64_t ns);
    bool (*restore)(uint64_t ns);

    /*
     * Session. Called with the world stopped, or before the program runs, for each stream, recorded
     * (its rate is not 0) or not. `by_flags`: flags of the JIT have started the session, so
     * compiled code has trace points permanently.
     */
    const char *(*start)(bool by_flags); /* NULL, or why the stream can't be recorded: then all are stopped */
    void (*stop)(void);                  /* before the trace ends */
    void (*end_threads)(void);           /* the trace is about to end, also without `stop`: end threads of the stream's
                                            own. No lock held */
    void (*finalizing)(void);            /* the program has ended: nothing can be named from now on */
    void (*finish)(void);                /* the trace ends, before anything is reported. capture.lock held; the
                                            program does not run */
    void (*ended)(void);                 /* after that */
    void (*forget)(void);                /* no ractor state is left, no code has trace points: free what is left */

    /*
     * What a ractor keeps. capture.lock held for begin, end and count; the ractor's own GVL for
     * epoch.
     */
    bool (*ractor_init)(struct rb_vm_trace_ractor *ractor);  /* it was made. False: no memory */
    void (*ractor_begin)(struct rb_vm_trace_ractor *ractor); /* another trace begins, or a forked child: count from 0 */
    void (*ractor_epoch)(struct rb_vm_trace_ractor *ractor); /* its first event after a reset: count from 0 */
    void (*ractor_end)(struct rb_vm_trace_ractor *ractor);   /* its ractor has ended: keep its counts elsewhere */
    void (*ractor_free)(struct rb_vm_trace_ractor *ractor);
    void (*ractor_count)(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals); /* add its counts */
    /* It has a fresh chunk. */
    void (*chunk_begun)(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

    /* Resets of the flight recorder (ractor_state.h). capture.lock and the caller's GVL held; `caller` may be NULL. */
    bool (*reset_prepare)(void);         /* False: no memory, and the reset does not happen */
    void (*reset)(struct rb_vm_trace_ractor *caller);

    /* Snapshots. capture.lock held for begin and end, which take microseconds. */
    void (*flush)(void);                 /* before one, or before exec: write what is not written yet. No lock held */
    bool (*snapshot_room)(void);         /* False: no memory */
    void (*snapshot_begin)(void);
    void (*snapshot_end)(void);
    /* Write the next few of what only counters say. False: all are written. */
    bool (*snapshot_write)(struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals);

    /* Others. */
    /* The code of an ISEQ is freed, or the ISEQ itself. `ractor` NULL: nothing is written. */
    void (*unit_freed)(uintptr_t unit, bool iseq, struct rb_vm_trace_ractor *ractor,
                       struct rb_execution_context_struct *ec);
    void (*compacted)(void);             /* objects have moved. World stopped, no lock held */
    /*
     * A JIT is on from now on, whether a trace is on or not. NULL, or why what it does can't be
     * recorded. World stopped.
     */
    const char *(*jit_ready)(void);
    /* In the child, all locks held: what is open is the parent's. */
    void (*after_fork)(void);
    void (*thread_renamed)(void);        /* a Ruby thread has another name. GVL held */

    /* What the trace says about the stream. capture.lock held. */
    bool (*write_settings)(struct vm_trace_event *event); /* False: the chunk is full */
    bool (*unreported_p)(void);          /* whether it has counts that are in no event yet */
    /* The trace ends: write what only counters say, and add it to totals. `ractor` may be NULL. */
    void (*report)(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                   struct vm_trace_totals *totals);
    void (*count)(struct vm_trace_totals *totals);        /* add the same to them, without writing */
    /* For the line on stderr; as snprintf. */
    size_t (*describe)(char *text, size_t bytes, const struct vm_trace_totals *totals);

    /* --- set by the table and the session --- */
    uint64_t rate;               /* one event in `rate` is recorded; 0: none is. Changes with the world stopped */
    const char *only;            /* of exits: the one counter whose exits are recorded; NULL: all */
    uint64_t min_ns;             /* only what takes that long has a whole stack */
    enum vm_trace_stack_part stack_part;
    bool samples;                /* stack samples are written, too */
    uint64_t depth;              /* only so many outer levels are recorded */
    size_t offset;               /* of what a ractor keeps, from its state */
    unsigned first_counter;
};

#define VM_TRACE_ANY_DEPTH UINT64_MAX

/* The rate of a stream that is requested without one. */
static inline uint64_t
stream_default_rate(const struct rb_vm_trace_stream *stream)
{
    return stream->default_rate ? stream->default_rate : 1;
}

/* Whether a summary and the status have its counters, even of 0, while it is not recorded: streams of compiled code. */
static inline bool
stream_always_counted_p(const struct rb_vm_trace_stream *stream)
{
    return !stream->without_jit && !stream->by_name;
}

static inline void *
stream_state(const struct rb_vm_trace_stream *stream, const struct rb_vm_trace_ractor *ractor)
{
    return (char *)ractor + stream->offset;
}

/* A counter of a stream, by its index in `counters`. */
static inline uint64_t *
stream_counter(const struct rb_vm_trace_stream *stream, struct vm_trace_totals *totals, unsigned index)
{
    return &totals->counters[stream->first_counter + index];
}

#endif /* RUBY_VM_TRACE_CAPTURE_STREAM_H */
