#ifndef CALL_STACKS_H
#define CALL_STACKS_H
/* call_stacks.h - calls by their whole stack, weighted by own time, for a profile.
 *
 *      call_stacks_init -> call_stacks_event for each event -> call_stacks_file_end after each file
 *      -> call_stacks_free
 *
 * A call is known before its callers. So each call that has no caller yet has the tree of what it called;
 * trees of equal methods are merged as soon as they have the same caller. Memory grows with the number of
 * different stacks, and is charged to the reader's budget.
 */
#include "topics/calls/call_nesting.h"
#include "analysis/profile.h"

/* Children of the call whose callees are being found, by name: only those of this `age` are valid. */
struct call_children {
    struct call_child {
        uint32_t age, node;
    } *list;
    uint32_t names;
    uint32_t age;
};

struct call_stacks {
    struct call_nesting nesting;
    struct profile *profile;
    /* The trees. Number 0 is no node. */
    struct call_node {
        uint32_t name;
        uint32_t child, next; /* its first child; the next one of its caller */
        uint64_t calls;
        int64_t own_ns;
    } *nodes;
    uint32_t count, capacity;
    uint32_t freed; /* the first free node, which has the next one in `next` */
    struct call_children own_children, *children; /* `children` may be those of others */
    struct merge {
        uint32_t into, from;
    } *merges; /* still to be done */
    uint32_t merge_count, merge_capacity;
};

/* Adds to the profile, which must outlive the stacks. `others`: stacks of other profiles with the same pool, which need
 * memory for all names once; or NULL. */
void call_stacks_init(struct call_stacks *stacks, struct profile *profile, struct call_stacks *others);
void call_stacks_free(struct call_stacks *stacks);
void call_stacks_event(struct call_stacks *stacks, const struct fxt_event *event);
void call_stacks_file_end(struct call_stacks *stacks);

#endif
