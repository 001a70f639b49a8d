/* throws.c - see throws.h */
#include "analysis/event_args.h"
#include "topics/exits/throws.h"
#include "fxt/known_strings.h"

/* An exit that a flow can begin or end at. */
struct end {
    int64_t ts_ns;
    uint32_t location;
    bool wanted;
    uint64_t lost_ns;
};

struct thread {
    uint32_t number; /* the key */
    bool open;       /* `thrown` is not caught yet */
    uint64_t flow;   /* of `thrown` */
    struct end thrown, last;
};

void
throws_init(struct throws *throws)
{
    row_table_init(&throws->rows, sizeof(struct throw_row), THROW_ROW_KEYS, THROW_ROWS_MAX);
    row_table_init(&throws->threads, sizeof(struct thread), 1, THROW_THREADS_MAX);
}

void
throws_free(struct throws *throws)
{
    row_table_free(&throws->rows);
    row_table_free(&throws->threads);
}

void
throws_exit(struct throws *throws, struct pool *pool, const struct fxt_event *event, uint32_t number, bool wanted)
{
    struct thread *thread = row_table_get(&throws->threads, &number);
    if (thread == NULL) return;
    thread->last = (struct end){.ts_ns = event->ts_ns,
                                .location = event_text(pool, event, STRING_FRAME_0),
                                .wanted = wanted,
                                .lost_ns = event_uint(event, STRING_LOST_NS, 0)};
}

void
throws_flow(struct throws *throws, const struct fxt_event *event, uint32_t number)
{
    struct thread *thread = row_table_find(&throws->threads, &number);
    if (thread == NULL || thread->last.ts_ns != event->ts_ns) return;
    if (event->type == FXT_EVENT_FLOW_BEGIN) {
        thread->open = true;
        thread->flow = event->id;
        thread->thrown = thread->last;
        return;
    }
    if (!thread->open || thread->flow != event->id) return;
    thread->open = false;
    if (!thread->thrown.wanted && !thread->last.wanted) return;
    const uint32_t key[THROW_ROW_KEYS] = {thread->thrown.location, thread->last.location};
    struct throw_row *row = row_table_get(&throws->rows, key);
    if (row == NULL) {
        throws->uncounted++;
        return;
    }
    row->count++;
    row->lost_ns += thread->thrown.lost_ns + thread->last.lost_ns;
}

static int
compare(const void *left, const void *right, void *context)
{
    const struct throw_row *a = left, *b = right;
    const struct pool *pool = context;
    if (a->lost_ns != b->lost_ns) return a->lost_ns > b->lost_ns ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    int order = fxt_string_compare(pool_string(pool, a->thrown_at), pool_string(pool, b->thrown_at));
    return order != 0 ? order : fxt_string_compare(pool_string(pool, a->caught_at), pool_string(pool, b->caught_at));
}

struct throw_row
throws_sort(struct throws *throws, const struct pool *pool)
{
    struct throw_row sum = {0};
    for (uint32_t i = 0; i < throws->rows.count; i++) {
        const struct throw_row *row = row_table_at(&throws->rows, i);
        sum.count += row->count;
        sum.lost_ns += row->lost_ns;
    }
    row_table_sort(&throws->rows, compare, (void *)pool);
    return sum;
}
