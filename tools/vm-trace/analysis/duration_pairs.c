/* duration_pairs.c - see duration_pairs.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/duration_pairs.h"
#include "analysis/event_args.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"

struct stack {
    struct span_edge *open;
    uint32_t depth;
    uint32_t capacity;
};

struct spans {
    struct span_visitor visitor;
    struct map stack_of_thread;
    struct stack *stacks;
    uint32_t stack_count;
    uint32_t stack_capacity;
    struct span_edge *window;
    size_t in_window;
    bool said_too_many;
};

struct spans *
spans_new(const struct span_visitor *visitor)
{
    struct spans *spans = xcalloc(1, sizeof *spans);
    spans->visitor = *visitor;
    spans->window = xrealloc(NULL, SPANS_WINDOW, sizeof *spans->window);
    return spans;
}

void
spans_free(struct spans *spans)
{
    if (spans == NULL) return;
    for (uint32_t i = 0; i < spans->stack_count; i++) free(spans->stacks[i].open);
    free(spans->stacks);
    map_free(&spans->stack_of_thread);
    free(spans->window);
    free(spans);
}

static int
by_time_and_place(const void *left, const void *right)
{
    const struct span_edge *a = left, *b = right;
    if (a->ts_ns != b->ts_ns) return a->ts_ns < b->ts_ns ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static void
begin(struct spans *spans, struct stack *stack, const struct span_edge *edge)
{
    if (stack->depth == SPANS_DEPTH_MAX) {
        if (spans->visitor.too_deep) spans->visitor.too_deep(spans->visitor.context, edge);
        return;
    }
    make_room(stack->open, stack->depth, stack->capacity);
    bool outermost = true;
    for (uint32_t i = 0; i < stack->depth && outermost; i++) outermost = stack->open[i].category != edge->category;
    stack->open[stack->depth] = *edge;
    stack->open[stack->depth++].outermost = outermost;
}

/* Pairs the first `count` edges of the window and moves the others down. */
static void
pair(struct spans *spans, size_t count)
{
    qsort(spans->window, spans->in_window, sizeof *spans->window, by_time_and_place);
    for (size_t i = 0; i < count; i++) {
        const struct span_edge *edge = &spans->window[i];
        struct stack *stack = &spans->stacks[edge->thread];
        if (!edge->end) {
            begin(spans, stack, edge);
            continue;
        }
        const struct span_edge *opened = stack->depth > 0 ? &stack->open[--stack->depth] : NULL;
        spans->visitor.span(spans->visitor.context, opened, edge);
    }
    spans->in_window -= count;
    memmove(spans->window, spans->window + count, spans->in_window * sizeof *spans->window);
}

struct span_edge
span_edge_of(struct pool *pool, const struct fxt_event *event)
{
    struct span_edge edge = {
        .ts_ns = event->ts_ns,
        .offset = event->offset,
        .category = pool_id(pool, event->category),
        .name = pool_id(pool, event->name),
        .end = event->type != FXT_EVENT_DURATION_BEGIN,
    };
    if (edge.end && edge.category == WORD_COMPILE) {
        edge.iseq = event_text(pool, event, WORD_ISEQ);
        edge.version = (uint32_t)event_uint(event, WORD_VERSION, 1);
        edge.code_bytes = event_uint(event, WORD_CODE_BYTES, 0);
    }
    return edge;
}

void
spans_add(struct spans *spans, struct pool *pool, const struct fxt_event *event)
{
    struct span_edge edge = span_edge_of(pool, event);
    uint64_t key = (uint64_t)event->pid << 32 | event->tid;
    edge.thread = map_get(&spans->stack_of_thread, key);
    if (edge.thread == MAP_NONE) {
        if (spans->stack_count == SPANS_THREADS_MAX) {
            if (!spans->said_too_many && spans->visitor.too_many_threads) {
                spans->visitor.too_many_threads(spans->visitor.context, &edge);
            }
            spans->said_too_many = true;
            return;
        }
        make_room(spans->stacks, spans->stack_count, spans->stack_capacity);
        edge.thread = spans->stack_count++;
        spans->stacks[edge.thread] = (struct stack){0};
        map_set(&spans->stack_of_thread, key, edge.thread);
    }
    if (spans->in_window == SPANS_WINDOW) pair(spans, SPANS_WINDOW / 2);
    spans->window[spans->in_window++] = edge;
}

void
spans_finish(struct spans *spans)
{
    pair(spans, spans->in_window);
    for (uint32_t i = 0; i < spans->stack_count; i++) {
        struct stack *stack = &spans->stacks[i];
        while (stack->depth > 0) spans->visitor.span(spans->visitor.context, &stack->open[--stack->depth], NULL);
    }
}
