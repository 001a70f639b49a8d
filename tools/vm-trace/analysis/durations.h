#ifndef DURATIONS_H
#define DURATIONS_H
/* durations.h - how long things of one kind took: sum, longest, and any quantile within 1 %, in bounded memory.
 *
 * Lengths are counted in buckets: exact below 128 ns, above it 64 of equal width for each power of two.
 */
#include <stdint.h>

struct durations {
    uint64_t count;
    uint64_t total_ns;
    uint64_t shortest_ns;
    uint64_t longest_ns;
    uint32_t *buckets; /* from first_bucket on: those between the shortest and the longest */
    unsigned first_bucket;
    unsigned bucket_count;
};

/* A row of a group: durations of one category and name, numbers of a pool. */
struct named_durations {
    uint32_t category; /* the key */
    uint32_t name;
    struct durations durations;
};
enum { NAMED_DURATIONS_KEYS = 2 };

/* Zeroed durations are empty ones. */
void durations_add(struct durations *durations, uint64_t ns);
/* The length that `part` of them (0 to 1) do not exceed: 0.5 is the median. 0 where there are none. */
uint64_t durations_quantile(const struct durations *durations, double part);
void durations_free(struct durations *durations);

#endif
