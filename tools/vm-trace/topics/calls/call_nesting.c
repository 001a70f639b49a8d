/* call_nesting.c - see call_nesting.h */
#include <stdlib.h>
#include <string.h>

#include "topics/calls/call_nesting.h"
#include "analysis/event_args.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"

enum {
    FIRST_STRETCH = 1024,       /* calls that are folded together */
    KEPT_MAX = 8 * 1024 * 1024, /* calls that are sorted; more of them are sorted in parts */
    JOINS_MAX = 4096 /* of a track; each takes as long as its list is */
};

void
call_nesting_init(struct call_nesting *nesting, const struct call_nesting_visitor *visitor)
{
    *nesting = (struct call_nesting){.visitor = *visitor, .from_ns = INT64_MIN, .to_ns = INT64_MAX};
    row_table_init(&nesting->tracks, sizeof(struct call_track), 1, CALL_TRACKS_MAX);
}

static void
free_tracks(struct call_nesting *nesting)
{
    for (uint32_t i = 0; i < nesting->tracks.count; i++) {
        struct call_track *track = row_table_at(&nesting->tracks, i);
        free(track->list);
        free(track->later);
    }
    row_table_free(&nesting->tracks);
}

void
call_nesting_free(struct call_nesting *nesting)
{
    free_tracks(nesting);
    free(nesting->folded_at);
    free(nesting->kept);
}

static bool
suspended_p(const struct call *call)
{
    return call->name == STRING_FIBER_SUSPENDED;
}

/* --- folding ------------------------------------------------------------------------------------ */

static void
make_names(struct call_nesting *nesting, uint32_t name)
{
    uint32_t size = nesting->names;
    if (name < size) return;
    while (size <= name) size = (uint32_t)grown_capacity(size, sizeof size);
    nesting->folded_at = xrealloc(nesting->folded_at, size, sizeof *nesting->folded_at);
    for (uint32_t i = nesting->names; i < size; i++) nesting->folded_at[i] = 0;
    nesting->names = size;
}

static void
fold_into(struct call_nesting *nesting, struct call *into, const struct call *from)
{
    if (nesting->visitor.fold != NULL && !suspended_p(into))
        nesting->visitor.fold(nesting->visitor.context, into, from);
    into->total_ns += from->total_ns;
    call_add_ns(&into->own_ns, from->own_ns);
    into->calls += from->calls;
    into->left_out += from->left_out;
    into->left_out_ns += from->left_out_ns;
}

/* The end of the stretch that begins with this entry: FIRST_STRETCH calls, or two stretches. */
static uint32_t
stretch_end(const struct call *list, uint32_t from, uint32_t to, bool folded)
{
    if (!folded) return to - from < FIRST_STRETCH ? to : from + FIRST_STRETCH;
    uint32_t end = from;
    for (unsigned stretch = 0; stretch < 2 && end < to; stretch++) {
        for (uint32_t first = end; end < to && list[end].begin_ns == list[first].begin_ns;) end++;
    }
    return end;
}

/* Folds the entries of a part of the list, and moves what is behind them. Returns where that part now ends. */
static uint32_t
fold_part(struct call_nesting *nesting, struct call_track *track, uint32_t from, uint32_t to, bool folded)
{
    struct call *list = track->list;
    uint32_t kept = from;
    for (uint32_t at = from, end; at < to; at = end) {
        uint32_t first = kept;
        end = stretch_end(list, at, to, folded);
        int64_t begin_ns = list[at].begin_ns, end_ns = list[end - 1].end_ns;
        for (uint32_t i = at; i < end; i++) {
            uint32_t name = list[i].name, into;
            make_names(nesting, name);
            into = nesting->folded_at[name];
            if (into >= first && into < kept && list[into].name == name) {
                fold_into(nesting, &list[into], &list[i]);
                continue;
            }
            nesting->folded_at[name] = kept;
            list[kept++] = list[i];
        }
        for (uint32_t i = first; i < kept; i++) list[i].begin_ns = begin_ns, list[i].end_ns = end_ns;
    }
    memmove(list + kept, list + to, (track->count - to) * sizeof *list);
    track->count -= to - kept;
    return kept;
}

