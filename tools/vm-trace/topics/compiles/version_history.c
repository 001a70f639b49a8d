/* version_history.c - see version_history.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "topics/compiles/version_history.h"
#include "base/xalloc.h"
#include "fxt/event_keys.h"
#include "fxt/known_strings.h"

void
version_history_free(struct version_history *history)
{
    free(history->steps);
    free(history->iseqs);
    free(history->compiling);
    map_free(&history->iseq_of_label);
    map_free(&history->iseqs_of_method);
    map_free(&history->open_compiles);
    map_free(&history->open_profiles);
    *history = (struct version_history){0};
}

static uint64_t
key_of(uint32_t process, uint32_t text)
{
    return (uint64_t)process << 32 | text;
}

static void
add_known_iseq(struct version_history *history, struct pool *pool, uint32_t process, uint32_t iseq)
{
    uint64_t key = key_of(process, iseq);
    if (map_get(&history->iseq_of_label, key) != MAP_NONE) return;
    uint32_t method = label_without_line(pool, iseq), index = history->iseq_count;
    make_room(history->iseqs, history->iseq_count, history->iseq_capacity);
    history->iseqs[history->iseq_count++] = (struct known_iseq){.process = process,
                                                                .iseq = iseq,
                                                                .method = method,
                                                                .line = label_parts(pool_string(pool, iseq)).line,
                                                                .order = index};
    map_set(&history->iseq_of_label, key, index);
}

/* Returns NULL if there are too many. */
static struct version_step *
add_step(struct version_history *history, struct pool *pool, uint32_t process, uint32_t iseq, enum step_kind kind,
         int64_t ts_ns)
{
    if (history->count == VERSION_STEPS_MAX) {
        history->uncounted++;
        return NULL;
    }
    add_known_iseq(history, pool, process, iseq);
    make_room(history->steps, history->count, history->capacity);
    struct version_step *step = &history->steps[history->count];
    *step = (struct version_step){
        .process = process, .iseq = iseq, .kind = kind, .ts_ns = ts_ns, .end_ns = INT64_MIN, .order = history->count};
    history->count++;
    return step;
}

/* Follows the outermost open compilation of a thread, up to the end with an `iseq`. */
static void
follow_compilation(struct version_history *history, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    uint64_t thread = thread_key(event->process, event->tid);
    uint32_t index = map_get(&history->open_compiles, thread);
    if (index == MAP_NONE) {
        index = history->compiling_count;
        make_room(history->compiling, history->compiling_count, history->compiling_capacity);
        memset(&history->compiling[history->compiling_count++], 0, sizeof *history->compiling);
        map_set(&history->open_compiles, thread, index);
    }
    uint32_t *depth = &history->compiling[index].depth;
    if (event->type == FXT_EVENT_DURATION_BEGIN) {
        if ((*depth)++ == 0) history->compiling[index].begin_ns = event->ts_ns;
        return;
    }
    /* If its begin was overwritten in a limited file, it has no length. */
    int64_t begin_ns = *depth > 0 ? history->compiling[index].begin_ns : event->ts_ns;
    if (*depth > 0) --*depth;
    uint32_t iseq = event_text(pool, event, STRING_ISEQ);
    if (iseq == STRING_NONE) return;
    *depth = 0;
    uint32_t version = (uint32_t)event_uint(event, STRING_VERSION, 0);
    uint32_t error = event_text(pool, event, STRING_ERROR);
    if (version == 0 && error == STRING_NONE) return; /* the ISEQ already had code */
    if (begin_ns > event->ts_ns) begin_ns = event->ts_ns;
    struct version_step *step =
        add_step(history, pool, process, iseq, version > 0 ? STEP_COMPILED : STEP_FAILED, begin_ns);
    if (step == NULL) return;
    step->version = version;
    step->end_ns = event->ts_ns;
    step->reason = error;
    step->inlined = event_text(pool, event, STRING_INLINED);
    step->code_bytes = event_uint(event, STRING_CODE_BYTES, 0);
    step->exit_bytes = event_uint(event, STRING_EXIT_BYTES, 0);
    step->exits = event_uint(event, STRING_EXITS, 0);
}

