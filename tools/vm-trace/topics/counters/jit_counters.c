/* jit_counters.c - see jit_counters.h */
#include <string.h>

#include "analysis/event_args.h"
#include "analysis/label.h"
#include "fxt/known_strings.h"
#include "topics/counters/jit_counters.h"

void
jit_counters_init(struct jit_counters *counters)
{
    row_table_init(&counters->rows, sizeof(struct counter_row), COUNTER_ROW_KEYS, COUNTER_ROWS_MAX);
    counters->uncounted = 0;
}

void
jit_counters_free(struct jit_counters *counters)
{
    row_table_free(&counters->rows);
}

void
jit_counters_add(struct jit_counters *counters, struct pool *pool, const struct fxt_event *event, uint32_t run)
{
    const uint32_t key[COUNTER_ROW_KEYS] = {event_text(pool, event, STRING_COUNTER),
                                            event_text(pool, event, STRING_LOCATION), run};
    struct counter_row *row = row_table_get(&counters->rows, key);
    uint64_t hits = event_uint(event, STRING_HITS, 0);
    if (row != NULL) row->hits += hits;
    else counters->uncounted += hits;
}

/* `line` counted `hits` of the sum. The sum has the line with most hits; of equal ones the first in the alphabet. */
static void
add_to_sum(struct method_counter *sum, const struct pool *pool, uint32_t method, uint32_t line, uint64_t hits)
{
    bool first = sum->hits == 0;
    sum->hits += hits;
    if (!first && (hits < sum->most || (hits == sum->most && pool_compare(pool, line, sum->location) >= 0))) return;
    sum->method = method;
    sum->location = line;
    sum->most = hits;
}

static int
compare(const void *left, const void *right, void *context)
{
    const struct method_counter *a = left, *b = right;
    if (a->hits != b->hits) return a->hits > b->hits ? -1 : 1;
    int order = pool_compare(context, a->counter, b->counter);
    return order != 0 ? order : pool_compare(context, a->method, b->method);
}

struct row_table
jit_counters_by_method(const struct jit_counters *counters, struct pool *pool)
{
    struct row_table sums;
    row_table_init(&sums, sizeof(struct method_counter), METHOD_COUNTER_KEYS, COUNTER_ROWS_MAX);
    for (uint32_t i = 0; i < counters->rows.count; i++) {
        const struct counter_row *row = row_table_at(&counters->rows, i);
        const uint32_t key[METHOD_COUNTER_KEYS] = {row->counter, label_without_line(pool, row->location)};
        struct method_counter *sum = row_table_get(&sums, key); /* not more than there are rows */
        add_to_sum(sum, pool, key[1], row->location, row->hits);
        sum->lines++;
    }
    row_table_sort(&sums, compare, pool);
    return sums;
}

struct row_table
jit_counters_by_name(const struct row_table *methods, const struct pool *pool)
{
    struct row_table sums;
    row_table_init(&sums, sizeof(struct method_counter), 1, COUNTER_ROWS_MAX);
    for (uint32_t i = 0; i < methods->count; i++) {
        const struct method_counter *row = row_table_at(methods, i);
        struct method_counter *sum = row_table_get(&sums, &row->counter);
        add_to_sum(sum, pool, row->method, row->method, row->hits);
        sum->lines += row->lines;
    }
    row_table_sort(&sums, compare, (void *)pool);
    return sums;
}

bool
jit_counter_slow_p(struct fxt_string name)
{
    static const char *const prefixes[] = {"send_fallback_", "setivar_fallback_", "getivar_fallback_",
                                           "definedivar_fallback_", "exit_"};
    for (unsigned i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(name.ptr, prefixes[i], strlen(prefixes[i])) == 0) return true;
    }
    return false;
}
