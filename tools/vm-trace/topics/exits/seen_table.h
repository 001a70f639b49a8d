#ifndef SEEN_TABLE_H
#define SEEN_TABLE_H
/* seen_table.h - what the guards of exits have met: the argument `seen`, by reason and place.
 *
 * Traces of older modules do not have it. Not all exits have a guard, so sums count only the events
 * with `seen`.
 */
#include <stdbool.h>

#include "base/row_table.h"
#include "fxt/reader.h"

enum { SEEN_ROWS_MAX = 64 * 1024, SEEN_ROW_KEYS = 3 };

struct seen_row {
    uint32_t reason; /* the key: what was expected */
    uint32_t seen;
    uint32_t location; /* the innermost frame */
    uint64_t weighted; /* the sum of the weights of the events */
    uint64_t most;     /* of seen_by_reason: that of the location */
};

struct seen_table {
    struct row_table rows; /* of struct seen_row */
    uint64_t uncounted;    /* weight of the events that have no row, because the table is full */
};

void seen_table_init(struct seen_table *seen);
void seen_table_free(struct seen_table *seen);
/* Counts an exit, if it has the argument `seen`. */
void seen_table_add(struct seen_table *seen, struct pool *pool, const struct fxt_event *event, uint32_t reason,
                    uint32_t location, uint64_t weight);
/* The rows by reason and `seen`, the largest first, each with its most frequent location. The caller
 * frees the table. sum_out: of all weights. */
struct row_table seen_by_reason(const struct seen_table *seen, const struct pool *pool, uint64_t *sum_out);

#endif
