#ifndef ROW_TABLE_H
#define ROW_TABLE_H
/* row_table.h - rows that are found by a key of a few numbers. A row is a struct of the caller's
 * that begins with the uint32_t of its key.
 *
 * Memory grows with the number of distinct rows, up to a limit.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_index.h"
#include "base/xalloc.h"

enum { ROW_NONE = UINT32_MAX };

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
/* Returns the row with this key. If there is none, adds a row of zeros with the key; or returns
 * NULL if the table is full. The row is valid until the next call. */
void *row_table_get(struct row_table *table, const uint32_t *key);
/* The same as row_table_get for tables whose rows are known by their numbers: returns the number of
 * the row, or ROW_NONE if the table is full, and charges the growth of the table to the budget.
 * *added_out (unless NULL): whether the row is new. */
uint32_t row_table_intern(struct row_table *table, const uint32_t *key, struct budget *budget, bool *added_out);
/* Returns the row with this key, or NULL. */
void *row_table_find(struct row_table *table, const uint32_t *key);
/* Sorts the rows; `compare` is as for qsort_r. */
void row_table_sort(struct row_table *table, int (*compare)(const void *, const void *, void *), void *context);
/* Compares the first words of the keys that two rows begin with. */
int row_key_compare(const void *left, const void *right, unsigned words);
/* Searches a table that is sorted by row_key_compare for the rows that begin with these words. Returns the number of
 * the first one. */
uint32_t row_table_range(const struct row_table *table, const uint32_t *key, unsigned words, uint32_t *count_out);

static inline void *
row_table_at(const struct row_table *table, uint32_t number)
{
    return (char *)table->rows + number * table->row_bytes;
}

static inline uint32_t
row_table_number(const struct row_table *table, const void *row)
{
    return (uint32_t)((size_t)((const char *)row - (const char *)table->rows) / table->row_bytes);
}

#endif
