#ifndef RUBY_VM_TRACE_STREAMS_CALLS_OPEN_CALLS_H
#define RUBY_VM_TRACE_STREAMS_CALLS_OPEN_CALLS_H 1
/*
 * Calls: every frame of methods, blocks and methods in C, from its beginning to its end.
 *
 * Who pushes a frame reports that it begins, and who pops it reports that it has ended: the
 * interpreter (frames.c) and patched machine code (vm_trace_jit.h). Each execution context has a
 * private stack of its open calls. A call is written when it ends, as one record of three words.
 *
 *     control frames     main ─ A ─ B       inner frames lie at lower addresses
 *     open calls         main ─ A ─ B       each has the address of its frame, and when it began
 *
 * The VM also pops frames without a report, for instance when an exception jumps out of C. So with
 * each report all calls end whose frames are inside the innermost frame: a missed end is only late.
 *
 * While a fiber does not run, its calls stay open. That time is written as one more stretch, inside of the
 * innermost call, so it is nobody's own time.
 */

#include "vm_trace/capture/event.h"
#include "vm_trace/streams/calls/calls.h"

/* What a call has not recorded of the calls inside it, and how the trace sees its ends. */
struct vm_trace_open_call {
    uintptr_t frame;             /* UINTPTR_MAX: what is outside of all calls */
    uint64_t begin_ns;
    const struct vm_trace_string *name; /* NULL: not recorded (--vm-trace-methods), or no memory for a name */
    uint64_t header;             /* of its record in the chunk below, but for the thread */
    uint64_t recorded_ns;        /* of recorded calls inside it, the outermost ones */
    uint64_t left_out;           /* calls inside it, and not inside recorded ones, that were left out */
    uint64_t left_out_ns;        /* of these the outermost ones, without recorded calls */
    uint32_t chunk;              /* of the writer; 0: none */
    uint16_t slot;               /* where its name is kept */
    bool began_before;           /* its frame was open when recording began */
};
_Static_assert(sizeof(struct vm_trace_open_call) == 64, "a line of the cache");

/* Of an execution context. Used by the thread that runs it, GVL held. */
struct rb_vm_trace_calls {
    struct rb_vm_trace_calls *next, **link; /* in the list of all; guarded by its lock */
    struct rb_vm_trace_calls **slot;        /* of the execution context, that points here */
    struct rb_execution_context_struct *ec;
    const struct rb_vm_trace_ractor *ractor; /* only compared: it may be gone */
    uint64_t trace;              /* that all this belongs to (trace_id) */
    uint64_t changes;            /* trace_changes, when it was looked at last */
    uint64_t last_ns;            /* of what began or ended last: no two calls begin at once */
    uint64_t suspended_ns;       /* when the thread left the fiber for another one; 0: it runs, or has no open call */
    struct vm_trace_thread_id id; /* its track */
    uint64_t thread;             /* index of the track in a header, while the three below are the writer's */
    uint32_t chunk, reused, renamed;
    uint32_t generation;         /* of the list that it is in */
    uint32_t epoch;              /* no call began before it, but those that were open then */
    char *track;                 /* of a copy, or a fiber: the name of the track, of so many bytes; NULL: `ec` has it */
    size_t track_bytes;
    bool copy;                   /* for a snapshot */
    struct vm_trace_open_call *open; /* open[0] stands for no call */
    struct vm_trace_open_call *top;  /* the innermost call */
    struct vm_trace_open_call *last; /* there is no memory for more */
    struct vm_trace_open_call *deepest; /* that is recorded (depth=N) */
};

/* Texts that a ractor keeps before it looks which ones are in use: some 2 MB of them. */
enum { VM_TRACE_CALL_TEXTS = 1 << 14 };

/* The frames of a ractor that were named last, by what identifies a label. */
enum { CALL_NAMES = 1024 };
struct vm_trace_call_name {
    const struct rb_iseq_struct *iseq;
    uintptr_t method;
    const struct vm_trace_string *text; /* NULL: such calls are not recorded */
    uint64_t header;             /* as in struct vm_trace_open_call */
    uint32_t chunk;
};

/* What a ractor keeps for the stream. */
struct vm_trace_ractor_calls {
    uint64_t written, left_out;  /* number of calls */
    uint64_t changes;            /* the names below were made before this changed (trace_changes) */
    uint32_t *held;              /* bit map by the id of a text: the ractor has a reference */
    uint32_t held_words;
    struct vm_trace_string **texts; /* these references: where they are many, those in use stay */
    size_t text_count, text_capacity;
    size_t texts_kept;           /* of these, when that was looked at last */
    struct rb_execution_context_struct *switched_to; /* a fiber that is not known yet was resumed; only compared */
    uint64_t switched_ns;        /* when */
    struct vm_trace_call_name names[CALL_NAMES + 1]; /* the last one: that of the time in which a fiber does not run */
};

static inline struct vm_trace_ractor_calls *
calls_of(const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(&rb_vm_trace_calls, ractor);
}

/* --- names (call_names.c) --- */

/* Where the name of a frame is kept. */
static inline uint16_t
call_name_slot(const struct rb_iseq_struct *iseq, uintptr_t method)
{
    uint64_t hash = ((uint64_t)(uintptr_t)iseq ^ (uint64_t)method << 7) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint16_t)(hash >> 54 & (CALL_NAMES - 1));
}

/* Make the name of a frame that is not there. The frame is on the stack. */
const struct vm_trace_call_name *rb_vm_trace_call_name_slow(struct rb_vm_trace_ractor *ractor,
                                                            const struct vm_trace_call_frame *frame);
/* Something was freed that may have a name, or has moved. */
void rb_vm_trace_call_names_forget(struct vm_trace_ractor_calls *calls);
/* Give back all references. */
void rb_vm_trace_call_names_release(struct vm_trace_ractor_calls *calls);

/* --- events (call_events.c) --- */

/* Of a call that has no arguments. */
#define VM_TRACE_CALL_WORDS 3

/* What the trace does not see of a call. */
enum vm_trace_call_end { VM_TRACE_CALL_ENDED, VM_TRACE_CALL_OPEN, VM_TRACE_CALL_ABANDONED };

/*
 * Write a call of `calls` that ended at `end_ns`, or was still open then, or never ends: that of a fiber
 * that nobody can resume. False: it could not be written, and is counted.
 */
bool rb_vm_trace_call_write_slow(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_calls *calls,
                                 const struct vm_trace_open_call *call, uint64_t end_ns, enum vm_trace_call_end end);

/* --- private stacks (open_calls.c) --- */

/* Write what is open in all execution contexts, by way of `ractor`. World stopped, or the process ends. */
void rb_vm_trace_open_calls_report(struct rb_vm_trace_ractor *ractor);

/* Call the function with the name of each open call of a ractor. Its GVL held. */
void rb_vm_trace_open_calls_each_name(const struct rb_vm_trace_ractor *ractor,
                                      void (*function)(const struct vm_trace_string *name, void *data), void *data);

/* For snapshots (stream.h): what is open in the current ractor. */
void rb_vm_trace_open_calls_snapshot_begin(void);
bool rb_vm_trace_open_calls_snapshot_write(struct rb_vm_trace_ractor *ractor);
void rb_vm_trace_open_calls_snapshot_end(void);

/* Free all, and clear the words of execution contexts. World stopped. */
void rb_vm_trace_open_calls_free_all(void);

/* In a forked child. */
void rb_vm_trace_open_calls_after_fork(void);

#endif /* RUBY_VM_TRACE_STREAMS_CALLS_OPEN_CALLS_H */
