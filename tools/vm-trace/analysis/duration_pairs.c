/* duration_pairs.c - see duration_pairs.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/duration_pairs.h"
#include "analysis/event_args.h"
#include "base/xalloc.h"
#include "fxt/event_keys.h"
#include "fxt/known_strings.h"

struct stack {
    struct duration_edge *open;
    uint32_t depth;
    uint32_t capacity;
};

/* A process whose file keeps its newest events. */
struct ring {
    uint32_t process; /* the key */
    bool begun;
    bool older;       /* what comes now is the older part */
    int64_t first_ns; /* of switches and begins, in the order of the file */
    uint64_t chunk;   /* that the last one was in */
    uint64_t older_chunk; /* since which all chunks began before first_ns; 0: the last one did not */
};

/* A thread of one. */
struct ring_thread {
    uint32_t row; /* the key */
    bool begun;
    int64_t first_ns;
    uint64_t chunk;
};

enum { RINGS_MAX = 64 * 1024 };

struct duration_pairs {
    struct duration_pair_visitor visitor;
    struct thread_states *states;
    struct sched_threads sched_threads;
    struct row_table rings, ring_threads; /* of struct ring and struct ring_thread */
    uint64_t chunk_offset;
    struct map stack_of_row;
    struct stack *stacks;
    uint32_t stack_count;
    uint32_t stack_capacity;
    struct duration_edge *window;
    size_t in_window;
    bool too_many_reported;
};

static uint32_t
open_marker(const struct duration_pairs *pairs, uint32_t thread)
{
    const struct stack *stack = &pairs->stacks[thread];
    for (uint32_t i = stack->depth; i-- > 0;) {
        if (stack->open[i].category == STRING_MARKER) return stack->open[i].name;
    }
    return STRING_NONE;
}

struct duration_pairs *
duration_pairs_new(const struct duration_pair_visitor *visitor, struct thread_states *states)
{
    struct duration_pairs *pairs = xcalloc(1, sizeof *pairs);
    pairs->visitor = *visitor;
    pairs->states = states;
    states->marker = open_marker;
    states->pairs = pairs;
    row_table_init(&pairs->rings, sizeof(struct ring), 1, RINGS_MAX);
    row_table_init(&pairs->ring_threads, sizeof(struct ring_thread), 1, PAIRS_THREADS_MAX);
    pairs->window = xrealloc(NULL, PAIRS_WINDOW, sizeof *pairs->window);
    return pairs;
}

void
duration_pairs_free(struct duration_pairs *pairs)
{
    if (pairs == NULL) return;
    for (uint32_t i = 0; i < pairs->stack_count; i++) free(pairs->stacks[i].open);
    free(pairs->stacks);
    sched_threads_free(&pairs->sched_threads);
    row_table_free(&pairs->rings);
    row_table_free(&pairs->ring_threads);
    map_free(&pairs->stack_of_row);
    free(pairs->window);
    free(pairs);
}

static int
by_time_and_offset(const void *left, const void *right)
{
    const struct duration_edge *a = left, *b = right;
    if (a->ts_ns != b->ts_ns) return a->ts_ns < b->ts_ns ? -1 : 1;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return (int)a->end - (int)b->end; /* of a duration in one record */
}

static void
begin(struct duration_pairs *pairs, struct stack *stack, const struct duration_edge *edge)
{
    if (stack->depth == PAIRS_DEPTH_MAX) {
        if (pairs->visitor.too_deep) pairs->visitor.too_deep(pairs->visitor.context, edge);
        return;
    }
    make_room(stack->open, stack->depth, stack->capacity);
    bool outermost = true;
    for (uint32_t i = 0; i < stack->depth && outermost; i++) outermost = stack->open[i].category != edge->category;
    struct duration_edge *begun = &stack->open[stack->depth++];
    *begun = *edge;
    begun->outermost = outermost;
    if (outermost && edge->category == STRING_GC) thread_states_gc(pairs->states, edge, true);
    if (pairs->visitor.begun) pairs->visitor.begun(pairs->visitor.context, begun);
}

