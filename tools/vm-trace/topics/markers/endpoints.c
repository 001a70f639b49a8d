/* endpoints.c - see endpoints.h */
#include <stddef.h>
#include <stdlib.h>

#include "topics/markers/endpoints.h"
#include "base/xalloc.h"

void
endpoints_init(struct endpoints *endpoints, const struct pool *pool)
{
    *endpoints = (struct endpoints){.pool = pool};
    row_table_init(&endpoints->rows, sizeof(struct endpoint), 1, ENDPOINTS_MAX);
    row_table_init(&endpoints->gems, sizeof(struct endpoint_gem), ENDPOINT_GEM_KEYS, ENDPOINT_GEMS_MAX);
    row_table_init(&endpoints->threads, sizeof(struct endpoint_thread), ENDPOINT_THREAD_KEYS, ENDPOINT_THREADS_MAX);
}

void
endpoints_free(struct endpoints *endpoints)
{
    for (uint32_t i = 0; i < endpoints->rows.count; i++) {
        struct endpoint *endpoint = row_table_at(&endpoints->rows, i);
        durations_free(&endpoint->durations);
    }
    for (uint32_t i = 0; i < endpoints->threads.count; i++) {
        struct endpoint_thread *thread = row_table_at(&endpoints->threads, i);
        free(thread->spans);
    }
    row_table_free(&endpoints->rows);
    row_table_free(&endpoints->threads);
    row_table_free(&endpoints->gems);
}

/* Has a fiber's thread know it. */
static void
link_fiber(struct endpoints *endpoints, const uint32_t fiber_key[ENDPOINT_THREAD_KEYS], uint32_t of_tid)
{
    const uint32_t key[ENDPOINT_THREAD_KEYS] = {fiber_key[0], fiber_key[1], of_tid};
    struct endpoint_thread *thread = row_table_get(&endpoints->threads, key);
    if (thread == NULL) return;
    uint32_t number = row_table_number(&endpoints->threads, thread);
    struct endpoint_thread *fiber = row_table_find(&endpoints->threads, fiber_key);
    thread = row_table_at(&endpoints->threads, number);
    fiber->link = FIBER_LINKED;
    fiber->next_fiber = thread->first_fiber;
    thread->first_fiber = row_table_number(&endpoints->threads, fiber) + 1;
}

bool
endpoints_fiber_new_p(struct endpoints *endpoints, const uint32_t fiber_key[ENDPOINT_THREAD_KEYS])
{
    const struct endpoint_thread *fiber = row_table_find(&endpoints->threads, fiber_key);
    return fiber == NULL || fiber->link == FIBER_NEW;
}

void
endpoints_span(struct endpoints *endpoints, const uint32_t thread_key[ENDPOINT_THREAD_KEYS],
               const struct endpoint_found *found)
{
    /* Whatever has a row has a span, too. */
    bool room = endpoints->spans < ENDPOINT_SPANS_MAX;
    struct endpoint_thread *thread = room ? row_table_get(&endpoints->threads, thread_key) : NULL;
    struct endpoint *endpoint = thread != NULL ? row_table_get(&endpoints->rows, &found->endpoint) : NULL;
    if (endpoint == NULL) {
        endpoints->uncounted++;
        return;
    }
    struct endpoint_span span = {.time = found->time, .id = found->id, .file = found->file, .marked = found->marked,
                                 .endpoint = row_table_number(&endpoints->rows, endpoint)};
    thread->name = found->thread_name;
    make_room(thread->spans, thread->count, thread->capacity);
    thread->spans[thread->count++] = span;
    endpoints->spans++;
    endpoint->failed += found->failed;
    durations_add(&endpoint->durations, endpoint_span_ns(&span));
    endpoints->marked += found->marked;
    endpoints->of_fibers += found->fiber;
    if (!found->fiber) return;
    bool first = thread->link == FIBER_NEW;
    if (first && found->of_tid == 0) thread->link = FIBER_THREADLESS;
    if (thread->link == FIBER_THREADLESS) endpoints->threadless++;
    else if (first) link_fiber(endpoints, thread_key, found->of_tid);
}

/* Those that enclose others come first. */
static int
compare_spans(const void *left, const void *right)
{
    const struct interval a = ((const struct endpoint_span *)left)->time, b = ((const struct endpoint_span *)right)->time;
    if (a.from_ns != b.from_ns) return a.from_ns < b.from_ns ? -1 : 1;
    if (a.to_ns != b.to_ns) return a.to_ns > b.to_ns ? -1 : 1;
    return 0;
}

/* Those of fibers count for none: what a thread does counts for each fiber that waits for it. */
static void
note_outer(struct endpoints *endpoints, const struct endpoint_thread *thread, struct endpoint_span *span)
{
    if (!span->marked || thread->link != FIBER_NEW) return;
    for (uint32_t around = span->parent; around > 0; around = thread->spans[around - 1].parent) {
        if (thread->spans[around - 1].marked) return;
    }
    span->outer = true;
    endpoints->outer.spans++;
    endpoints->outer.ns += endpoint_span_ns(span);
}

