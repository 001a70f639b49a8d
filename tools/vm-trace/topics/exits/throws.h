#ifndef THROWS_H
#define THROWS_H
/* throws.h - exits in pairs: where a `break` or a `return` of a block leaves compiled code, and where
 * an outer frame catches it. If the recorder records every exit, it joins both exits by a flow of the
 * category `throw`.
 */
#include <stdbool.h>

#include "base/row_table.h"
#include "fxt/reader.h"

enum { THROW_ROWS_MAX = 64 * 1024, THROW_ROW_KEYS = 2, THROW_THREADS_MAX = 256 * 1024 };

struct throw_row {
    uint32_t thrown_at; /* the key: the innermost frame of the one exit */
    uint32_t caught_at; /* and of the other */
    uint64_t count;     /* pairs */
    uint64_t lost_ns;   /* by both exits together */
};

struct throws {
    struct row_table rows;    /* of struct throw_row */
    struct row_table threads; /* what each thread did last */
    uint64_t uncounted;       /* pairs that have no row, because the table is full */
};

void throws_init(struct throws *throws);
void throws_free(struct throws *throws);
/* Takes an exit of a thread, which is a number of the caller's; `wanted`: by the caller's filter. */
void throws_exit(struct throws *throws, struct pool *pool, const struct fxt_event *event, uint32_t thread, bool wanted);
/* Takes an event of the category `throw`. A pair counts if one of its exits is wanted. */
void throws_flow(struct throws *throws, const struct fxt_event *event, uint32_t thread);
/* Sorts the rows: the most lost time first, then the most pairs. Returns their sum. */
struct throw_row throws_sort(struct throws *throws, const struct pool *pool);

#endif
