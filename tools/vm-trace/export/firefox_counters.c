/* firefox_counters.c - see firefox_counters.h */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fxt/counter_values.h"
#include "export/firefox_counters.h"

#define VALUE_MAX 1e300 /* so that the difference of two is finite */

void
firefox_counters_init(struct firefox_counters *counters, struct reader *reader)
{
    counters->pool = reader_pool(reader);
    counters->budget = reader_budget(reader);
    row_table_init(&counters->counters, sizeof(struct firefox_counter), 2, FIREFOX_COUNTERS_MAX);
}

static struct firefox_counter *
counter_at(const struct firefox_counters *counters, uint32_t number)
{
    return row_table_at(&counters->counters, number);
}

void
firefox_counters_free(struct firefox_counters *counters)
{
    for (uint32_t i = 0; i < counters->counters.count; i++) free(counter_at(counters, i)->counts);
    row_table_free(&counters->counters);
}

static bool
ends_in_bytes(struct fxt_string name)
{
    static const char unit[] = "bytes";
    const size_t bytes = sizeof unit - 1;
    return name.len >= bytes && memcmp(name.ptr + name.len - bytes, unit, bytes) == 0;
}

bool
firefox_counters_add(struct firefox_counters *counters, uint32_t process, const struct fxt_event *event)
{
    bool all = true;
    for (unsigned i = 0; i < event->arg_count; i++) {
        double value;
        if (!counter_value(&event->args[i], &value)) continue;
        const uint32_t key[2] = {process, counter_name(counters->pool, event, &event->args[i])};
        struct firefox_counter *counter =
            isfinite(value) && fabs(value) < VALUE_MAX ? row_table_get(&counters->counters, key) : NULL;
        if (counter == NULL) {
            all = false;
            continue;
        }
        counter->bytes = ends_in_bytes(event->args[i].name);
        make_room_within(counters->budget, counter->counts, counter->count, counter->capacity);
        counter->counts[counter->count++] = (struct firefox_count){event->ts_ns, event->offset, value};
    }
    return all;
}

static int
compare_counts(const void *left, const void *right)
{
    const struct firefox_count *a = left, *b = right;
    if (a->ts_ns != b->ts_ns) return a->ts_ns < b->ts_ns ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

void
firefox_counters_finish(struct firefox_counters *counters)
{
    for (uint32_t i = 0; i < counters->counters.count; i++) {
        struct firefox_counter *counter = counter_at(counters, i);
        if (counter->count > 1) qsort(counter->counts, counter->count, sizeof *counter->counts, compare_counts);
    }
}
