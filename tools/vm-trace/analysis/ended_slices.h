#ifndef ENDED_SLICES_H
#define ENDED_SLICES_H
/* ended_slices.h - checks that slices of one record nest. They are written at their ends, so those inside
 * of another one come before it.
 */
#include "base/row_table.h"
#include "fxt/reader.h"

struct ended_slice {
    int64_t begin_ns, end_ns;
    bool pair; /* a duration of two records */
};

/* Slices of one track that have ended and may still be enclosed by another. */
struct ended_track {
    uint32_t process, tid; /* the key */
    struct ended_slice *ended;
    uint32_t count, capacity;
    bool pair_begun;
    int64_t pair_begin_ns;
};

struct ended_slices {
    struct row_table tracks; /* of struct ended_track */
};

enum ended_fault {
    ENDED_FINE,
    ENDED_OVERLAPS,      /* it begins inside another one, and ends after it */
    ENDED_OVERLAPS_PAIR, /* the same, inside a duration of two records */
    ENDED_SAME_BEGIN,    /* one inside of it begins at the same time */
};

void ended_slices_init(struct ended_slices *slices);
/* Forgets all slices: for a new chunk, and at the end. */
void ended_slices_clear(struct ended_slices *slices);
enum ended_fault ended_slices_add(struct ended_slices *slices, const struct fxt_event *event);
/* The begin and the end of a duration of two records: slices that end later must not begin inside of it. One at a
 * time on each track. */
void ended_slices_begin_pair(struct ended_slices *slices, const struct fxt_event *event);
void ended_slices_end_pair(struct ended_slices *slices, const struct fxt_event *event);

#endif
