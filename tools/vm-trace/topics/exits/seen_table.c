/* seen_table.c - see seen_table.h */
#include "analysis/event_args.h"
#include "topics/exits/seen_table.h"
#include "fxt/known_strings.h"

void
seen_table_init(struct seen_table *seen)
{
    row_table_init(&seen->rows, sizeof(struct seen_row), SEEN_ROW_KEYS, SEEN_ROWS_MAX);
}

void
seen_table_free(struct seen_table *seen)
{
    row_table_free(&seen->rows);
}

void
seen_table_add(struct seen_table *seen, struct pool *pool, const struct fxt_event *event, uint32_t reason,
               uint32_t location, uint64_t weight)
{
    uint32_t met = event_text(pool, event, STRING_SEEN);
    if (met == STRING_NONE) return;
    const uint32_t key[SEEN_ROW_KEYS] = {reason, met, location};
    struct seen_row *row = row_table_get(&seen->rows, key);
    if (row != NULL) row->weighted += weight;
    else seen->uncounted += weight;
}

static int
compare(const void *left, const void *right, void *context)
{
    const struct seen_row *a = left, *b = right;
    const struct pool *pool = context;
    if (a->weighted != b->weighted) return a->weighted > b->weighted ? -1 : 1;
    int order = fxt_string_compare(pool_string(pool, a->reason), pool_string(pool, b->reason));
    return order != 0 ? order : fxt_string_compare(pool_string(pool, a->seen), pool_string(pool, b->seen));
}

/* The location with the most exits is that of the sum; of equal ones the first in the alphabet. */
static void
add_to_sum(struct seen_row *sum, const struct seen_row *row, const struct pool *pool)
{
    bool first = sum->weighted == 0;
    sum->weighted += row->weighted;
    if (!first && row->weighted < sum->most) return;
    bool later = !first && row->weighted == sum->most &&
                 fxt_string_compare(pool_string(pool, row->location), pool_string(pool, sum->location)) > 0;
    if (later) return;
    sum->most = row->weighted;
    sum->location = row->location;
}

struct row_table
seen_by_reason(const struct seen_table *seen, const struct pool *pool, uint64_t *sum_out)
{
    enum { REASON_AND_SEEN = 2 };
    struct row_table sums;
    row_table_init(&sums, sizeof(struct seen_row), REASON_AND_SEEN, SEEN_ROWS_MAX);
    *sum_out = 0;
    for (uint32_t i = 0; i < seen->rows.count; i++) {
        const struct seen_row *row = row_table_at(&seen->rows, i);
        *sum_out += row->weighted;
        add_to_sum(row_table_get(&sums, &row->reason), row, pool);
    }
    row_table_sort(&sums, compare, (void *)pool);
    return sums;
}
