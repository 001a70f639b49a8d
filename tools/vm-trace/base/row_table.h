#ifndef ROW_TABLE_H
#define ROW_TABLE_H
/* row_table.h - rows that are told apart by a few numbers: a row is a struct of the caller's that begins with them.
 *
 * Memory grows with how many different rows there are, up to a limit.
 */
#include <stddef.h>
#include <stdint.h>

struct group {
    void *rows;
    uint32_t count;
    uint32_t most; /* rows that it takes */
    size_t row_bytes;
    unsigned key_words; /* uint32_t at the start of a row */
    uint32_t capacity;
    uint32_t *slots; /* index of row + 1; 0 where free */
    uint32_t slot_count;
};

void group_init(struct group *group, size_t row_bytes, unsigned key_words, uint32_t most);
void group_free(struct group *group);
/* The row that begins with the key, made of zeros if need be; NULL when there are too many. Good until the next call. */
void *group_row(struct group *group, const uint32_t *key);
/* The row that begins with the key, or NULL. */
void *group_find(const struct group *group, const uint32_t *key);
/* Rows in another order, which `compare` tells as for qsort_r. None can be added after it. */
void group_sort(struct group *group, int (*compare)(const void *, const void *, void *), void *context);

static inline void *
group_at(const struct group *group, uint32_t index)
{
    return (char *)group->rows + index * group->row_bytes;
}

#endif
