/* row_table.c - see group.h. Open addressing, linear probing, at most half full. */
#define _GNU_SOURCE /* qsort_r */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/row_table.h"
#include "base/xalloc.h"

void
group_init(struct group *group, size_t row_bytes, unsigned key_words, uint32_t most)
{
    *group = (struct group){.row_bytes = row_bytes, .key_words = key_words, .most = most};
}

void
group_free(struct group *group)
{
    free(group->rows);
    free(group->slots);
    group->rows = group->slots = NULL;
    group->count = group->capacity = group->slot_count = 0;
}

static uint32_t
slot_of(const struct group *group, const uint32_t *key)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < group->key_words; i++) hash = hash * UINT64_C(0x9e3779b97f4a7c15) + key[i];
    uint32_t slot = (uint32_t)mix64(hash) & (group->slot_count - 1);
    while (group->slots[slot] != 0 &&
           memcmp(group_at(group, group->slots[slot] - 1), key, group->key_words * sizeof *key) != 0) {
        slot = (slot + 1) & (group->slot_count - 1);
    }
    return slot;
}

static void
grow(struct group *group)
{
    group->capacity = (uint32_t)grown_capacity(group->capacity, sizeof group->capacity);
    group->rows = xrealloc(group->rows, group->capacity, group->row_bytes);
    free(group->slots);
    group->slot_count = (uint32_t)grown_capacity(group->capacity, sizeof group->slot_count);
    group->slots = xcalloc(group->slot_count, sizeof *group->slots);
    for (uint32_t i = 0; i < group->count; i++) group->slots[slot_of(group, group_at(group, i))] = i + 1;
}

void *
group_row(struct group *group, const uint32_t *key)
{
    if (group->count == group->capacity && group->count < group->most) grow(group);
    uint32_t slot = slot_of(group, key);
    if (group->slots[slot] != 0) return group_at(group, group->slots[slot] - 1);
    if (group->count == group->most) return NULL;
    group->slots[slot] = ++group->count;
    void *row = group_at(group, group->count - 1);
    memset(row, 0, group->row_bytes);
    memcpy(row, key, group->key_words * sizeof *key);
    return row;
}

void *
group_find(const struct group *group, const uint32_t *key)
{
    if (group->count == 0) return NULL;
    uint32_t slot = slot_of(group, key);
    return group->slots[slot] != 0 ? group_at(group, group->slots[slot] - 1) : NULL;
}

void
group_sort(struct group *group, int (*compare)(const void *, const void *, void *), void *context)
{
    if (group->count > 1) qsort_r(group->rows, group->count, group->row_bytes, compare, context);
}
