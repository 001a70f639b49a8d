/* version_history.c - see version_history.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "analysis/version_history.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"

void
lives_free(struct lives *lives)
{
    free(lives->steps);
    free(lives->iseqs);
    free(lives->compiles);
    map_free(&lives->iseq_of_label);
    map_free(&lives->iseqs_of_method);
    map_free(&lives->open_compiles);
    map_free(&lives->open_profiles);
    *lives = (struct lives){0};
}

uint32_t
label_without_line(struct pool *pool, uint32_t label)
{
    struct fxt_string text = pool_string(pool, label);
    size_t end = label_path_end(text);
    if (end == text.len) return label;
    char *copy = xrealloc(NULL, end + 2, 1);
    memcpy(copy, text.ptr, end);
    copy[end] = ')';
    uint32_t id = pool_intern(pool, copy, end + 1);
    free(copy);
    return id;
}

static uint64_t
key_of(uint32_t process, uint32_t text)
{
    return (uint64_t)process << 32 | text;
}

static void
know_iseq(struct lives *lives, struct pool *pool, uint32_t process, uint32_t iseq)
{
    uint64_t key = key_of(process, iseq);
    if (map_get(&lives->iseq_of_label, key) != MAP_NONE) return;
    uint32_t method = label_without_line(pool, iseq), index = lives->iseq_count;
    make_room(lives->iseqs, lives->iseq_count, lives->iseq_capacity);
    lives->iseqs[lives->iseq_count++] = (struct life_iseq){
        .process = process, .iseq = iseq, .method = method, .line = label_parts(pool_string(pool, iseq)).line, .order = index};
    map_set(&lives->iseq_of_label, key, index);
}

/* NULL when there are too many. */
static struct life_step *
add_step(struct lives *lives, struct pool *pool, uint32_t process, uint32_t iseq, enum step_kind kind, int64_t ts_ns)
{
    if (lives->count == LIVES_STEPS_MAX) {
        lives->untold++;
        return NULL;
    }
    know_iseq(lives, pool, process, iseq);
    make_room(lives->steps, lives->count, lives->capacity);
    struct life_step *step = &lives->steps[lives->count];
    *step = (struct life_step){.process = process, .iseq = iseq, .kind = kind, .ts_ns = ts_ns, .end_ns = INT64_MIN, .order = lives->count};
    lives->count++;
    return step;
}

/* The outermost compilation of a thread that is open: the beginning of what ends with an `iseq`. */
static void
follow_compilation(struct lives *lives, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    uint64_t thread = mix64((uint64_t)event->pid << 32 | event->tid);
    uint32_t index = map_get(&lives->open_compiles, thread);
    if (index == MAP_NONE) {
        index = lives->compile_count;
        make_room(lives->compiles, lives->compile_count, lives->compile_capacity);
        memset(&lives->compiles[lives->compile_count++], 0, sizeof *lives->compiles);
        map_set(&lives->open_compiles, thread, index);
    }
    uint32_t *depth = &lives->compiles[index].depth;
    if (event->type == FXT_EVENT_DURATION_BEGIN) {
        if ((*depth)++ == 0) lives->compiles[index].begin_ns = event->ts_ns;
        return;
    }
    /* Where its begin gave way at the file's limit it has no length. */
    int64_t begin_ns = *depth > 0 ? lives->compiles[index].begin_ns : event->ts_ns;
    if (*depth > 0) --*depth;
    uint32_t iseq = event_text(pool, event, WORD_ISEQ);
    if (iseq == STRING_NONE) return;
    *depth = 0;
    uint32_t version = (uint32_t)event_uint(event, WORD_VERSION, 0);
    uint32_t error = event_text(pool, event, WORD_ERROR);
    if (version == 0 && error == STRING_NONE) return; /* there was code already */
    if (begin_ns > event->ts_ns) begin_ns = event->ts_ns;
    struct life_step *step = add_step(lives, pool, process, iseq, version > 0 ? STEP_COMPILED : STEP_FAILED, begin_ns);
    if (step == NULL) return;
    step->version = version;
    step->end_ns = event->ts_ns;
    step->reason = error;
    step->inlined = event_text(pool, event, WORD_INLINED);
    step->code_bytes = event_uint(event, WORD_CODE_BYTES, 0);
    step->exit_bytes = event_uint(event, WORD_EXIT_BYTES, 0);
    step->exits = event_uint(event, WORD_EXITS, 0);
}

