/* thread_page.c - see thread_page.h */
#include <stdlib.h>
#include <string.h>

#include "topics/fibers/fibers.h"
#include "topics/threads/thread_page.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"

static const enum thread_state thread_state_of[TIMELINE_STATES] = {
    [TIMELINE_WAITING] = THREAD_WAITING,
    [TIMELINE_BLOCKED] = THREAD_BLOCKED,
    [TIMELINE_GC] = THREAD_IN_GC,
    [TIMELINE_RUNNING] = THREAD_RUNNING,
};

static enum timeline_state
timeline_state_of(enum thread_state state)
{
    switch (state) {
      case THREAD_WAITING: return TIMELINE_WAITING;
      case THREAD_BLOCKED: return TIMELINE_BLOCKED;
      case THREAD_IN_GC: return TIMELINE_GC;
      default: return TIMELINE_RUNNING;
    }
}

/* --- while reading ------------------------------------------------------------------------------- */

/* Folds the largest timelines until all together have at most `limit` segments. */
static void
fold_all(struct page_threads *threads, uint64_t limit)
{
    while (threads->segments > limit && threads->segments_of_track_max > PAGE_SEGMENTS_LEAST) {
        threads->segments_of_track_max /= 2;
        timeline_fold(&threads->pauses, threads->segments_of_track_max);
        threads->segments = threads->pauses.count;
        for (uint32_t i = 0; i < threads->timeline_capacity; i++) {
            timeline_fold(&threads->timelines[i], threads->segments_of_track_max);
            threads->segments += threads->timelines[i].count;
        }
    }
}

static void
add_segment(struct page_threads *threads, struct timeline *timeline, const struct timeline_segment *segment,
            const struct timeline_name *name)
{
    if (timeline->count >= threads->segments_of_track_max) {
        threads->segments -= timeline->count;
        timeline_fold(timeline, threads->segments_of_track_max / 2);
        threads->segments += timeline->count;
    }
    timeline_add(timeline, segment, name);
    if (++threads->segments > PAGE_SEGMENTS_MAX) fold_all(threads, PAGE_SEGMENTS_MAX / 2);
}

/* Returns the timeline of a thread; NULL if there are too many. */
static struct timeline *
timeline_of(struct page_threads *threads, uint32_t thread)
{
    if (thread >= PAGE_TRACKS_MAX) return NULL;
    while (thread >= threads->timeline_capacity) {
        uint32_t count = threads->timeline_capacity;
        make_room(threads->timelines, count, threads->timeline_capacity);
        memset(threads->timelines + count, 0, (threads->timeline_capacity - count) * sizeof *threads->timelines);
    }
    return &threads->timelines[thread];
}

static uint32_t
blocked_name(struct page_threads *threads, const struct track_piece *piece)
{
    const uint32_t key[2] = {piece->name, piece->class_name};
    const struct page_blocked *blocked = row_table_get(&threads->blocked, key);
    return blocked == NULL ? TIMELINE_OTHER_NAMES : (uint32_t)(blocked - (struct page_blocked *)threads->blocked.rows);
}

static void
on_piece(void *context, const struct track_piece *piece)
{
    struct page_threads *threads = context;
    threads->piece(threads->context, piece);
    struct timeline *timeline = timeline_of(threads, piece->thread);
    if (timeline == NULL) return;
    struct timeline_segment segment = {
        .from_ns = piece->from_ns, .to_ns = piece->to_ns, .waker = TIMELINE_NO_NAME};
    if (piece->waker != NO_TRACK) segment.waker = piece->waker;
    segment.ns[timeline_state_of(piece->state)] = (uint64_t)(piece->to_ns - piece->from_ns) - piece->gc_ns;
    segment.ns[TIMELINE_GC] += piece->gc_ns;
    if (piece->name == STRING_NONE) {
        add_segment(threads, timeline, &segment, NULL);
        return;
    }
    uint64_t ns = (uint64_t)(piece->to_ns - piece->name_ns);
    struct timeline_name name = {.name = blocked_name(threads, piece), .count = 1, .ns = ns, .longest_ns = ns};
    add_segment(threads, timeline, &segment, &name);
}

static void
add_pause(struct page_threads *threads, const struct duration_edge *begin, const struct duration_edge *end)
{
    if (end->ts_ns < begin->ts_ns) return; /* an end that came later than the window of duration_pairs.h */
    uint64_t ns = (uint64_t)(end->ts_ns - begin->ts_ns);
    struct timeline_segment segment = {.from_ns = begin->ts_ns, .to_ns = end->ts_ns, .waker = begin->row};
    segment.ns[TIMELINE_GC] = ns;
    uint32_t reason = threads->gc.last_row;
    struct timeline_name name = {.name = reason == NO_GC_ROW ? TIMELINE_OTHER_NAMES : reason,
                                 .count = 1,
                                 .firsts = threads->gc.last_first,
                                 .ns = ns,
                                 .longest_ns = ns};
    add_segment(threads, &threads->pauses, &segment, &name);
}

static void
on_pair(void *context, const struct duration_edge *begin, const struct duration_edge *end)
{
    struct page_threads *threads = context;
    if (begin != NULL && end != NULL && begin->category == STRING_GC) {
        uint32_t process = track_thread(&threads->tracks, begin->row)->process;
        gc_pauses_add(&threads->gc, process, process, begin, end, true);
        if (begin->outermost && (begin->name == STRING_GC_MINOR || begin->name == STRING_GC_MAJOR))
            add_pause(threads, begin, end);
    }
    threads->pair(threads->context, begin, end);
}

