#ifndef ENDED_SLICES_H
#define ENDED_SLICES_H
/* ended_slices.h - checks that slices of one record nest. They are written at their ends, so those inside
 * of another one come before it.
 */
#include "base/row_table.h"
#include "fxt/reader.h"

/* Slices of one track that have ended and may still be enclosed by another. */
struct ended_track {
    uint32_t pid, tid; /* the key */
    struct {
        int64_t begin_ns, end_ns;
    } *ended;
    uint32_t count, capacity;
};

struct ended_slices {
    struct row_table tracks; /* of struct ended_track */
};

enum ended_fault {
    ENDED_FINE,
    ENDED_OVERLAPS,   /* it begins inside another one, and ends after it */
    ENDED_SAME_BEGIN, /* one inside of it begins at the same time */
};

void ended_slices_init(struct ended_slices *slices);
/* Forgets all slices: for a new chunk, and at the end. */
void ended_slices_clear(struct ended_slices *slices);
enum ended_fault ended_slices_add(struct ended_slices *slices, const struct fxt_event *event);

#endif
