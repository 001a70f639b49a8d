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

enum ended_fault
ended_slices_add(struct ended_slices *slices, const struct fxt_event *event)
{
    const uint32_t key[2] = {event->pid, event->tid};
    struct ended_track *track = row_table_get(&slices->tracks, key);
    enum ended_fault fault = ENDED_FINE;
    if (track == NULL) return fault;
    for (; track->count > 0 && track->ended[track->count - 1].begin_ns >= event->ts_ns; track->count--) {
        if (track->ended[track->count - 1].begin_ns == event->ts_ns) fault = ENDED_SAME_BEGIN;
    }
    if (track->count > 0 && track->ended[track->count - 1].end_ns > event->ts_ns) {
        fault = ENDED_OVERLAPS;
        track->count--;
    }
    if (track->count == ENDED_MAX) track->count = 0; /* one after the other: none encloses these */
    make_room(track->ended, track->count, track->capacity);
    track->ended[track->count].begin_ns = event->ts_ns;
    track->ended[track->count++].end_ns = event->end_ns;
    return fault;
}