static void
follow_profiling(struct version_history *history, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    uint64_t key = flow_key(event->process, event->id); /* async events of one id in one process */
    if (event->type == FXT_EVENT_ASYNC_BEGIN) {
        struct version_step *step =
            add_step(history, pool, process, pool_id(pool, event->name), STEP_PROFILED, event->ts_ns);
        if (step == NULL) return;
        step->version = (uint32_t)event_uint(event, STRING_VERSION, 0);
        step->reason = event_reason(pool, event);
        map_set(&history->open_profiles, key, step->order);
    }
    else if (event->type == FXT_EVENT_ASYNC_END) {
        uint32_t index = map_get(&history->open_profiles, key);
        if (index != MAP_NONE) history->steps[index].end_ns = event->ts_ns;
    }
}

void
version_history_event(struct version_history *history, struct pool *pool, uint32_t process,
                      const struct fxt_event *event)
{
    switch (event->category.id) {
      case STRING_COMPILE:
        if (event->type == FXT_EVENT_DURATION_BEGIN || event->type == FXT_EVENT_DURATION_END) {
            follow_compilation(history, pool, process, event);
        }
        return;
      case STRING_REPROFILE: follow_profiling(history, pool, process, event); return;
      case STRING_INVALIDATION: {
        uint32_t iseq = event_text(pool, event, STRING_ISEQ);
        if (event->type != FXT_EVENT_DURATION_BEGIN) return;
        if (iseq == STRING_NONE) {
            history->violated_at = event_text(pool, event, STRING_FRAME_0);
            return;
        }
        struct version_step *step = add_step(history, pool, process, iseq, STEP_INVALIDATED, event->ts_ns);
        if (step == NULL) return;
        step->version = (uint32_t)event_uint(event, STRING_VERSION, 0);
        step->reason = event_reason(pool, event);
        step->location = event_text(pool, event, STRING_FRAME_0);
        if (step->location == STRING_NONE) step->location = history->violated_at; /* a part of that invalidation */
        return;
      }
    }
}

void
version_history_file_end(struct version_history *history)
{
    map_free(&history->open_compiles);
    map_free(&history->open_profiles);
    history->compiling_count = 0;
}

static int
compare_steps(const void *left, const void *right)
{
    const struct version_step *a = left, *b = right;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->iseq != b->iseq) return a->iseq < b->iseq ? -1 : 1;
    if (a->ts_ns != b->ts_ns) return a->ts_ns < b->ts_ns ? -1 : 1;
    /* At the same time: profiling begins with the invalidation. */
    return (a->order > b->order) - (a->order < b->order);
}

static int
compare_iseqs(const void *left, const void *right)
{
    const struct known_iseq *a = left, *b = right;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->method != b->method) return a->method < b->method ? -1 : 1;
    if (a->line != b->line) return a->line < b->line ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static bool
same_method(const struct known_iseq *a, const struct known_iseq *b)
{
    return a->process == b->process && a->method == b->method;
}

void
version_history_sort(struct version_history *history)
{
    if (history->count > 0) qsort(history->steps, history->count, sizeof *history->steps, compare_steps);
    if (history->iseq_count > 0) qsort(history->iseqs, history->iseq_count, sizeof *history->iseqs, compare_iseqs);
    for (uint32_t i = 0; i < history->iseq_count; i++) {
        const struct known_iseq *iseq = &history->iseqs[i];
        if (i == 0 || !same_method(iseq - 1, iseq))
            map_set(&history->iseqs_of_method, key_of(iseq->process, iseq->method), i);
    }
}

uint32_t
version_history_owner(const struct version_history *history, struct pool *pool, uint32_t process, uint32_t iseq,
                      uint32_t location)
{
    if (iseq != STRING_NONE) return iseq;
    uint32_t first = map_get(&history->iseqs_of_method, key_of(process, label_without_line(pool, location)));
    if (first == MAP_NONE) return STRING_NONE;
    int64_t line = label_parts(pool_string(pool, location)).line;
    /* The first ISEQ of the method that begins after the exit, or the first of what follows the
     * method. */
    uint32_t low = first, high = history->iseq_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct known_iseq *known = &history->iseqs[middle];
        if (same_method(known, &history->iseqs[first]) && known->line <= line) low = middle + 1;
        else high = middle;
    }
    return history->iseqs[low > first ? low - 1 : first].iseq;
}