static void
add_fiber_state(struct page_threads *threads, struct thread_times *times, enum thread_state state, int64_t from_ns,
                int64_t to_ns, const struct timeline_name *name, uint32_t waker)
{
    if (to_ns <= from_ns) return;
    uint64_t ns = (uint64_t)(to_ns - from_ns);
    times->ns[state] += ns;
    struct timeline *timeline = timeline_of(threads, times->row);
    if (timeline == NULL) return;
    struct timeline_segment segment = {.from_ns = from_ns, .to_ns = to_ns, .waker = waker};
    segment.ns[timeline_state_of(state)] = ns;
    add_segment(threads, timeline, &segment, name);
}

void
page_threads_fiber(struct page_threads *threads, uint32_t number, const struct fxt_event *event)
{
    if (event->type != FXT_EVENT_DURATION_COMPLETE || !fiber_tid_p(event->tid)) return;
    struct thread_times *times = row_table_get(&threads->fibers, &number);
    if (times == NULL) return;
    const struct fiber_times of = fiber_times(event);
    uint32_t waker = TIMELINE_NO_NAME, waker_tid = (uint32_t)event_uint(event, STRING_WAKER, 0);
    if (waker_tid != 0) waker = thread_tracks_of(&threads->tracks, event->recording, event->pid, waker_tid);
    const struct track_piece blocked = {.name = pool_id(threads->tracks.pool, event->name), .class_name = STRING_NONE};
    uint64_t ns = of.waited - of.ready;
    const struct timeline_name name = {
        .name = blocked_name(threads, &blocked), .count = 1, .ns = ns, .longest_ns = ns};
    int64_t ran_at_ns = event->ts_ns - (int64_t)of.ran, ready_at_ns = event->end_ns - (int64_t)of.ready;
    add_fiber_state(threads, times, THREAD_RUNNING, ran_at_ns, event->ts_ns, NULL, TIMELINE_NO_NAME);
    add_fiber_state(threads, times, THREAD_BLOCKED, event->ts_ns, ready_at_ns, &name, waker);
    add_fiber_state(threads, times, THREAD_WAITING, ready_at_ns, event->end_ns, NULL, TIMELINE_NO_NAME);
}

/* --- all ------------------------------------------------------------------------------------------- */

void
page_threads_init(struct page_threads *threads, struct pool *pool, void *context,
                  void (*pair)(void *context, const struct duration_edge *begin, const struct duration_edge *end),
                  void (*piece)(void *context, const struct track_piece *piece))
{
    *threads = (struct page_threads){
        .segments_of_track_max = PAGE_SEGMENTS_OF_TRACK_MAX, .context = context, .pair = pair, .piece = piece};
    const struct thread_tracks_visitor visitor = {.context = threads, .piece = on_piece, .pair = on_pair};
    thread_tracks_init(&threads->tracks, pool, &visitor);
    gc_pauses_init(&threads->gc, pool);
    row_table_init(&threads->blocked, sizeof(struct page_blocked), 2, PAGE_BLOCKED_NAMES_MAX);
    row_table_init(&threads->fibers, sizeof(struct thread_times), 1, FIBER_TRACKS_MAX);
}

void
page_threads_free(struct page_threads *threads)
{
    for (uint32_t i = 0; i < threads->timeline_capacity; i++) timeline_free(&threads->timelines[i]);
    free(threads->timelines);
    timeline_free(&threads->pauses);
    free(threads->of_threads.shown);
    free(threads->of_fibers.shown);
    row_table_free(&threads->blocked);
    row_table_free(&threads->fibers);
    gc_pauses_free(&threads->gc);
    thread_tracks_free(&threads->tracks);
}

/* As the report sorts them. */
static int
compare_waiting(const void *left, const void *right)
{
    const struct page_track *a = left, *b = right;
    uint64_t a_ns[] = {a->times->ns[THREAD_WAITING], thread_life_ns(a->times)};
    uint64_t b_ns[] = {b->times->ns[THREAD_WAITING], thread_life_ns(b->times)};
    for (unsigned i = 0; i < 2; i++) {
        if (a_ns[i] != b_ns[i]) return a_ns[i] > b_ns[i] ? -1 : 1;
    }
    return (a->thread > b->thread) - (a->thread < b->thread);
}

static struct page_track_list
choose(struct page_threads *threads, const struct row_table *times)
{
    struct page_track_list list = {.shown = xcalloc((size_t)times->count + 1, sizeof *list.shown)};
    uint32_t count = 0;
    for (uint32_t i = 0; i < times->count; i++) {
        const struct thread_times *thread = row_table_at(times, i);
        if (thread_life_ns(thread) > 0) list.shown[count++] = (struct page_track){thread->row, thread};
    }
    qsort(list.shown, count, sizeof *list.shown, compare_waiting);
    for (uint32_t i = 0; i < count; i++) {
        if (list.count < PAGE_TRACKS_SHOWN && list.shown[i].thread < PAGE_TRACKS_MAX) {
            list.shown[list.count++] = list.shown[i];
            continue;
        }
        list.left_out++;
        for (unsigned state = 0; state < TIMELINE_STATES; state++)
            list.left_out_ns[state] += list.shown[i].times->ns[thread_state_of[state]];
        if (list.shown[i].thread < threads->timeline_capacity) {
            struct timeline *timeline = &threads->timelines[list.shown[i].thread];
            threads->segments -= timeline->count;
            timeline_free(timeline);
        }
    }
    return list;
}

void
page_threads_finish(struct page_threads *threads)
{
    threads->of_threads = choose(threads, &threads->tracks.states.threads);
    threads->of_fibers = choose(threads, &threads->fibers);
    timeline_sort(&threads->pauses);
    for (uint32_t i = 0; i < threads->timeline_capacity; i++) timeline_sort(&threads->timelines[i]);
    fold_all(threads, PAGE_SEGMENTS_SHOWN);
}
