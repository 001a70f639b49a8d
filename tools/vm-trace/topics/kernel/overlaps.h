#ifndef OVERLAPS_H
#define OVERLAPS_H
/* overlaps.h - the time that two sequences of intervals have in common, for many keys.
 *
 *      overlaps_init -> overlaps_add for both sides -> overlaps_finish -> overlaps_ns -> overlaps_free
 *
 * The intervals of one side do not overlap, and come in order of time; the sides, one before the other or
 * mixed. An interval is dropped when the other side has passed it.
 */
#include "base/interval.h"
#include "base/row_table.h"

enum { OVERLAPS_KEYS = 2, OVERLAPS_ROWS_MAX = 256 * 1024 };

struct overlap {
    uint32_t key[OVERLAPS_KEYS];
    bool any; /* intervals of the first side */
    struct interval_queue {
        struct interval *list;
        uint32_t first, count, capacity;
    } sides[2];
    uint64_t ns;
};

struct overlaps {
    struct interval window; /* the caller may set it */
    struct row_table rows;  /* of struct overlap */
    bool any_order; /* intervals come in any order: they are compared by overlaps_finish */
    /* NULL, or a function of the caller: gets each interval that both sides of a key have in common. */
    void *context;
    void (*common)(void *context, const uint32_t key[OVERLAPS_KEYS], struct interval both);
};

void overlaps_init(struct overlaps *overlaps);
void overlaps_free(struct overlaps *overlaps);
/* Adds an interval to side 0 or 1. With too many keys, it does not count. */
void overlaps_add(struct overlaps *overlaps, const uint32_t key[OVERLAPS_KEYS], unsigned side,
                  struct interval interval);
/* All of these keys were added; the sums stay. */
void overlaps_finish(struct overlaps *overlaps);
/* Returns the sum of a key; NULL if its first side has no interval. */
const uint64_t *overlaps_ns(struct overlaps *overlaps, const uint32_t key[OVERLAPS_KEYS]);

#endif