void
endpoints_spans_end(struct endpoints *endpoints)
{
    for (uint32_t i = 0; i < endpoints->threads.count; i++) {
        struct endpoint_thread *thread = row_table_at(&endpoints->threads, i);
        if (thread->count > 0) qsort(thread->spans, thread->count, sizeof *thread->spans, compare_spans);
        uint32_t around = 0; /* number + 1 */
        for (uint32_t number = 0; number < thread->count; number++) {
            struct endpoint_span *span = &thread->spans[number];
            while (around > 0 && thread->spans[around - 1].time.to_ns <= span->time.from_ns)
                around = thread->spans[around - 1].parent;
            span->parent = around;
            around = number + 1;
            note_outer(endpoints, thread, span);
            struct endpoint *endpoint = row_table_at(&endpoints->rows, span->endpoint);
            if (endpoint->slowest.known &&
                endpoint_span_ns(span) <= endpoint_span_ns(endpoint_slowest(endpoints, endpoint))) continue;
            endpoint->slowest.known = true;
            endpoint->slowest.thread = i;
            endpoint->slowest.span = number;
        }
    }
    endpoints->complete = true;
}

/* The thread's number of spans that begin at this time or before. */
static uint32_t
begun_by(const struct endpoint_thread *thread, int64_t ns)
{
    return rows_until(thread->spans, thread->count, sizeof *thread->spans,
                      offsetof(struct endpoint_span, time.from_ns), ns);
}

static void
add_to(struct endpoints *endpoints, const struct endpoint_thread *thread, uint32_t number, enum endpoint_cost cost,
       uint64_t amount)
{
    struct endpoint *endpoint = row_table_at(&endpoints->rows, thread->spans[number].endpoint);
    endpoint->costs[cost] += amount;
    if (thread->spans[number].outer) endpoints->outer.costs[cost] += amount;
    if (endpoint->slowest.span == number && endpoint->slowest.thread == row_table_number(&endpoints->threads, thread))
        endpoint->slowest.costs[cost] += amount;
}

static void
add_of_gem(struct endpoints *endpoints, uint32_t endpoint, uint32_t owner, enum endpoint_cost cost, uint64_t amount)
{
    const uint32_t key[ENDPOINT_GEM_KEYS] = {endpoint, owner};
    struct endpoint_gem *gem = owner != STRING_NONE ? row_table_get(&endpoints->gems, key) : NULL;
    if (gem != NULL) gem->costs[cost] += amount;
}

void
endpoints_add(struct endpoints *endpoints, const uint32_t thread_key[ENDPOINT_THREAD_KEYS], int64_t at_ns,
              enum endpoint_cost cost, uint64_t amount, uint32_t owner)
{
    endpoints->recorded[cost] = true;
    const struct endpoint_thread *thread = row_table_find(&endpoints->threads, thread_key);
    if (thread == NULL) return;
    for (uint32_t next = begun_by(thread, at_ns); next > 0; next = thread->spans[next - 1].parent) {
        if (thread->spans[next - 1].time.to_ns <= at_ns) continue;
        add_to(endpoints, thread, next - 1, cost, amount);
        add_of_gem(endpoints, thread->spans[next - 1].endpoint, owner, cost, amount);
    }
}

/* Adds the part of a stretch of time that lies in a span of the thread. */
static void
add_part(struct endpoints *endpoints, const struct endpoint_thread *thread, uint32_t number, enum endpoint_cost cost,
         struct interval time)
{
    uint64_t ns = interval_common_ns(time, thread->spans[number].time);
    if (ns > 0) add_to(endpoints, thread, number, cost, ns);
}

static void
add_time(struct endpoints *endpoints, const struct endpoint_thread *thread, struct interval time,
         enum endpoint_cost cost)
{
    uint32_t first = begun_by(thread, time.from_ns);
    for (uint32_t next = first; next > 0; next = thread->spans[next - 1].parent)
        add_part(endpoints, thread, next - 1, cost, time);
    for (uint32_t number = first; number < thread->count && thread->spans[number].time.from_ns < time.to_ns; number++)
        add_part(endpoints, thread, number, cost, time);
}

void
endpoints_add_time(struct endpoints *endpoints, const uint32_t thread_key[ENDPOINT_THREAD_KEYS], struct interval time,
                   enum endpoint_cost cost)
{
    endpoints->recorded[cost] = true;
    const struct endpoint_thread *thread = row_table_find(&endpoints->threads, thread_key);
    if (thread == NULL) return;
    add_time(endpoints, thread, time, cost);
    for (uint32_t next = thread->first_fiber; next > 0; next = thread->next_fiber) {
        thread = row_table_at(&endpoints->threads, next - 1);
        add_time(endpoints, thread, time, cost);
    }
}
