/* ended_slices.c - see ended_slices.h */
#include <stdlib.h>

#include "analysis/ended_slices.h"
#include "base/xalloc.h"

enum { TRACKS_MAX = 256 * 1024, ENDED_MAX = 64 * 1024 };

void
ended_slices_init(struct ended_slices *slices)
{
    row_table_init(&slices->tracks, sizeof(struct ended_track), 2, TRACKS_MAX);
}

void
ended_slices_clear(struct ended_slices *slices)
{
    for (uint32_t i = 0; i < slices->tracks.count; i++) {
        struct ended_track *track = row_table_at(&slices->tracks, i);
        free(track->ended);
    }
    row_table_free(&slices->tracks);
}

static struct ended_track *
track_of(struct ended_slices *slices, const struct fxt_event *event)
{
    const uint32_t key[2] = {event->process, event->tid};
    return row_table_get(&slices->tracks, key);
}

static enum ended_fault
add(struct ended_track *track, const struct ended_slice *slice)
{
    enum ended_fault fault = ENDED_FINE;
    for (; track->count > 0 && track->ended[track->count - 1].begin_ns >= slice->begin_ns; track->count--) {
        const struct ended_slice *inside = &track->ended[track->count - 1];
        if (inside->begin_ns == slice->begin_ns && !inside->pair) fault = ENDED_SAME_BEGIN;
    }
    if (track->count > 0 && track->ended[track->count - 1].end_ns > slice->begin_ns)
        fault = track->ended[--track->count].pair ? ENDED_OVERLAPS_PAIR : ENDED_OVERLAPS;
    if (track->count == ENDED_MAX) track->count = 0; /* one after the other: none encloses these */
    make_room(track->ended, track->count, track->capacity);
    track->ended[track->count++] = *slice;
    return fault;
}

enum ended_fault
ended_slices_add(struct ended_slices *slices, const struct fxt_event *event)
{
    struct ended_track *track = track_of(slices, event);
    const struct ended_slice slice = {event->ts_ns, event->end_ns, false};
    return track != NULL ? add(track, &slice) : ENDED_FINE;
}

void
ended_slices_begin_pair(struct ended_slices *slices, const struct fxt_event *event)
{
    struct ended_track *track = track_of(slices, event);
    if (track == NULL) return;
    track->pair_begun = true;
    track->pair_begin_ns = event->ts_ns;
}

void
ended_slices_end_pair(struct ended_slices *slices, const struct fxt_event *event)
{
    struct ended_track *track = track_of(slices, event);
    if (track == NULL || !track->pair_begun) return;
    const struct ended_slice slice = {track->pair_begin_ns, event->ts_ns, true};
    track->pair_begun = false;
    add(track, &slice);
}
