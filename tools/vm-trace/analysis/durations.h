#ifndef DURATIONS_H
#define DURATIONS_H
/* durations.h - statistics of durations: sum, maximum, and any quantile within 1 %, in bounded
 * memory.
 *
 * Durations are counted in buckets: exact below 128 ns, above that 64 of equal width per power of
 * two.
 */
#include <stdint.h>

#include "base/row_table.h"

struct durations {
    uint64_t count;
    uint64_t total_ns;
    uint64_t shortest_ns;
    uint64_t longest_ns;
    uint32_t *buckets; /* from first_bucket on, from the shortest to the longest duration */
    unsigned first_bucket;
    unsigned bucket_count;
};

/* A row of a row table: the durations of one category and name, both numbers of a pool. */
struct named_durations {
    uint32_t category; /* the key */
    uint32_t name;
    struct durations durations;
};
enum { NAMED_DURATIONS_KEYS = 2, NAMED_DURATIONS_MAX = 4096 };

/* Zeroed durations are empty. */
void durations_add(struct durations *durations, uint64_t ns);
/* Adds all durations of another. */
void durations_merge(struct durations *durations, const struct durations *other);
/* Returns the duration that `part` of them (0 to 1) do not exceed: 0.5 gives the median. 0 if
 * there are none. */
uint64_t durations_quantile(const struct durations *durations, double part);
void durations_free(struct durations *durations);

/* A table of struct named_durations. */
void named_durations_init(struct row_table *rows);
void named_durations_free(struct row_table *rows);
/* Returns false if there are too many names. */
bool named_durations_add(struct row_table *rows, uint32_t category, uint32_t name, uint64_t ns);

#endif
