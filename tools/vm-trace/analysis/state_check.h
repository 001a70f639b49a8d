#ifndef STATE_CHECK_H
#define STATE_CHECK_H
/* state_check.h - checks the records of the stream `threads` against each other: one thread at a time
 * holds the GVL of a ractor, and a thread is in a `blocked` duration only while it does not.
 *
 * Only processes that schema_check.h checks count, and nothing after a gap.
 */
#include "analysis/duration_pairs.h"
#include "analysis/schema_check.h"

struct state_check;

/* The reader and the schema check must live as long. */
struct state_check *state_check_new(struct reader *reader, const struct schema_check *schema);
void state_check_free(struct state_check *check);
void state_check_object(struct state_check *check, const struct fxt_object *object);
/* Passes the changes of a scheduling record to the pairs, whose visitor hands them back in order of
 * time to state_check_edge. */
void state_check_sched(struct state_check *check, struct duration_pairs *pairs, const struct fxt_sched *sched);
/* Returns the row of a thread, for duration_pairs_add. */
uint32_t state_check_row(struct state_check *check, uint32_t pid, uint32_t tid);
void state_check_edge(struct state_check *check, const struct duration_edge *edge);
/* Takes a pair of edges with a begin. */
void state_check_pair(struct state_check *check, const struct duration_edge *begin, const struct duration_edge *end);

#endif
