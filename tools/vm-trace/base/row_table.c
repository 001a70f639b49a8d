/* row_table.c - see group.h. Open addressing, linear probing, at limit half full. */
#define _GNU_SOURCE /* qsort_r */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/row_table.h"
#include "base/xalloc.h"

void
row_table_init(struct row_table *table, size_t row_bytes, unsigned key_words, uint32_t limit)
{
    *table = (struct row_table){.row_bytes = row_bytes, .key_words = key_words, .limit = limit};
}

void
row_table_free(struct row_table *table)
{
    free(table->rows);
    free(table->slots);
    table->rows = table->slots = NULL;
    table->count = table->capacity = table->slot_count = 0;
}

static uint32_t
slot_of(const struct row_table *table, const uint32_t *key)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < table->key_words; i++) hash = hash * UINT64_C(0x9e3779b97f4a7c15) + key[i];
    uint32_t slot = (uint32_t)mix64(hash) & (table->slot_count - 1);
    while (table->slots[slot] != 0 &&
           memcmp(row_table_at(table, table->slots[slot] - 1), key, table->key_words * sizeof *key) != 0) {
        slot = (slot + 1) & (table->slot_count - 1);
    }
    return slot;
}

static void
grow(struct row_table *table)
{
    table->capacity = (uint32_t)grown_capacity(table->capacity, sizeof table->capacity);
    table->rows = xrealloc(table->rows, table->capacity, table->row_bytes);
    free(table->slots);
    table->slot_count = (uint32_t)grown_capacity(table->capacity, sizeof table->slot_count);
    table->slots = xcalloc(table->slot_count, sizeof *table->slots);
    for (uint32_t i = 0; i < table->count; i++) table->slots[slot_of(table, row_table_at(table, i))] = i + 1;
}

void *
row_table_get(struct row_table *table, const uint32_t *key)
{
    if (table->count == table->capacity && table->count < table->limit) grow(table);
    uint32_t slot = slot_of(table, key);
    if (table->slots[slot] != 0) return row_table_at(table, table->slots[slot] - 1);
    if (table->count == table->limit) return NULL;
    table->slots[slot] = ++table->count;
    void *row = row_table_at(table, table->count - 1);
    memset(row, 0, table->row_bytes);
    memcpy(row, key, table->key_words * sizeof *key);
    return row;
}

void *
row_table_find(const struct row_table *table, const uint32_t *key)
{
    if (table->count == 0) return NULL;
    uint32_t slot = slot_of(table, key);
    return table->slots[slot] != 0 ? row_table_at(table, table->slots[slot] - 1) : NULL;
}

void
row_table_sort(struct row_table *table, int (*compare)(const void *, const void *, void *), void *context)
{
    if (table->count > 1) qsort_r(table->rows, table->count, table->row_bytes, compare, context);
}
