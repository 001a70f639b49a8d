#ifndef RUBY_VM_TRACE_STREAMS_CODE_VERSIONS_H
#define RUBY_VM_TRACE_STREAMS_CODE_VERSIONS_H 1
/*
 * Version histories of compiled ISEQs: what all events of one ISEQ have in common, so that they can
 * be joined.
 *
 * An ISEQ is known from its first compilation until it is freed. It has one label for all that
 * time, and while it has been invalidated and not compiled again, a number: that of the `reprofile`
 * span and of the flow that joins the exit, the invalidation and the compilation.
 */

#include "vm_trace/capture/event.h"

/* The stream of invalidations. */
extern struct rb_vm_trace_stream rb_vm_trace_invalidations;

/* What a ractor keeps for it. */
struct vm_trace_version_state {
    struct {
        const struct rb_vm_trace_site *site; /* the recompile exit that the JIT acts upon; NULL: none */
        uint64_t start_ns;
        uint64_t flow;           /* that it began, or 0 */
        uint64_t weight;         /* its weight; 0: it is not recorded */
        bool dropped;            /* its trace has ended meanwhile, and another one began */
    } exiting;
    struct vm_trace_string *violated; /* name of the invalidation that is open */
    struct vm_trace_string *why;      /* the same of a version's */
};

static inline struct vm_trace_version_state *
versions_of(const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(&rb_vm_trace_invalidations, ractor);
}

/* Words of a flow event that says nothing but its number. */
#define EVENT_FLOW_WORDS 3

/*
 * Write a part of the flow that joins an exit, an invalidation and a compilation, or (STRING_THROW) the
 * exits of a throw and its catch. It has the time of its event and comes right after it; this binds
 * it to the event. False: the chunk is full.
 */
static inline bool
write_flow(struct rb_vm_trace_writer *writer, unsigned thread, uint64_t ns, enum fxt_event_type type,
           enum known_string name, uint64_t id)
{
    enum known_string category = name == STRING_THROW ? STRING_THROW : STRING_REPROFILE;
    uint64_t *to = writer_reserve(writer, EVENT_FLOW_WORDS);
    if (!to) return false;
    to[1] = ns;
    to[2] = id;
    writer_publish(writer, EVENT_FLOW_WORDS,
                   fxt_event_header(type, EVENT_FLOW_WORDS, 0, thread, (unsigned)category, (unsigned)name));
    writer_count_events(writer, 1);
    return true;
}

/* The same at the time and on the thread of an event. */
static inline bool
event_flow(const struct vm_trace_event *of, enum fxt_event_type type, enum known_string name, uint64_t id)
{
    return write_flow(of->writer, of->thread, of->record[1], type, name, id);
}

struct vm_trace_version_history {
    struct vm_trace_version_history *next;    /* in its bucket */
    uintptr_t unit;                /* identity of the ISEQ: its first pc */
    struct vm_trace_string *label;
    uint64_t reprofile;            /* number of the open span, or 0 */
    bool flow;                     /* has a flow of that number as well */
};

/*
 * The version history of an ISEQ, made when it has none (its label is then that of the innermost
 * frame, if that runs it). NULL when there is no memory. capture.lock held, here and below.
 */
struct vm_trace_version_history *rb_vm_trace_version_history_of(const struct rb_iseq_struct *iseq);

/* Its label, when it has a life; the caller owns a reference. Else NULL. */
struct vm_trace_string *rb_vm_trace_version_history_label(uintptr_t unit);

/*
 * A number that no other span or flow of this process or of a concurrent process has. Any thread;
 * capture.lock need not be held.
 */
uint64_t rb_vm_trace_version_history_number(void);

/* The ISEQ is freed: end what is open, in `ractor` when that is not NULL. Takes capture.lock. */
void rb_vm_trace_version_history_end(uintptr_t unit, struct rb_vm_trace_ractor *ractor,
                                     struct rb_execution_context_struct *ec);

/* In the child of a fork: what is open is the parent's. capture.lock held. */
void rb_vm_trace_version_histories_after_fork(void);

/* Free everything. */
void rb_vm_trace_version_histories_free(void);

/* Live ISEQs that are known: for tests and bounds. */
size_t rb_vm_trace_version_history_count(void);

/*
 * The ractor counts for another trace: an exit that is being acted upon belongs to the one before.
 */
void rb_vm_trace_version_state_begin(struct rb_vm_trace_ractor *ractor);

#endif /* RUBY_VM_TRACE_STREAMS_CODE_VERSIONS_H */
