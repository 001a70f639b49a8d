#ifndef STATE_CHECK_H
#define STATE_CHECK_H
/* state_check.h - checks the records of the stream `threads` against each other: one thread at a time
 * holds the GVL of a ractor, and a thread is in a `blocked` duration only while it does not.
 *
 * Only processes that schema_check.h checks count, and nothing after a gap.
 */
#include "analysis/duration_pairs.h"
#include "check/schema_check.h"

struct state_check {
    struct reader *reader;
    const struct schema_check *schema;
    struct thread_states states; /* for duration_pairs_new */
    struct row_table threads;
};

/* The reader and the schema check must live as long. */
void state_check_init(struct state_check *check, struct reader *reader, const struct schema_check *schema);
void state_check_free(struct state_check *check);
/* Returns the row of a thread, for duration_pairs.h. */
uint32_t state_check_row(struct state_check *check, uint32_t process, uint32_t tid);
/* Takes a pair of edges with a begin. */
void state_check_pair(struct state_check *check, const struct duration_edge *begin, const struct duration_edge *end);

#endif
