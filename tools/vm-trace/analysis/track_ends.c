/* track_ends.c - see track_ends.h */
#include "analysis/track_ends.h"

enum { TRACKS_MAX = 256 * 1024 };

void
track_ends_init(struct track_ends *ends)
{
    row_table_init(&ends->tracks, sizeof(struct track_end), 2, TRACKS_MAX);
}

void
track_ends_clear(struct track_ends *ends)
{
    row_table_free(&ends->tracks);
}

bool
track_ends_overlap(struct track_ends *ends, const struct fxt_event *event)
{
    const uint32_t key[2] = {event->process, event->tid};
    uint32_t known = ends->tracks.count;
    struct track_end *track = row_table_get(&ends->tracks, key);
    if (track == NULL) return false;
    bool overlaps = ends->tracks.count == known && event->ts_ns < track->end_ns;
    if (ends->tracks.count > known || event->end_ns > track->end_ns) track->end_ns = event->end_ns;
    return overlaps;
}