/* Makes room in a list: of the calls that are folded, too, the oldest ones are folded again. */
static void
fold_oldest(struct call_nesting *nesting, struct call_track *track)
{
    track->folded = fold_part(nesting, track, track->folded, track->count - CALL_LIST_HALF, false);
    if (track->folded > CALL_LIST_HALF / 2)
        track->folded -= track->folded / 2 - fold_part(nesting, track, 0, track->folded / 2, true);
    if (track->count > track->limit / 4 * 3) track->limit *= 2; /* so many different names */
}

/* --- calls in another order ----------------------------------------------------------------------- */

/* Sets aside what ended after this time. */
static void
set_aside(struct call_track *track, int64_t end_ns)
{
    uint32_t kept = track->count;
    while (kept > 0 && track->list[kept - 1].end_ns > end_ns) kept--;
    for (uint32_t i = kept; i < track->count; i++) {
        make_room(track->later, track->later_count, track->later_capacity);
        track->later[track->later_count++] = track->list[i];
    }
    track->count = kept;
    if (track->folded > kept) track->folded = kept;
    track->late = true;
    track->later_ns = track->last_ns;
}

/* When the first call ended that was set aside. */
static int64_t
next_later_ns(const struct call_track *track)
{
    return track->later_count > 0 ? track->later[0].end_ns : track->later_ns;
}

/* The call that was set aside and encloses another one, or NULL. */
static struct call *
enclosing(const struct call_track *track, const struct call *call)
{
    uint32_t low = 0, high = track->later_count; /* those before `low` begin earlier */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (track->later[middle].begin_ns < call->begin_ns) low = middle + 1;
        else high = middle;
    }
    return low > 0 && track->later[low - 1].end_ns >= call->end_ns ? &track->later[low - 1] : NULL;
}

/* Puts what was set aside behind the list. */
static void
join_later(struct call_nesting *nesting, struct call_track *track)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < track->count; i++) {
        struct call *caller = enclosing(track, &track->list[i]);
        if (caller == NULL) {
            track->list[kept++] = track->list[i];
            continue;
        }
        call_add_ns(&caller->own_ns, (int64_t)(0 - track->list[i].total_ns));
        if (!suspended_p(&track->list[i]))
            nesting->visitor.late_callee(nesting->visitor.context, track->track, caller, &track->list[i]);
    }
    track->count = kept;
    if (track->folded > kept) track->folded = kept;
    for (uint32_t i = 0; i < track->later_count; i++) {
        make_room(track->list, track->count, track->capacity);
        track->list[track->count++] = track->later[i];
    }
    while (track->count >= track->limit) track->limit *= 2;
    track->later_count = 0;
    track->late = false;
    track->last_ns = track->later_ns;
    track->joins++;
}

/* --- adding ------------------------------------------------------------------------------------- */

/* Whether a call that begins at this time is the caller of the last entry. */
static bool
calls_last(const struct call_track *track, int64_t begin_ns)
{
    if (track->count == 0) return false;
    const struct call *last = &track->list[track->count - 1];
    if (last->begin_ns >= begin_ns) return true;
    return track->count <= track->folded && begin_ns < last->begin_ns + (last->end_ns - last->begin_ns) / 2;
}

static void
nest(struct call_nesting *nesting, uint32_t number, struct call *call)
{
    struct call_track *track = row_table_get(&nesting->tracks, &number);
    if (track == NULL) {
        nesting->uncounted++;
        return;
    }
    if (track->limit == 0) {
        track->limit = 2 * CALL_LIST_HALF;
        track->last_ns = INT64_MIN;
    }
    if (track->late && (call->end_ns >= next_later_ns(track) || call->end_ns < track->last_ns))
        join_later(nesting, track);
    if (call->end_ns < track->last_ns) {
        if (track->joins == JOINS_MAX) {
            nesting->late++;
            return;
        }
        set_aside(track, call->end_ns);
    }
    track->last_ns = call->end_ns;
    for (; calls_last(track, call->begin_ns); track->count--) {
        const struct call *callee = &track->list[track->count - 1];
        call_add_ns(&call->own_ns, (int64_t)(0 - callee->total_ns));
        if (!suspended_p(callee)) nesting->visitor.callee(nesting->visitor.context, number, call, callee);
    }
    if (track->folded > track->count) track->folded = track->count;
    if (!suspended_p(call)) nesting->visitor.returned(nesting->visitor.context, number, call);
    else if (nesting->visitor.suspended != NULL) nesting->visitor.suspended(nesting->visitor.context, number, call);
    make_room(track->list, track->count, track->capacity);
    track->list[track->count++] = *call;
    if (track->count == track->limit) fold_oldest(nesting, track);
}

