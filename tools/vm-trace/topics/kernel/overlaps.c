/* overlaps.c - see overlaps.h */
#include <stdlib.h>
#include <string.h>

#include "topics/kernel/overlaps.h"

enum { PASSED_MOST = 4096 /* intervals that are dropped at a time */ };

void
overlaps_init(struct overlaps *overlaps)
{
    *overlaps = (struct overlaps){.window = {INT64_MIN, INT64_MAX}};
    row_table_init(&overlaps->rows, sizeof(struct overlap), OVERLAPS_KEYS, OVERLAPS_ROWS_MAX);
}

static void
free_queues(struct overlap *row)
{
    for (unsigned side = 0; side < 2; side++) {
        free(row->sides[side].list);
        row->sides[side] = (struct interval_queue){0};
    }
}

void
overlaps_free(struct overlaps *overlaps)
{
    for (uint32_t i = 0; i < overlaps->rows.count; i++) free_queues(row_table_at(&overlaps->rows, i));
    row_table_free(&overlaps->rows);
}

static void
pass(struct interval_queue *queue)
{
    if (++queue->first < PASSED_MOST || queue->first < queue->count / 2) return;
    queue->count -= queue->first;
    memmove(queue->list, queue->list + queue->first, queue->count * sizeof *queue->list);
    queue->first = 0;
}

/* Compares as far as both sides are known. */
static void
compare_sides(const struct overlaps *overlaps, struct overlap *row)
{
    struct interval_queue *a = &row->sides[0], *b = &row->sides[1];
    while (a->first < a->count && b->first < b->count) {
        struct interval left = a->list[a->first], right = b->list[b->first];
        struct interval both = {left.from_ns > right.from_ns ? left.from_ns : right.from_ns,
                                left.to_ns < right.to_ns ? left.to_ns : right.to_ns};
        row->ns += interval_common_ns(overlaps->window, both);
        if (overlaps->common != NULL && both.from_ns < both.to_ns) overlaps->common(overlaps->context, row->key, both);
        pass(left.to_ns <= right.to_ns ? a : b);
    }
}

void
overlaps_add(struct overlaps *overlaps, const uint32_t key[OVERLAPS_KEYS], unsigned side,
             struct interval interval)
{
    struct overlap *row = row_table_get(&overlaps->rows, key);
    if (row == NULL || interval.to_ns <= interval.from_ns) return;
    struct interval_queue *queue = &row->sides[side];
    if (side == 0) row->any = true;
    make_room(queue->list, queue->count, queue->capacity);
    queue->list[queue->count++] = interval;
    if (!overlaps->any_order) compare_sides(overlaps, row);
}

static int
compare_intervals(const void *left, const void *right)
{
    const struct interval *a = left, *b = right;
    return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

void
overlaps_finish(struct overlaps *overlaps)
{
    for (uint32_t i = 0; i < overlaps->rows.count; i++) {
        struct overlap *row = row_table_at(&overlaps->rows, i);
        for (unsigned side = 0; side < 2 && overlaps->any_order; side++) {
            struct interval_queue *queue = &row->sides[side];
            if (queue->count > 0) qsort(queue->list, queue->count, sizeof *queue->list, compare_intervals);
        }
        compare_sides(overlaps, row);
        free_queues(row);
    }
    overlaps->any_order = false;
}

const uint64_t *
overlaps_ns(struct overlaps *overlaps, const uint32_t key[OVERLAPS_KEYS])
{
    const struct overlap *row = row_table_find(&overlaps->rows, key);
    return row != NULL && row->any ? &row->ns : NULL;
}
