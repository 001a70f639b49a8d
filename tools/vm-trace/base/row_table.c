/* row_table.c - see row_table.h */
#define _GNU_SOURCE /* qsort_r */
#include <stdlib.h>
#include <string.h>

#include "base/portable.h"
#include "base/row_table.h"

void
row_table_init(struct row_table *table, size_t row_bytes, unsigned key_words, uint32_t limit)
{
    *table = (struct row_table){.row_bytes = row_bytes, .key_words = key_words, .limit = limit};
}

void
row_table_free(struct row_table *table)
{
    free(table->rows);
    hash_index_free(&table->index);
    table->rows = NULL;
    table->count = table->capacity = 0;
}

static uint64_t
hash_of_key(const struct row_table *table, const uint32_t *key)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < table->key_words; i++) hash = hash * hash_seed.odd[0] + key[i];
    return hash_mix(hash);
}

static uint64_t
hash_of(const void *table, uint32_t number)
{
    return hash_of_key(table, row_table_at(table, number));
}

/* faster than memcmp for the few words of a key */
static bool
same_key(const uint32_t *a, const uint32_t *b, unsigned words)
{
    for (unsigned i = 0; i < words; i++) {
        if (a[i] != b[i]) return false;
    }
    return true;
}

static uint32_t *
slot_of(const struct row_table *table, const uint32_t *key)
{
    uint32_t *slot = hash_index_first(&table->index, hash_of_key(table, key));
    while (*slot != 0 && !same_key(row_table_at(table, *slot - 1), key, table->key_words)) {
        slot = hash_index_next(&table->index, slot);
    }
    return slot;
}

void *
row_table_get(struct row_table *table, const uint32_t *key)
{
    hash_index_reserve(&table->index, table->count, hash_of, table);
    uint32_t *slot = slot_of(table, key);
    if (*slot != 0) return row_table_at(table, *slot - 1);
    if (table->count == table->limit) return NULL;
    if (table->count == table->capacity) {
        table->capacity = (uint32_t)grown_capacity(table->capacity, sizeof table->capacity);
        table->rows = xrealloc(table->rows, table->capacity, table->row_bytes);
    }
    *slot = ++table->count;
    void *row = row_table_at(table, table->count - 1);
    memset(row, 0, table->row_bytes);
    memcpy(row, key, table->key_words * sizeof *key);
    return row;
}

uint32_t
row_table_intern(struct row_table *table, const uint32_t *key, struct budget *budget, bool *added_out)
{
    uint32_t count = table->count, capacity = table->capacity, slots = table->index.slot_count;
    const void *row = row_table_get(table, key);
    size_t grown_slots = table->index.slot_count - slots;
    budget_charge(budget, (table->capacity - capacity) * table->row_bytes + grown_slots * sizeof *table->index.slots);
    if (added_out != NULL) *added_out = table->count > count;
    return row == NULL ? ROW_NONE : row_table_number(table, row);
}

void *
row_table_find(struct row_table *table, const uint32_t *key)
{
    hash_index_reserve(&table->index, table->count, hash_of, table);
    uint32_t number = *slot_of(table, key);
    return number != 0 ? row_table_at(table, number - 1) : NULL;
}

void
row_table_sort(struct row_table *table, int (*compare)(const void *, const void *, void *), void *context)
{
    if (table->count > 1) qsort_r(table->rows, table->count, table->row_bytes, compare, context);
    hash_index_free(&table->index); /* rebuilt when a row is looked for */
}

int
row_key_compare(const void *left, const void *right, unsigned words)
{
    const uint32_t *a = left, *b = right;
    for (unsigned i = 0; i < words; i++) {
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

uint32_t
row_table_range(const struct row_table *table, const uint32_t *key, unsigned words, uint32_t *count_out)
{
    uint32_t first = 0, last = table->count;
    while (first < last) {
        uint32_t middle = first + (last - first) / 2;
        if (row_key_compare(row_table_at(table, middle), key, words) < 0) first = middle + 1;
        else last = middle;
    }
    for (last = first; last < table->count && row_key_compare(row_table_at(table, last), key, words) == 0;) last++;
    *count_out = last - first;
    return first;
}