/* As they were written: by their ends, the inner one of two first. */
static int
compare_kept(const void *left, const void *right)
{
    const struct kept_call *a = left, *b = right;
    if (a->call.end_ns != b->call.end_ns) return a->call.end_ns < b->call.end_ns ? -1 : 1;
    if (a->call.begin_ns != b->call.begin_ns) return a->call.begin_ns > b->call.begin_ns ? -1 : 1;
    return (a->track > b->track) - (a->track < b->track);
}

static void
nest_kept(struct call_nesting *nesting)
{
    if (nesting->kept_count > 1) qsort(nesting->kept, nesting->kept_count, sizeof *nesting->kept, compare_kept);
    for (uint32_t i = 0; i < nesting->kept_count; i++) nest(nesting, nesting->kept[i].track, &nesting->kept[i].call);
    nesting->kept_count = 0;
}

void
call_nesting_add(struct call_nesting *nesting, uint32_t track, const struct call *call)
{
    struct call counted = *call;
    int64_t begin_ns = call->begin_ns > nesting->from_ns ? call->begin_ns : nesting->from_ns;
    int64_t end_ns = call->end_ns < nesting->to_ns ? call->end_ns : nesting->to_ns;
    /* Outside of the window, as are all its callees. */
    if (end_ns < begin_ns || call->end_ns < nesting->from_ns || call->begin_ns >= nesting->to_ns) return;
    counted.total_ns = (uint64_t)(end_ns - begin_ns);
    counted.own_ns = end_ns - begin_ns;
    counted.calls = 1;
    if (!nesting->sorted) {
        nest(nesting, track, &counted);
        return;
    }
    if (nesting->kept_count == KEPT_MAX) nest_kept(nesting);
    make_room(nesting->kept, nesting->kept_count, nesting->kept_capacity);
    nesting->kept[nesting->kept_count++] = (struct kept_call){track, counted};
}

void
call_nesting_settings(struct call_nesting *nesting, const struct fxt_event *event)
{
    if (fxt_event_text(event, STRING_KEEP).id == STRING_NEWEST) nesting->sorted = true;
}

void
call_nesting_event(struct call_nesting *nesting, uint32_t track, struct pool *pool, const struct fxt_event *event)
{
    struct call call = {.begin_ns = event->ts_ns, .end_ns = event->end_ns, .name = pool_id(pool, event->name)};
    if (event->type != FXT_EVENT_DURATION_COMPLETE) return;
    if (event->arg_count > 0) {
        call.left_out = event_uint(event, STRING_LEFT_OUT, 0);
        call.left_out_ns = event_uint(event, STRING_LEFT_OUT_NS, 0);
        call.began = fxt_event_arg(event, STRING_BEGAN) != NULL;
        call.ended = fxt_event_arg(event, STRING_ENDED) != NULL;
    }
    call_nesting_add(nesting, track, &call);
}

void
call_nesting_finish(struct call_nesting *nesting)
{
    nest_kept(nesting);
    nesting->sorted = false;
    for (uint32_t i = 0; i < nesting->tracks.count; i++) {
        struct call_track *track = row_table_at(&nesting->tracks, i);
        if (track->late) join_later(nesting, track);
        for (uint32_t at = 0; at < track->count; at++) {
            if (!suspended_p(&track->list[at]))
                nesting->visitor.outermost(nesting->visitor.context, track->track, &track->list[at]);
        }
    }
    free_tracks(nesting);
}
