/* tally.c - see tally.h */
#define _GNU_SOURCE /* qsort_r */
#include <stdlib.h>
#include <string.h>

#include "tally.h"
#include "xalloc.h"

void
tally_free(struct tally *tally)
{
    free(tally->rows);
    free(tally->slots);
    *tally = (struct tally){0};
}

static uint32_t
slot_of(const struct tally *tally, const uint32_t key[TALLY_KEYS])
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < TALLY_KEYS; i++) hash = mix64(hash ^ key[i]);
    uint32_t slot = (uint32_t)hash & (tally->slot_count - 1);
    while (tally->slots[slot] != 0 &&
           memcmp(tally->rows[tally->slots[slot] - 1].key, key, sizeof tally->rows->key) != 0) {
        slot = (slot + 1) & (tally->slot_count - 1);
    }
    return slot;
}

static void
grow(struct tally *tally)
{
    tally->row_capacity = tally->row_capacity ? tally->row_capacity * 2 : 16;
    tally->rows = xrealloc(tally->rows, tally->row_capacity, sizeof *tally->rows);
    free(tally->slots);
    tally->slot_count = tally->row_capacity * 2;
    tally->slots = xcalloc(tally->slot_count, sizeof *tally->slots);
    for (uint32_t i = 0; i < tally->row_count; i++) tally->slots[slot_of(tally, tally->rows[i].key)] = i + 1;
}

struct tally_row *
tally_row(struct tally *tally, const uint32_t key[TALLY_KEYS])
{
    if (tally->row_count == tally->row_capacity && tally->row_count < TALLY_ROWS_MAX) grow(tally);
    uint32_t slot = slot_of(tally, key);
    if (tally->slots[slot] != 0) return &tally->rows[tally->slots[slot] - 1];
    if (tally->row_count == TALLY_ROWS_MAX) return &tally->others;
    struct tally_row *row = &tally->rows[tally->row_count++];
    *row = (struct tally_row){0};
    memcpy(row->key, key, sizeof row->key);
    tally->slots[slot] = tally->row_count;
    return row;
}

void
tally_add(struct tally *tally, const uint32_t key[TALLY_KEYS], uint64_t records, uint64_t count, uint64_t total_ns)
{
    struct tally_row *row = tally_row(tally, key);
    row->records += records;
    row->count += count;
    row->total_ns += total_ns;
    tally->records += records;
    tally->count += count;
}

const struct tally_row *
tally_find(const struct tally *tally, const uint32_t key[TALLY_KEYS])
{
    if (tally->slot_count == 0) return NULL;
    uint32_t index = tally->slots[slot_of(tally, key)];
    return index == 0 ? NULL : &tally->rows[index - 1];
}

static int
by_weight(const void *left, const void *right, void *pool)
{
    const struct tally_row *a = left, *b = right;
    if (a->total_ns != b->total_ns) return a->total_ns > b->total_ns ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    for (unsigned i = 0; i < TALLY_KEYS; i++) {
        if (a->key[i] == b->key[i]) continue;
        if (a->key[i] >= pool_size(pool) || b->key[i] >= pool_size(pool)) return a->key[i] < b->key[i] ? -1 : 1;
        int order = fxt_string_compare(pool_string(pool, a->key[i]), pool_string(pool, b->key[i]));
        return order != 0 ? order : (a->key[i] < b->key[i] ? -1 : 1);
    }
    return 0;
}

void
tally_sort(struct tally *tally, const struct pool *pool)
{
    if (tally->row_count == 0) return;
    qsort_r(tally->rows, tally->row_count, sizeof *tally->rows, by_weight, (void *)pool);
}
