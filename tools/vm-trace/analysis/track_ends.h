#ifndef TRACK_ENDS_H
#define TRACK_ENDS_H
/* track_ends.h - checks that slices of one record do not overlap on their track. They are written at their
 * ends, in order of time.
 */
#include "base/row_table.h"
#include "fxt/reader.h"

struct track_end {
    uint32_t process, tid; /* the key */
    int64_t end_ns;    /* of the last slice */
};

struct track_ends {
    struct row_table tracks; /* of struct track_end */
};

void track_ends_init(struct track_ends *ends);
/* Forgets all slices: for a new chunk, and at the end. */
void track_ends_clear(struct track_ends *ends);
/* Returns whether the slice begins before the last one of its track ended. */
bool track_ends_overlap(struct track_ends *ends, const struct fxt_event *event);

#endif