/* Pairs the first `count` edges of the window, and moves the others to its start. */
static void
pair(struct duration_pairs *pairs, size_t count)
{
    qsort(pairs->window, pairs->in_window, sizeof *pairs->window, by_time_and_offset);
    for (size_t i = 0; i < count; i++) {
        const struct duration_edge *edge = &pairs->window[i];
        struct stack *stack = &pairs->stacks[edge->thread];
        if (edge->sched != SCHED_NONE) {
            thread_states_sched(pairs->states, edge);
            continue;
        }
        if (!edge->end) {
            begin(pairs, stack, edge);
            continue;
        }
        const struct duration_edge *opened = stack->depth > 0 ? &stack->open[--stack->depth] : NULL;
        if (opened != NULL && opened->outermost && opened->category == STRING_GC)
            thread_states_gc(pairs->states, edge, false);
        pairs->visitor.pair(pairs->visitor.context, opened, edge);
    }
    pairs->in_window -= count;
    memmove(pairs->window, pairs->window + count, pairs->in_window * sizeof *pairs->window);
}

struct duration_edge
duration_edge_of(struct pool *pool, const struct fxt_event *event)
{
    struct duration_edge edge = {
        .ts_ns = event->ts_ns,
        .offset = event->offset,
        .category = pool_id(pool, event->category),
        .name = pool_id(pool, event->name),
        .end = event->type != FXT_EVENT_DURATION_BEGIN,
    };
    if (edge.end && edge.category == STRING_COMPILE) {
        edge.iseq = event_text(pool, event, STRING_ISEQ);
        edge.version = (uint32_t)event_uint(event, STRING_VERSION, 1);
        edge.code_bytes = event_uint(event, STRING_CODE_BYTES, 0);
    }
    else if (edge.category == STRING_BLOCKED) edge.class_name = event_text(pool, event, STRING_CLASS);
    else if (edge.category == STRING_MARKER) {
        edge.endpoint = event_text(pool, event, STRING_ENDPOINT);
        edge.id = event_text(pool, event, STRING_REQUEST_ID);
        if (edge.id == STRING_NONE) edge.id = event_text(pool, event, STRING_JOB_ID);
        edge.failed = fxt_event_arg(event, STRING_ERROR) != NULL || event_uint(event, STRING_STATUS, 0) >= 500;
    }
    else if (edge.category == STRING_GC) {
        edge.reason = event_text(pool, event, STRING_REASON);
        edge.major_by = event_text(pool, event, STRING_MAJOR_BY);
        edge.began = fxt_event_arg(event, STRING_BEGAN) != NULL;
        edge.number = event_uint(event, STRING_COUNT, event_uint(event, STRING_FREED_SLOTS, UINT64_MAX));
    }
    return edge;
}

/* Takes an edge that is complete but for its thread. */
static void
add(struct duration_pairs *pairs, struct duration_edge edge)
{
    edge.thread = map_get(&pairs->stack_of_row, edge.row);
    if (edge.thread == MAP_NONE) {
        if (pairs->stack_count == PAIRS_THREADS_MAX) {
            if (!pairs->too_many_reported && pairs->visitor.too_many_threads) {
                pairs->visitor.too_many_threads(pairs->visitor.context, &edge);
            }
            pairs->too_many_reported = true;
            return;
        }
        make_room(pairs->stacks, pairs->stack_count, pairs->stack_capacity);
        edge.thread = pairs->stack_count++;
        pairs->stacks[edge.thread] = (struct stack){0};
        map_set(&pairs->stack_of_row, edge.row, edge.thread);
    }
    if (pairs->in_window == PAIRS_WINDOW) pair(pairs, PAIRS_WINDOW / 2);
    pairs->window[pairs->in_window++] = edge;
}

static void
finish(struct duration_pairs *pairs)
{
    pair(pairs, pairs->in_window);
    for (uint32_t i = 0; i < pairs->stack_count; i++) {
        struct stack *stack = &pairs->stacks[i];
        while (stack->depth > 0) pairs->visitor.pair(pairs->visitor.context, &stack->open[--stack->depth], NULL);
    }
}

/* Finishes what is before a chunk. */
static void
finish_newer(struct duration_pairs *pairs, uint64_t chunk)
{
    struct duration_edge *older = xrealloc(NULL, PAIRS_WINDOW, sizeof *older);
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < pairs->in_window; i++) {
        if (pairs->window[i].offset >= chunk) older[count++] = pairs->window[i];
        else pairs->window[kept++] = pairs->window[i];
    }
    pairs->in_window = kept;
    finish(pairs);
    memcpy(pairs->window, older, count * sizeof *older);
    pairs->in_window = count;
    free(older);
}

/* At the border of a cut, what is open begins a few nanoseconds earlier, in any chunk. */
static bool
before(int64_t ts_ns, int64_t first_ns)
{
    enum { BORDER_NS = 1000 };
    return ts_ns < first_ns - BORDER_NS;
}

