/* call_slices.c - see call_slices.h */
#include <stdlib.h>

#include "topics/calls/call_slices.h"
#include "analysis/event_args.h"
#include "base/xalloc.h"

/* The page has all calls, so it needs no list of the slowest. */
static bool
none_wanted(void *context, uint32_t name)
{
    (void)context;
    (void)name;
    return false;
}

void
call_slices_init(struct call_slices *calls, struct budget *budget)
{
    *calls = (struct call_slices){.budget = budget};
    row_table_init(&calls->tracks, sizeof(struct slice_track), SLICE_TRACK_KEYS, SLICE_TRACKS_MAX);
    calls_init(&calls->sums, NULL, none_wanted);
}

void
call_slices_free(struct call_slices *calls)
{
    row_table_free(&calls->tracks);
    calls_free(&calls->sums);
    free(calls->extras);
    free(calls->slices);
}

/* --- while reading ------------------------------------------------------------------------------- */

static uint32_t
extra_of(struct call_slices *calls, const struct fxt_event *event)
{
    if (event->arg_count == 0) return NO_CALL_EXTRA;
    struct call_extra extra = {
        .left_out = event_uint(event, STRING_LEFT_OUT, 0),
        .left_out_ns = event_uint(event, STRING_LEFT_OUT_NS, 0),
        .began_before = fxt_event_arg(event, STRING_BEGAN) != NULL,
        .ended_after = fxt_event_arg(event, STRING_ENDED) != NULL,
    };
    if (calls->extra_count == NO_CALL_EXTRA) { /* that number stands for none */
        make_room_within(calls->budget, calls->extras, calls->extra_count, calls->extra_capacity);
        calls->extras[calls->extra_count++] = (struct call_extra){0};
    }
    make_room_within(calls->budget, calls->extras, calls->extra_count, calls->extra_capacity);
    calls->extras[calls->extra_count] = extra;
    return calls->extra_count++;
}

bool
call_slices_event(struct call_slices *calls, struct pool *pool, uint32_t file, uint32_t process,
                  const struct fxt_event *event)
{
    if (event->category.id != STRING_CALL || event->type != FXT_EVENT_DURATION_COMPLETE) return false;
    const uint32_t track_key[SLICE_TRACK_KEYS] = {file, process, event->tid};
    uint32_t track = row_table_intern(&calls->tracks, track_key, calls->budget, NULL);
    if (track == ROW_NONE || event->end_ns < event->ts_ns) {
        calls->misfits++;
        return true;
    }
    make_room_within(calls->budget, calls->slices, calls->count, calls->capacity);
    struct call_slice slice = {
        .from_ns = event->ts_ns, .to_ns = event->end_ns, .track = track, .name = pool_id(pool, event->name),
        .extra = extra_of(calls, event), .order = calls->count};
    calls->slices[calls->count++] = slice;
    return true;
}

/* --- nesting ----------------------------------------------------------------------------------- */

static int
by_track_and_begin(const void *left, const void *right)
{
    const struct call_slice *a = left, *b = right;
    if (a->track != b->track) return a->track < b->track ? -1 : 1;
    if (a->from_ns != b->from_ns) return a->from_ns < b->from_ns ? -1 : 1;
    if (a->to_ns != b->to_ns) return a->to_ns > b->to_ns ? -1 : 1;
    return (a->order < b->order) - (a->order > b->order);
}

/* Calls that contain the next one. */
struct open_slices {
    struct call_slice *list;
    uint32_t count, capacity;
};

/* The sums take calls as they are written: when they return. */
static void
close_slice(struct call_slices *calls, struct open_slices *open)
{
    const struct call_slice *slice = &open->list[--open->count];
    const struct call_extra *extra = slice->extra == NO_CALL_EXTRA ? NULL : &calls->extras[slice->extra];
    const struct call call = {
        .begin_ns = slice->from_ns, .end_ns = slice->to_ns, .name = slice->name,
        .left_out = extra ? extra->left_out : 0, .left_out_ns = extra ? extra->left_out_ns : 0};
    call_nesting_add(&calls->sums.nesting, slice->track, &call);
}

static void
nest(struct call_slices *calls)
{
    struct open_slices open = {0};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < calls->count; i++) {
        struct call_slice slice = calls->slices[i];
        while (open.count > 0) {
            const struct call_slice *last = &open.list[open.count - 1];
            if (last->track == slice.track && last->to_ns > slice.from_ns) break;
            close_slice(calls, &open);
        }
        if (open.count > 0 && open.list[open.count - 1].to_ns < slice.to_ns) {
            calls->misfits++;
            continue;
        }
        make_room(open.list, open.count, open.capacity);
        open.list[open.count++] = slice;
        calls->slices[kept++] = slice;
    }
    while (open.count > 0) close_slice(calls, &open);
    calls_file_end(&calls->sums);
    calls->count = kept;
    free(open.list);
}

static void
count_by_track(struct call_slices *calls)
{
    for (uint32_t i = 0; i < calls->tracks.count; i++) {
        struct slice_track *track = row_table_at(&calls->tracks, i);
        track->calls = 0;
    }
    for (uint32_t i = calls->count; i-- > 0;) {
        struct slice_track *track = row_table_at(&calls->tracks, calls->slices[i].track);
        track->first = i;
        track->calls++;
    }
}

void
call_slices_finish(struct call_slices *calls)
{
    if (calls->count > 0) qsort(calls->slices, calls->count, sizeof *calls->slices, by_track_and_begin);
    nest(calls);
    count_by_track(calls);
}

void
call_slices_pick(struct call_slices *calls, void *context, bool (*picked)(void *context, uint32_t name))
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < calls->count; i++) {
        if (picked(context, calls->slices[i].name)) calls->slices[kept++] = calls->slices[i];
    }
    calls->count = kept;
    count_by_track(calls);
}

/* --- the longest --------------------------------------------------------------------------------- */

static uint64_t
length_of(const struct call_slice *slice)
{
    return (uint64_t)slice->to_ns - (uint64_t)slice->from_ns;
}

static int
longest_first(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a < *b) - (*a > *b);
}

void
call_slices_keep_longest(struct call_slices *calls, uint32_t limit)
{
    if (calls->count <= limit) return;
    uint64_t *lengths = xcalloc(calls->count, sizeof *lengths);
    for (uint32_t i = 0; i < calls->count; i++) lengths[i] = length_of(&calls->slices[i]);
    qsort(lengths, calls->count, sizeof *lengths, longest_first);
    uint64_t least = limit > 0 ? lengths[limit - 1] : UINT64_MAX;
    uint32_t of_least = 0, kept = 0; /* slices of this length that fit */
    while (of_least < limit && lengths[limit - 1 - of_least] == least) of_least++;
    free(lengths);
    for (uint32_t i = 0; i < calls->count; i++) {
        uint64_t length = length_of(&calls->slices[i]);
        if (length < least || (length == least && of_least == 0)) continue;
        if (length == least) of_least--;
        calls->slices[kept++] = calls->slices[i];
    }
    calls->count = kept;
    count_by_track(calls);
}
