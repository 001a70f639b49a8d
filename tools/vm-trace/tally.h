#ifndef TALLY_H
#define TALLY_H
/* tally.h - counts things by a few numbers that tell them apart (numbers of strings, mostly).
 *
 * Memory grows with how many different things there are, up to a limit; what comes after that is counted in one row, `others`.
 */
#include "map.h"
#include "pool.h"

enum { TALLY_KEYS = 5, TALLY_ROWS_MAX = 1024 * 1024 };

struct tally_row {
    uint32_t key[TALLY_KEYS];
    uint64_t records; /* events in the file */
    uint64_t count;   /* what they stand for: scaled by weight */
    uint64_t total_ns;
};

struct tally {
    struct tally_row *rows;
    uint32_t row_count;
    uint32_t row_capacity;
    uint32_t *slots; /* index of row + 1; 0 where free */
    uint32_t slot_count;
    struct tally_row others;
    uint64_t records; /* over all rows */
    uint64_t count;
};

/* A zeroed struct tally is an empty one. */
void tally_free(struct tally *tally);
/* The row of a key, made if need be. Good until the next call. */
struct tally_row *tally_row(struct tally *tally, const uint32_t key[TALLY_KEYS]);
/* Adds to the row of a key and to the sums. */
void tally_add(struct tally *tally, const uint32_t key[TALLY_KEYS], uint64_t records, uint64_t count, uint64_t total_ns);
/* The row of a key, or NULL. */
const struct tally_row *tally_find(const struct tally *tally, const uint32_t key[TALLY_KEYS]);
/* Puts the rows in order: longest total time first, where there are times, then largest count, then by the texts of their
 * keys. Rows can't be added or found after it. */
void tally_sort(struct tally *tally, const struct pool *pool);

#endif
