#ifndef ROW_TABLE_H
#define ROW_TABLE_H
/* row_table.h - rows that are told apart by a few numbers: a row is a struct of the caller's that begins with them.
 *
 * Memory grows with how many different rows there are, up to a limit.
 */
#include <stddef.h>
#include <stdint.h>

struct row_table {
    void *rows;
    uint32_t count;
    uint32_t limit; /* rows that it takes */
    size_t row_bytes;
    unsigned key_words; /* uint32_t at the start of a row */
    uint32_t capacity;
    uint32_t *slots; /* index of row + 1; 0 where free */
    uint32_t slot_count;
};

void row_table_init(struct row_table *table, size_t row_bytes, unsigned key_words, uint32_t limit);
void row_table_free(struct row_table *table);
/* The row that begins with the key, made of zeros if need be; NULL when there are too many. Good until the next call. */
void *row_table_get(struct row_table *table, const uint32_t *key);
/* The row that begins with the key, or NULL. */
void *row_table_find(const struct row_table *table, const uint32_t *key);
/* Rows in another order, which `compare` tells as for qsort_r. None can be added after it. */
void row_table_sort(struct row_table *table, int (*compare)(const void *, const void *, void *), void *context);

static inline void *
row_table_at(const struct row_table *table, uint32_t index)
{
    return (char *)table->rows + index * table->row_bytes;
}

#endif
