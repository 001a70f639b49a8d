/* page_series.c - see page_series.h */
#include "analysis/event_args.h"
#include "page/page_series.h"
#include "fxt/known_strings.h"

void
page_series_init(struct page_series *series)
{
    *series = (struct page_series){0};
    row_table_init(&series->keys, sizeof(struct series_key), SERIES_KEYS, SERIES_MAX);
}

void
page_series_free(struct page_series *series)
{
    row_table_free(&series->keys);
    time_histogram_free(&series->over_time);
}

/* Returns the row of the histogram; ROW_NONE: there are too many. */
static uint32_t
row_of(struct page_series *series, struct series_key key, enum series_measure measure)
{
    key.measure = measure;
    const struct series_key *known = row_table_get(&series->keys, &key.subject);
    if (known == NULL) {
        series->uncounted++;
        return ROW_NONE;
    }
    return row_table_number(&series->keys, known) | (measure == SERIES_LONGEST ? HISTOGRAM_MAXIMUM : 0);
}

static void
add_at(struct page_series *series, struct series_key key, enum series_measure measure, int64_t ts_ns, uint64_t value)
{
    uint32_t row = row_of(series, key, measure);
    if (row != ROW_NONE) time_histogram_add(&series->over_time, row, ts_ns, value);
}

static void
add_duration(struct page_series *series, struct series_key key, enum series_measure measure, struct interval time)
{
    uint32_t row = row_of(series, key, measure);
    if (row != ROW_NONE) time_histogram_add_duration(&series->over_time, row, time.from_ns, time.to_ns);
}

void
page_series_add(struct page_series *series, struct series_key key, int64_t ts_ns, uint64_t value)
{
    add_at(series, key, SERIES_SUM, ts_ns, value);
}

void
page_series_add_length(struct page_series *series, struct series_key key, int64_t ts_ns, uint64_t sum, uint64_t longest)
{
    add_at(series, key, SERIES_SUM, ts_ns, sum);
    add_at(series, key, SERIES_LONGEST, ts_ns, longest);
}

void
page_series_add_time(struct page_series *series, struct series_key key, struct interval time)
{
    add_duration(series, key, SERIES_SUM, time);
}

void
page_series_add_slice(struct page_series *series, struct series_key key, struct interval slice)
{
    add_duration(series, key, SERIES_SUM, slice);
    add_duration(series, key, SERIES_LONGEST, slice);
    add_at(series, key, SERIES_BEGUN, slice.from_ns, 1);
    add_at(series, key, SERIES_ENDED, slice.to_ns, 1);
}

/* --- what is recorded ------------------------------------------------------------------------------- */

void
page_series_on_stack(void *series, uint32_t node, const struct fxt_event *event, uint64_t weight)
{
    page_series_add(series, (struct series_key){.subject = SERIES_STACK, .a = node}, event->ts_ns, weight);
}

void
page_series_on_sample(void *series, const struct time_sample *sample)
{
    const struct series_key key = {.subject = SERIES_SAMPLE, .a = sample->node, .b = sample->state};
    page_series_add(series, key, sample->ts_ns, sample->ns);
}

void
page_series_on_caller(void *series, uint32_t caller, uint32_t name, struct interval syscall)
{
    page_series_add_slice(series, (struct series_key){.subject = SERIES_SYSCALL_OF, .a = caller, .b = name}, syscall);
}

void
page_series_on_cpu(void *series, const struct cpu_thread *thread, const struct cpu_slice *slice)
{
    struct series_key key = {.subject = SERIES_CPU, .a = thread->process, .b = thread->tid};
    if (slice->waits) key.subject = slice->why == STRING_PREEMPTED ? SERIES_PREEMPTED : SERIES_WOKEN;
    page_series_add_slice(series, key, slice->time);
    key.subject = slice->waits ? SERIES_CPU_OTHER : SERIES_MIGRATION;
    key.c = slice->other;
    if (slice->waits ? slice->other != STRING_NONE : slice->migrated) page_series_add_slice(series, key, slice->time);
}

void
page_series_on_held(void *series, const uint32_t key[OVERLAPS_KEYS], struct interval held)
{
    page_series_add_time(series, (struct series_key){.subject = SERIES_HELD, .a = key[0], .b = key[1]}, held);
}

void
page_series_syscall(struct page_series *series, struct pool *pool, const struct fxt_event *event)
{
    const struct interval call = {event->ts_ns, event->end_ns};
    struct series_key key = {.subject = SERIES_SYSCALL, .a = pool_id(pool, event->name)};
    if (event->type != FXT_EVENT_DURATION_COMPLETE) return;
    page_series_add_slice(series, key, call);
    key.subject = SERIES_SYSCALL_ERROR;
    key.b = event_text(pool, event, STRING_ERRNO);
    if (key.b != STRING_NONE) page_series_add_slice(series, key, call);
}

uint32_t
page_series_row(struct page_series *series, struct series_key key)
{
    const struct series_key *known = row_table_find(&series->keys, &key.subject);
    return known == NULL ? ROW_NONE : row_table_number(&series->keys, known);
}
