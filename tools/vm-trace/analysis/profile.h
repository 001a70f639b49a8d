#ifndef PROFILE_H
#define PROFILE_H
/* profile.h - exits by their whole backtrace: a tree of frames, with the number of exits at each
 * node.
 *
 * Memory grows with the number of distinct stacks, not of events, and is charged to the reader's
 * budget.
 */
#include "analysis/frames.h"
#include "base/map.h"
#include "fxt/reader.h"

enum profile_kind { PROFILE_EXITS, PROFILE_FALLBACKS };

/* A node is a stack: its frame, called by those of its parents. Node 0, the root, is not a
 * frame. */
struct profile_node {
    uint32_t parent;
    uint32_t text;   /* label of the frame, or a reason */
    bool reason;     /* a leaf that is a reason, not a frame */
    uint64_t events; /* that ended at this node */
    uint64_t count;  /* sum of their weights */
};

struct profile {
    struct reader *reader;
    enum profile_kind kind;
    bool with_reasons;
    struct profile_node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    struct map node_of;      /* parent and text -> node */
    struct map node_of_rest; /* argument "10+" -> the innermost node of its frames */
    struct frames rest;
    uint64_t events;
    uint64_t count;
    int64_t first_ns, last_ns; /* of all events of the traces; first_ns > last_ns: there are none */
};

/* with_reasons: each stack ends with its reason, as if that were the innermost frame. */
void profile_init(struct profile *profile, struct reader *reader, enum profile_kind kind, bool with_reasons);
void profile_free(struct profile *profile);
/* For the reader's visitor: context is the profile. */
void profile_event(void *context, const struct fxt_event *event);

/* The frame for those that a trace left out: outermost, and the same for all stacks. */
#define PROFILE_LEFT_OUT "(more frames)"

#endif
