/* sample_sums.c - see sample_sums.h */
#include <math.h>
#include <stdlib.h>

#include "analysis/label.h"
#include "base/xalloc.h"
#include "topics/samples/sample_sums.h"

uint64_t
sample_times_ns(const struct sample_times *times, bool waits)
{
    uint64_t ns = 0;
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++) {
        if (time_sample_waits((enum time_sample_state)state) == waits) ns += times->ns[state];
    }
    return ns;
}

uint64_t
sample_threads_ns(const struct row_table *threads, bool waits)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct sample_thread *thread = row_table_at(threads, i);
        ns += sample_times_ns(&thread->times, waits);
    }
    return ns;
}

/* Rows of texts, and which stack has counted last for each row. */
struct summing {
    const struct profile *profile;
    bool lines;
    struct row_table rows;
    struct map row_of_text;
    uint32_t *counted; /* by row */
    uint32_t counted_capacity;
};

/* ROW_NONE: there are too many. */
static uint32_t
row_of(struct summing *summing, uint32_t text)
{
    uint32_t row = map_get(&summing->row_of_text, text);
    if (row != MAP_NONE) return row;
    struct pool *pool = reader_pool(summing->profile->reader);
    uint32_t key = summing->lines ? text : label_without_line(pool, text);
    row = row_table_intern(&summing->rows, &key, reader_budget(summing->profile->reader), NULL);
    if (row != ROW_NONE) map_set(&summing->row_of_text, text, row);
    return row;
}

static void
count_once(struct summing *summing, uint32_t row, uint32_t stack, bool waits, uint64_t ns)
{
    while (row >= summing->counted_capacity) {
        uint32_t before = summing->counted_capacity;
        summing->counted_capacity = before > 0 ? 2 * before : 1024;
        summing->counted = xrealloc(summing->counted, summing->counted_capacity, sizeof *summing->counted);
        for (uint32_t i = before; i < summing->counted_capacity; i++) summing->counted[i] = 0;
    }
    if (summing->counted[row] == stack) return;
    summing->counted[row] = stack;
    struct sample_row *counted = row_table_at(&summing->rows, row);
    counted->total_ns[waits] += ns;
}

struct row_table
sample_sums(const struct time_samples *samples, bool lines)
{
    const struct profile *profile = samples->profile;
    struct summing summing = {.profile = profile, .lines = lines};
    row_table_init(&summing.rows, sizeof(struct sample_row), 1, SAMPLE_ROWS_MAX);
    for (uint32_t i = 1; i < profile->node_count; i++) {
        const struct profile_node *end = &profile->nodes[i];
        enum time_sample_state state = time_samples_state(samples, end);
        if (state == TIME_SAMPLE_STATES || end->count == 0) continue;
        uint32_t node = end->parent, row = row_of(&summing, profile->nodes[node].text);
        if (row == ROW_NONE) continue;
        struct sample_row *own = row_table_at(&summing.rows, row);
        sample_times_add(&own->own, state, end->count, end->events);
        for (; node > 0; node = profile->nodes[node].parent) {
            row = row_of(&summing, profile->nodes[node].text);
            if (row != ROW_NONE) count_once(&summing, row, i, time_sample_waits(state), end->count);
        }
    }
    map_free(&summing.row_of_text);
    free(summing.counted);
    return summing.rows;
}

struct order {
    const struct pool *pool;
    bool waits, total;
};

static int
by_times(const void *left, const void *right, void *context)
{
    const struct sample_row *a = left, *b = right;
    const struct order *order = context;
    uint64_t a_ns = sample_times_ns(&a->own, order->waits), b_ns = sample_times_ns(&b->own, order->waits);
    uint64_t a_total = a->total_ns[order->waits], b_total = b->total_ns[order->waits];
    if (order->total && a_total != b_total) return a_total > b_total ? -1 : 1;
    if (a_ns != b_ns) return a_ns > b_ns ? -1 : 1;
    if (a_total != b_total) return a_total > b_total ? -1 : 1;
    return pool_compare(order->pool, a->text, b->text);
}

void
sample_sums_sort(struct row_table *rows, const struct pool *pool, bool waits, bool total)
{
    struct order order = {pool, waits, total};
    row_table_sort(rows, by_times, &order);
}

double
sample_error_ns(uint64_t part_ns, uint64_t whole_ns, uint64_t period_ns)
{
    if (whole_ns == 0 || part_ns >= whole_ns) return 0;
    double share = (double)part_ns / (double)whole_ns;
    return 1.96 * sqrt(share * (1 - share) * (double)period_ns * (double)whole_ns);
}