/* Whether a thread is in an older chunk than the first one that has it: it writes one chunk after the other. */
static bool
older_thread_p(struct duration_pairs *pairs, uint32_t row, int64_t ts_ns)
{
    struct ring_thread *thread = row_table_get(&pairs->ring_threads, &row);
    if (thread == NULL) return false;
    bool in_chunk = thread->begun && thread->chunk == pairs->chunk_offset;
    if (!thread->begun) thread->first_ns = ts_ns;
    thread->begun = true;
    thread->chunk = pairs->chunk_offset;
    return !in_chunk && before(ts_ns, thread->first_ns);
}

/* Takes the time of a begin or a switch of a process before it is added; a wake-up and the end of a
 * blocked duration are written late, and may be older than their chunk. Chunks of a file that keeps its newest
 * events are used again from the first on, so the oldest records come behind the newest. They are
 * read as a part of their own: what is open at its end goes on in the newer part, and is cut there. They
 * begin with a chunk; within one, what a thread did when the trace began is written when that changes. Ractors write
 * chunks side by side, so a chunk that begins earlier than the first one may be a neighbor of it: the older part is
 * certain when a thread is in it that is in the newer one, too. */
static void
note_order(struct duration_pairs *pairs, uint32_t process, uint32_t row, int64_t ts_ns)
{
    struct ring *ring = pairs->rings.count > 0 ? row_table_find(&pairs->rings, &process) : NULL;
    if (ring == NULL || ring->older) return;
    bool in_chunk = ring->begun && ring->chunk == pairs->chunk_offset;
    if (!ring->begun) ring->first_ns = ts_ns;
    if (!in_chunk && !before(ts_ns, ring->first_ns)) ring->older_chunk = 0;
    else if (!in_chunk && ring->older_chunk == 0) ring->older_chunk = pairs->chunk_offset;
    ring->begun = true;
    ring->chunk = pairs->chunk_offset;
    if (!older_thread_p(pairs, row, ts_ns)) return;
    ring->older = true;
    finish_newer(pairs, ring->older_chunk > 0 ? ring->older_chunk : pairs->chunk_offset);
    thread_states_begin_older(pairs->states, process, ring->first_ns);
}

void
duration_pairs_add(struct duration_pairs *pairs, struct pool *pool, const struct fxt_event *event, uint32_t process,
                   uint32_t row, bool wanted)
{
    if (event->type == FXT_EVENT_DURATION_BEGIN) note_order(pairs, process, row, event->ts_ns);
    struct duration_edge edge = duration_edge_of(pool, event);
    edge.row = row;
    edge.wanted = wanted;
    bool stack = pairs->visitor.stack != NULL && edge.category == STRING_BLOCKED;
    if (event->type == FXT_EVENT_DURATION_COMPLETE) {
        edge.end = false;
        if (stack) edge.stack = pairs->visitor.stack(pairs->visitor.context, event, row, false);
        add(pairs, edge);
        edge.end = true;
        edge.ts_ns = event->end_ns;
    }
    if (stack) edge.stack = pairs->visitor.stack(pairs->visitor.context, event, row, edge.end);
    add(pairs, edge);
}

bool
duration_pairs_sched(struct duration_pairs *pairs, const struct fxt_sched *sched)
{
    struct sched_change_of changes[SCHED_CHANGES_MAX];
    unsigned count = sched_changes(&pairs->sched_threads, sched, changes);
    for (unsigned i = 0; i < count; i++) {
        struct duration_edge edge = {.ts_ns = sched->ts_ns, .offset = sched->offset, .sched = changes[i].change};
        edge.cpu = sched->cpu;
        if (!pairs->visitor.change(pairs->visitor.context, sched, &changes[i], &edge)) continue;
        if (edge.sched != SCHED_WOKEN) note_order(pairs, edge.process, edge.row, sched->ts_ns);
        add(pairs, edge);
    }
    return count > 0;
}

void
duration_pairs_object(struct duration_pairs *pairs, const struct fxt_object *object)
{
    if (object->type == FXT_OBJECT_THREAD) sched_changes_name(&pairs->sched_threads, object);
}

void
duration_pairs_chunk(struct duration_pairs *pairs, uint64_t offset)
{
    pairs->chunk_offset = offset;
}

void
duration_pairs_keeps_newest(struct duration_pairs *pairs, uint32_t process)
{
    row_table_get(&pairs->rings, &process);
}

void
duration_pairs_file_end(struct duration_pairs *pairs, bool stopped)
{
    pairs->states->stopped = stopped;
    finish(pairs);
    thread_states_file_end(pairs->states);
}
