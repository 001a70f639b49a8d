/* calls.c - see calls.h */
#include <stdlib.h>
#include <string.h>

#include "topics/calls/calls.h"
#include "base/xalloc.h"

/* --- the slowest calls ---------------------------------------------------------------------------- */

static void
sift_down(struct slow_call *heap, uint32_t count, struct slow_call call)
{
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1].ns < heap[child].ns) child++;
        if (heap[child].ns >= call.ns) break;
        heap[at] = heap[child];
    }
    heap[at] = call;
}

static void
sift_up(struct slow_call *heap, uint32_t at, struct slow_call call)
{
    for (; at > 0 && heap[(at - 1) / 2].ns > call.ns; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = call;
}

static void
note_slow(struct calls *calls, struct slowest *slowest, uint64_t ns, uint32_t track, const struct call *call)
{
    bool full = slowest->count == CALLS_SLOWEST;
    if ((full && ns <= slowest->heap[0].ns) || !calls->wanted(calls->context, call->name)) return;
    struct slow_call slow = {
        .ns = ns, .total_ns = call->total_ns, .own_ns = call->own_ns, .begin_ns = call->begin_ns,
        .left_out = call->left_out, .track = track, .name = call->name, .ended = call->ended,
    };
    if (full) sift_down(slowest->heap, slowest->count, slow);
    else sift_up(slowest->heap, slowest->count++, slow);
}

static int
compare_slow(const void *left, const void *right)
{
    const struct slow_call *a = left, *b = right;
    if (a->ns != b->ns) return a->ns > b->ns ? -1 : 1;
    if (a->begin_ns != b->begin_ns) return a->begin_ns < b->begin_ns ? -1 : 1;
    return (a->track > b->track) - (a->track < b->track);
}

void
calls_sort_slowest(struct calls *calls)
{
    struct slowest *both[] = {&calls->by_total, &calls->by_own};
    for (unsigned i = 0; i < 2; i++) qsort(both[i]->heap, both[i]->count, sizeof *both[i]->heap, compare_slow);
}

/* --- total time ----------------------------------------------------------------------------------- */

/* Joins the older half of the stretches, two at a time. */
static void
join_stretches(struct call_sum *sum)
{
    struct call_stretch *list = sum->outermost;
    uint32_t kept = 0, half = sum->count / 2;
    for (uint32_t i = 0; i + 1 < half; i += 2)
        list[kept++] = (struct call_stretch){list[i].begin_ns, list[i + 1].end_ns,
                                             list[i].total_ns + list[i + 1].total_ns};
    memmove(list + kept, list + half, (sum->count - half) * sizeof *list);
    sum->count = kept + sum->count - half;
}

/* Where a late call belongs in the list; UINT32_MAX if an earlier one encloses it. */
static uint32_t
place_of(const struct call_sum *sum, const struct call *call)
{
    uint32_t at = sum->count;
    while (at > 0 && sum->outermost[at - 1].end_ns > call->end_ns) {
        if (sum->outermost[--at].begin_ns <= call->begin_ns) return UINT32_MAX;
    }
    return at;
}

/* Adds a call's time, without that of calls of the same method inside of it, which was added before. */
static void
add_total(struct call_sum *sum, const struct call *call)
{
    uint64_t covered_ns = 0;
    uint32_t end = place_of(sum, call), at = end; /* from `at` on they are inside of the call */
    if (end == UINT32_MAX) return;
    for (; at > 0; at--) {
        const struct call_stretch *last = &sum->outermost[at - 1];
        if (last->begin_ns + (last->end_ns - last->begin_ns) / 2 < call->begin_ns) break;
        covered_ns += last->total_ns;
    }
    sum->totals.total_ns += call->total_ns - (covered_ns < call->total_ns ? covered_ns : call->total_ns);
    if (at == end) {
        make_room(sum->outermost, sum->count, sum->capacity);
        end++;
        memmove(sum->outermost + end, sum->outermost + at, (sum->count++ - at) * sizeof *sum->outermost);
    }
    sum->outermost[at] = (struct call_stretch){call->begin_ns, call->end_ns, call->total_ns};
    memmove(sum->outermost + at + 1, sum->outermost + end, (sum->count - end) * sizeof *sum->outermost);
    sum->count -= end - at - 1;
    if (sum->count > CALL_OPEN_MAX) join_stretches(sum);
}

/* --- what the nesting finds ------------------------------------------------------------------------- */

static void
add_pair(struct calls *calls, uint32_t caller, const struct call *callee)
{
    const uint32_t key[CALL_PAIR_KEYS] = {calls->file, caller, callee->name};
    struct call_pair *pair = row_table_get(&calls->pairs, key);
    if (pair == NULL) {
        calls->uncounted += callee->calls;
        return;
    }
    pair->calls += callee->calls;
    pair->total_ns += callee->total_ns;
    call_add_ns(&pair->own_ns, callee->own_ns);
}

static bool
hidden_p(const struct calls *calls, uint32_t name)
{
    return calls->hidden != NULL && calls->hidden(calls->context, name);
}

static void
on_callee(void *context, uint32_t track, struct call *caller, const struct call *callee)
{
    struct calls *calls = context;
    (void)track;
    if (hidden_p(calls, callee->name)) call_add_ns(&caller->own_ns, callee->own_ns);
    else if (!hidden_p(calls, caller->name)) add_pair(calls, caller->name, callee);
}

static void
on_returned(void *context, uint32_t track, struct call *call)
{
    struct calls *calls = context;
    const uint32_t key[CALL_SUM_KEYS] = {track, call->name};
    if (hidden_p(calls, call->name)) return;
    struct call_sum *sum = row_table_get(&calls->sums, key);
    if (sum == NULL) {
        calls->uncounted++;
        return;
    }
    sum->file = calls->file;
    sum->totals.calls++;
    call_add_ns(&sum->totals.own_ns, call->own_ns);
    sum->totals.left_out += call->left_out;
    sum->totals.left_out_ns += call->left_out_ns;
    if (call->total_ns > sum->totals.max_ns) sum->totals.max_ns = call->total_ns;
    add_total(sum, call);
    note_slow(calls, &calls->by_total, call->total_ns, track, call);
    if (call->own_ns > 0) note_slow(calls, &calls->by_own, (uint64_t)call->own_ns, track, call);
}

static void
on_late_callee(void *context, uint32_t track, struct call *caller, const struct call *callee)
{
    struct calls *calls = context;
    const uint32_t key[CALL_SUM_KEYS] = {track, caller->name};
    bool hidden = hidden_p(calls, callee->name), in_hidden = hidden_p(calls, caller->name);
    struct call_sum *sum = in_hidden ? NULL : row_table_get(&calls->sums, key);
    if (hidden) call_add_ns(&caller->own_ns, callee->own_ns);
    if (sum != NULL) call_add_ns(&sum->totals.own_ns, (int64_t)(0 - callee->total_ns));
    if (sum != NULL && hidden) call_add_ns(&sum->totals.own_ns, callee->own_ns);
    if (!hidden && !in_hidden) add_pair(calls, caller->name, callee);
}

static void
on_outermost(void *context, uint32_t track, const struct call *call)
{
    struct calls *calls = context;
    struct call_thread *thread = row_table_get(&calls->threads, &track);
    if (thread != NULL) thread->recorded_ns += call->total_ns;
    if (!hidden_p(calls, call->name)) {
        add_pair(calls, STRING_NONE, call);
        return;
    }
    const uint32_t key[CALL_SUM_KEYS] = {track, calls->outside};
    struct call_sum *sum = row_table_get(&calls->sums, key);
    if (sum == NULL) return;
    sum->file = calls->file;
    call_add_ns(&sum->totals.own_ns, call->own_ns);
}

static void
on_suspended(void *context, uint32_t track, const struct call *call)
{
    struct calls *calls = context;
    struct call_thread *thread = row_table_get(&calls->threads, &track);
    if (thread == NULL) return;
    thread->suspended_ns += call->total_ns;
    thread->recorded_ns -= call->total_ns; /* that of the outermost call includes it */
}

/* --- all ---------------------------------------------------------------------------------------------- */

void
calls_init(struct calls *calls, void *context, bool (*wanted)(void *context, uint32_t name))
{
    *calls = (struct calls){.context = context, .wanted = wanted};
    const struct call_nesting_visitor visitor = {
        .context = calls, .callee = on_callee, .late_callee = on_late_callee, .returned = on_returned,
        .outermost = on_outermost, .suspended = on_suspended};
    call_nesting_init(&calls->nesting, &visitor);
    row_table_init(&calls->sums, sizeof(struct call_sum), CALL_SUM_KEYS, CALL_SUMS_MAX);
    row_table_init(&calls->pairs, sizeof(struct call_pair), CALL_PAIR_KEYS, CALL_PAIRS_MAX);
    row_table_init(&calls->threads, sizeof(struct call_thread), 1, CALL_TRACKS_MAX);
    calls->by_total.heap = xcalloc(CALLS_SLOWEST, sizeof *calls->by_total.heap);
    calls->by_own.heap = xcalloc(CALLS_SLOWEST, sizeof *calls->by_own.heap);
}

static void
free_stretches(struct calls *calls)
{
    for (uint32_t i = 0; i < calls->sums.count; i++) {
        struct call_sum *sum = row_table_at(&calls->sums, i);
        free(sum->outermost);
        sum->outermost = NULL;
        sum->count = sum->capacity = 0;
    }
}

void
calls_free(struct calls *calls)
{
    call_nesting_free(&calls->nesting);
    free_stretches(calls);
    row_table_free(&calls->sums);
    row_table_free(&calls->pairs);
    row_table_free(&calls->threads);
    free(calls->by_total.heap);
    free(calls->by_own.heap);
}

void
calls_file_end(struct calls *calls)
{
    call_nesting_finish(&calls->nesting);
    free_stretches(calls);
}

void
call_totals_add(struct call_totals *totals, const struct call_totals *other)
{
    totals->calls += other->calls;
    totals->total_ns += other->total_ns;
    call_add_ns(&totals->own_ns, other->own_ns);
    totals->left_out += other->left_out;
    totals->left_out_ns += other->left_out_ns;
    if (other->max_ns > totals->max_ns) totals->max_ns = other->max_ns;
}

struct row_table
calls_group(const struct calls *calls, bool by_file)
{
    struct row_table rows;
    row_table_init(&rows, sizeof(struct call_row), CALL_ROW_KEYS, CALL_SUMS_MAX);
    for (uint32_t i = 0; i < calls->sums.count; i++) {
        const struct call_sum *sum = row_table_at(&calls->sums, i);
        const uint32_t key[CALL_ROW_KEYS] = {by_file ? sum->file : 0, sum->name};
        struct call_row *row = row_table_get(&rows, key); /* not more than there are sums */
        call_totals_add(&row->totals, &sum->totals);
    }
    return rows;
}
