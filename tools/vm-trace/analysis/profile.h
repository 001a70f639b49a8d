#ifndef PROFILE_H
#define PROFILE_H
/* profile.h - events by their whole backtrace: a tree of frames, with what ended at each node: a number
 * of exits or of time slices, the time that exits lost, blocked time, allocated bytes, bytes of objects
 * that are alive, own time of calls, sampled time.
 *
 *      profile_init -> profile_event and profile_object for each event and name -> profile_finish
 *      -> the nodes -> profile_free
 *
 * call_stacks.h adds calls, time_samples.h samples of time. Blocked time is not in the events: report_data.h
 * adds it (struct report, `blocked_stacks`), because it also knows when a thread was woken. So both count
 * the same.
 *
 * Memory grows with the number of distinct stacks, not of events, and is charged to the reader's
 * budget.
 */
#include "analysis/frame_owner.h"
#include "analysis/frames.h"
#include "analysis/lost_stacks.h"
#include "analysis/thread_table.h"
#include "base/map.h"
#include "fxt/reader.h"

/*
 * PROFILE_ALIVE: objects that are alive at the end, with what they hold by malloc. PROFILE_LOST: exits by
 * the time that they lost, see lost_stacks.h.
 */
enum profile_kind {
    PROFILE_EXITS, PROFILE_FALLBACKS, PROFILE_BLOCKED, PROFILE_PREEMPTED, PROFILE_ALLOCATIONS, PROFILE_ALIVE,
    PROFILE_CALLS, PROFILE_SAMPLES, PROFILE_LOST
};
enum { PROFILE_KINDS = PROFILE_LOST + 1 };

/* What a kind counts, for messages and formats. */
struct profile_names {
    const char *kind;   /* for --kind */
    const char *things; /* a trace without them has an empty profile */
    const char *type;   /* of the sums */
    const char *unit;   /* of the sums: count, nanoseconds, bytes */
};
extern const struct profile_names profile_names[PROFILE_KINDS];

/* A node is a stack: its frame, called by those of its parents. Node 0, the root, is not a
 * frame. */
struct profile_node {
    uint32_t parent;
    uint32_t text;   /* label of the frame, or another text */
    bool reason;     /* a reason, a class or a thread, not a frame */
    uint64_t events; /* that ended at this node */
    uint64_t count;  /* sum of their weights; blocked: ns */
};

struct profile {
    struct reader *reader;
    enum profile_kind kind;
    bool with_reasons;
    struct frame_owners *app_only; /* frames of others are left out; NULL: all are in */
    /* NULL, or a function of the caller: whether a call, or a place without recorded exits, counts. The reason of a
     * call is STRING_NONE. */
    bool (*picks)(void *context, uint32_t reason, uint32_t label);
    void *picks_context;
    bool with_threads; /* each stack begins with its thread; false after profile_init */
    struct threads threads;
    struct profile_node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    struct map node_of;      /* parent and text -> node */
    struct map node_of_rest; /* root and argument "10+" -> the innermost node of its frames */
    struct frames rest;
    struct lost_stacks lost;
    struct row_table objects; /* of PROFILE_ALIVE: see profile.c */
    struct map ended;         /* the same: processes whose traces say what is alive, or are parts */
    uint64_t events;
    uint64_t count;
    int64_t first_ns, last_ns; /* of all events of the traces; first_ns > last_ns: there are none */
    /* NULL, or a function of the caller: profile_event has added an event to a node. */
    void *context;
    void (*added)(void *context, uint32_t node, const struct fxt_event *event, uint64_t weight);
};

/* with_reasons: each stack ends with its reason, or with the class of the allocated object, as if that
 * were the innermost frame. */
void profile_init(struct profile *profile, struct reader *reader, enum profile_kind kind, bool with_reasons);
void profile_free(struct profile *profile);
/* For the reader's visitor: context is the profile. */
void profile_event(void *context, const struct fxt_event *event);
void profile_object(void *context, const struct fxt_object *object);
/* After the last event: the nodes have their counts. */
void profile_finish(struct profile *profile);
/* Adds what another profile of this kind has, which may be of another reader. */
void profile_merge(struct profile *into, const struct profile *from);
/* Whether something ended at a node. */
static inline bool
profile_ends_at(const struct profile_node *node)
{
    return node->events > 0 || node->count > 0;
}

/* For callers that build stacks themselves. profile_child returns the node of a text below another
 * node; profile_thread that of a thread below the root (name: STRING_NONE if it has none), or the root
 * if stacks have no threads; profile_stack that of an event's frames from `first` on, or `root` if it
 * has none. If the budget is used up, reading stops, and they return the node that they have. */
uint32_t profile_child(struct profile *profile, uint32_t parent, uint32_t text, bool reason);
uint32_t profile_thread(struct profile *profile, uint32_t name, uint32_t tid);
uint32_t profile_stack(struct profile *profile, uint32_t root, const struct fxt_event *event, unsigned first);
/* Where a stack ends: its node, or FRAME_OUTSIDE below it if all of its frames are left out. */
uint32_t profile_end_of(struct profile *profile, uint32_t node);
/* Adds an event with this weight. */
void profile_add(struct profile *profile, uint32_t node, uint64_t weight);
/* Adds several events with this sum of their weights. */
void profile_add_many(struct profile *profile, uint32_t node, uint64_t events, uint64_t weight);

/* The frame for those that a trace left out: outermost, and the same for all stacks. */
#define PROFILE_LEFT_OUT FRAMES_LEFT_OUT
/* For the callers of what blocked, where the trace has none. */
#define PROFILE_NO_STACK "(no stack)"

#endif
