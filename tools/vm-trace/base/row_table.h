#ifndef ROW_TABLE_H
#define ROW_TABLE_H
/* row_table.h - rows that are found by a key of a few numbers: a row is a struct of the caller's that
 * begins with the uint32_t of its key.
 *
 * Memory grows with the number of different rows, up to a limit.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/hash_index.h"

struct row_table {
    void *rows;
    uint32_t count;
    uint32_t limit; /* of rows */
    size_t row_bytes;
    unsigned key_words; /* uint32_t at the start of a row */
    uint32_t capacity;
    struct hash_index index;
};

void row_table_init(struct row_table *table, size_t row_bytes, unsigned key_words, uint32_t limit);
void row_table_free(struct row_table *table);
/* The row with this key. Adds a row of zeros behind the key where there is none; NULL when the table
 * is full. Good until the next call. */
void *row_table_get(struct row_table *table, const uint32_t *key);
/* The row with this key, or NULL. */
void *row_table_find(struct row_table *table, const uint32_t *key);
/* Sorts the rows; `compare` is as for qsort_r. */
void row_table_sort(struct row_table *table, int (*compare)(const void *, const void *, void *), void *context);

static inline void *
row_table_at(const struct row_table *table, uint32_t number)
{
    return (char *)table->rows + number * table->row_bytes;
}

#endif
