/* durations.c - see durations.h */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/durations.h"
#include "base/xalloc.h"

enum { STEP_BITS = 6, STEPS = 1 << STEP_BITS };

static unsigned
bucket_of(uint64_t ns)
{
    if (ns < UINT64_C(2) * STEPS) return (unsigned)ns;
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - STEP_BITS;
    return shift * STEPS + (unsigned)(ns >> shift);
}

/* The middle of a bucket. */
static uint64_t
length_of(unsigned bucket)
{
    if (bucket < 2 * STEPS) return bucket;
    unsigned shift = bucket / STEPS - 1;
    uint64_t least = (uint64_t)(bucket - shift * STEPS) << shift;
    return least + (UINT64_C(1) << shift) / 2;
}

static uint32_t *
counter_of(struct durations *durations, unsigned bucket)
{
    unsigned first = durations->first_bucket, end = first + durations->bucket_count;
    if (durations->bucket_count == 0) first = bucket, end = bucket + 1;
    else if (bucket < first) first = bucket;
    else if (bucket >= end) end = bucket + 1;
    if (end - first > durations->bucket_count) {
        uint32_t *buckets = xcalloc(end - first, sizeof *buckets);
        if (durations->bucket_count > 0) {
            memcpy(buckets + (durations->first_bucket - first), durations->buckets,
                   durations->bucket_count * sizeof *buckets);
        }
        free(durations->buckets);
        durations->buckets = buckets;
        durations->first_bucket = first;
        durations->bucket_count = end - first;
    }
    return &durations->buckets[bucket - durations->first_bucket];
}

void
durations_add(struct durations *durations, uint64_t ns)
{
    uint32_t *counter = counter_of(durations, bucket_of(ns));
    if (*counter < UINT32_MAX) ++*counter;
    if (durations->count == 0 || ns < durations->shortest_ns) durations->shortest_ns = ns;
    if (ns > durations->longest_ns) durations->longest_ns = ns;
    durations->count++;
    durations->total_ns += ns;
}

void
durations_merge(struct durations *durations, const struct durations *other)
{
    if (other->count == 0) return;
    for (unsigned i = 0; i < other->bucket_count; i++) {
        if (other->buckets[i] == 0) continue;
        uint32_t *counter = counter_of(durations, other->first_bucket + i);
        *counter = other->buckets[i] > UINT32_MAX - *counter ? UINT32_MAX : *counter + other->buckets[i];
    }
    if (durations->count == 0 || other->shortest_ns < durations->shortest_ns)
        durations->shortest_ns = other->shortest_ns;
    if (other->longest_ns > durations->longest_ns) durations->longest_ns = other->longest_ns;
    durations->count += other->count;
    durations->total_ns += other->total_ns;
}

uint64_t
durations_quantile(const struct durations *durations, double part)
{
    uint64_t rank = (uint64_t)ceil(part * (double)durations->count), seen = 0;
    for (unsigned i = 0; i < durations->bucket_count; i++) {
        seen += durations->buckets[i];
        if (seen < rank) continue;
        uint64_t ns = length_of(durations->first_bucket + i);
        if (ns < durations->shortest_ns) return durations->shortest_ns;
        return ns > durations->longest_ns ? durations->longest_ns : ns;
    }
    return durations->longest_ns;
}

void
durations_free(struct durations *durations)
{
    free(durations->buckets);
    *durations = (struct durations){0};
}

void
named_durations_init(struct row_table *rows)
{
    row_table_init(rows, sizeof(struct named_durations), NAMED_DURATIONS_KEYS, NAMED_DURATIONS_MAX);
}

void
named_durations_free(struct row_table *rows)
{
    for (uint32_t i = 0; i < rows->count; i++)
        durations_free(&((struct named_durations *)row_table_at(rows, i))->durations);
    row_table_free(rows);
}

bool
named_durations_add(struct row_table *rows, uint32_t category, uint32_t name, uint64_t ns)
{
    const uint32_t key[NAMED_DURATIONS_KEYS] = {category, name};
    struct named_durations *row = row_table_get(rows, key);
    if (row != NULL) durations_add(&row->durations, ns);
    return row != NULL;
}
