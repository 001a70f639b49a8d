#ifndef LOST_STACKS_H
#define LOST_STACKS_H
/* lost_stacks.h - weights the stacks of exits by the time that they lost.
 *
 * Only recorded exits have a stack, and an exit that was not recorded may have lost most. So if the
 * trace has the sums of its sites, the recorded exits of a place share what all exits of that place
 * lost: in proportion to what they lost themselves, or equally if that is unknown. A place without
 * recorded exits gets a stack of its own frame. All stacks together add up to the sums of the sites,
 * as in a report.
 */
#include "base/map.h"
#include "base/row_table.h"
#include "fxt/reader.h"

struct lost_stacks {
    struct row_table places; /* see lost_stacks.c */
    struct row_table parts;
    struct map summarized; /* pids of processes with a summary: all their sites are there */
};

void lost_stacks_init(struct lost_stacks *stacks);
void lost_stacks_free(struct lost_stacks *stacks);
/* A recorded exit whose stack is the caller's number `node`. */
void lost_stacks_exit(struct lost_stacks *stacks, struct pool *pool, uint32_t node, const struct fxt_event *event);
/* An event trace/site or trace/summary. */
void lost_stacks_trace(struct lost_stacks *stacks, struct pool *pool, const struct fxt_event *event);

/* Receives the sums. */
struct lost_visitor {
    void *context;
    /* The number of recorded exits of a stack, and the time that it lost, with its share of the exits
     * that were not recorded. */
    void (*stack)(void *context, uint32_t node, uint64_t events, uint64_t ns);
    /* The exits of a place without a recorded one. Texts are numbers of the pool. */
    void (*place)(void *context, uint32_t location, uint32_t reason, uint64_t ns);
};
/* After the last event. */
void lost_stacks_finish(struct lost_stacks *stacks, const struct lost_visitor *visitor);

#endif
