#ifndef TABLES_STACKS_H
#define TABLES_STACKS_H
/* tables_stacks.h - the tables stacks and frames of one process: each stack and each frame once.
 *
 * Ids are hashes of texts, so equal frames and stacks of a whole fleet have equal ids. They are positive and
 * have 63 bits, because many databases have no unsigned numbers: two of a million different stacks share an id
 * with a probability of one in nine million.
 */
#include "analysis/frames.h"
#include "base/map.h"
#include "export/tables_rows.h"

struct table_stacks {
    struct pool *pool;
    struct fxt_string process; /* its key */
    struct rows *stacks, *frames;
    struct map known_frames; /* text -> index of its id */
    ARRAY_OF(int64_t) frame_ids;
    struct map known_stacks; /* id -> 1 */
    struct frames rest;      /* reused, as the next one */
    ARRAY_OF(int64_t) stack;
};

/* The rows and the pool are the caller's, and must live as long. */
void table_stacks_init(struct table_stacks *stacks, struct pool *pool, struct fxt_string process,
                       struct rows *stack_rows, struct rows *frame_rows);
void table_stacks_free(struct table_stacks *stacks);
/* Returns the id of a frame, by its label in the pool; 0 for STRING_NONE. Writes a row for a new one. */
int64_t table_frame_id(struct table_stacks *stacks, uint32_t label);
/* Returns the id of an event's backtrace, or 0 if it has none. Writes its rows if it is new. */
int64_t table_stack_id(struct table_stacks *stacks, const struct fxt_event *event);

#endif