static void
follow_profiling(struct lives *lives, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    uint64_t key = mix64(event->id) ^ event->pid;
    if (event->type == FXT_EVENT_ASYNC_BEGIN) {
        struct life_step *step = add_step(lives, pool, process, pool_id(pool, event->name), STEP_PROFILED, event->ts_ns);
        if (step == NULL) return;
        step->version = (uint32_t)event_uint(event, WORD_VERSION, 0);
        step->reason = event_reason(pool, event);
        map_set(&lives->open_profiles, key, step->order);
    }
    else if (event->type == FXT_EVENT_ASYNC_END) {
        uint32_t index = map_get(&lives->open_profiles, key);
        if (index != MAP_NONE) lives->steps[index].end_ns = event->ts_ns;
    }
}

void
lives_event(struct lives *lives, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    switch (event->category.id) {
      case WORD_COMPILE:
        if (event->type == FXT_EVENT_DURATION_BEGIN || event->type == FXT_EVENT_DURATION_END) follow_compilation(lives, pool, process, event);
        return;
      case WORD_REPROFILE: follow_profiling(lives, pool, process, event); return;
      case WORD_INVALIDATION: {
        uint32_t iseq = event_text(pool, event, WORD_ISEQ);
        if (event->type != FXT_EVENT_DURATION_BEGIN) return;
        if (iseq == STRING_NONE) {
            lives->violated_at = event_text(pool, event, WORD_FRAME_0);
            return;
        }
        struct life_step *step = add_step(lives, pool, process, iseq, STEP_INVALIDATED, event->ts_ns);
        if (step == NULL) return;
        step->version = (uint32_t)event_uint(event, WORD_VERSION, 0);
        step->reason = event_reason(pool, event);
        step->place = event_text(pool, event, WORD_FRAME_0);
        if (step->place == STRING_NONE) step->place = lives->violated_at; /* it is a part of that */
        return;
      }
    }
}

void
lives_file_end(struct lives *lives)
{
    map_free(&lives->open_compiles);
    map_free(&lives->open_profiles);
    lives->compile_count = 0;
}

static int
compare_steps(const void *left, const void *right)
{
    const struct life_step *a = left, *b = right;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->iseq != b->iseq) return a->iseq < b->iseq ? -1 : 1;
    if (a->ts_ns != b->ts_ns) return a->ts_ns < b->ts_ns ? -1 : 1;
    /* Of the same time: profiling begins with the invalidation. */
    return (a->order > b->order) - (a->order < b->order);
}

static int
compare_iseqs(const void *left, const void *right)
{
    const struct life_iseq *a = left, *b = right;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->method != b->method) return a->method < b->method ? -1 : 1;
    if (a->line != b->line) return a->line < b->line ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static bool
same_method(const struct life_iseq *a, const struct life_iseq *b)
{
    return a->process == b->process && a->method == b->method;
}

void
lives_settle(struct lives *lives)
{
    if (lives->count > 0) qsort(lives->steps, lives->count, sizeof *lives->steps, compare_steps);
    if (lives->iseq_count > 0) qsort(lives->iseqs, lives->iseq_count, sizeof *lives->iseqs, compare_iseqs);
    for (uint32_t i = 0; i < lives->iseq_count; i++) {
        const struct life_iseq *iseq = &lives->iseqs[i];
        if (i == 0 || !same_method(iseq - 1, iseq)) map_set(&lives->iseqs_of_method, key_of(iseq->process, iseq->method), i);
    }
}

uint32_t
lives_owner(const struct lives *lives, struct pool *pool, uint32_t process, uint32_t iseq, uint32_t location)
{
    if (iseq != STRING_NONE) return iseq;
    uint32_t first = map_get(&lives->iseqs_of_method, key_of(process, label_without_line(pool, location)));
    if (first == MAP_NONE) return STRING_NONE;
    int64_t line = label_parts(pool_string(pool, location)).line;
    /* The first one that does not come before the exit: of this method, or of what follows. */
    uint32_t low = first, high = lives->iseq_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct life_iseq *known = &lives->iseqs[middle];
        if (same_method(known, &lives->iseqs[first]) && known->line <= line) low = middle + 1;
        else high = middle;
    }
    return lives->iseqs[low > first ? low - 1 : first].iseq;
}
