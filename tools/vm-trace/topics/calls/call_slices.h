#ifndef CALL_SLICES_H
#define CALL_SLICES_H
/* call_slices.h - the calls of the stream `calls`: all of them in memory, in the order in which they
 * began, and their sums.
 *
 *      call_slices_init -> call_slices_event for each event -> call_slices_finish -> the lists
 *      -> call_slices_free
 *
 * Memory grows with the number of calls. Where only sums are needed, use calls.h.
 */
#include <stdbool.h>

#include "topics/calls/calls.h"
#include "fxt/known_strings.h"
#include "fxt/reader.h"

enum {
    SLICE_TRACKS_MAX = 256 * 1024,
    SLICE_TRACK_KEYS = 3,
    NO_CALL_EXTRA = 0,
};

/* A thread or a fiber. */
struct slice_track {
    uint32_t file; /* the key */
    uint32_t process;
    uint32_t tid;
    uint32_t calls;
    uint32_t first; /* once finished: its first slice */
};

/* What few calls have. */
struct call_extra {
    uint64_t left_out, left_out_ns; /* calls inside that are not recorded, and their time */
    bool began_before;              /* the trace began */
    bool ended_after;               /* the trace ended */
};

struct call_slice {
    int64_t from_ns, to_ns;
    uint32_t track; /* a number of `tracks` */
    uint32_t name;  /* a number of the pool */
    uint32_t extra; /* a number of `extras`, or NO_CALL_EXTRA */
    uint32_t order; /* of writing: of two with the same times, the outer one is written last */
};

struct call_slices {
    struct budget *budget;
    struct row_table tracks; /* of struct slice_track */
    struct call_extra *extras;
    uint32_t extra_count, extra_capacity;
    struct call_slice *slices; /* once finished: by track, then by begin, outer ones first */
    uint32_t count, capacity;
    uint64_t misfits; /* dropped: they begin in another call and end after it, or there are too many tracks */
    struct calls sums; /* once finished: of all slices, by the numbers of `tracks` */
};

/* Growth is charged to the budget, which must outlive the slices. */
void call_slices_init(struct call_slices *calls, struct budget *budget);
void call_slices_free(struct call_slices *calls);
/* Takes a call; `process` is the caller's number. A thread has a track in each file: calls of two do not nest. Returns
 * false for other events. */
bool call_slices_event(struct call_slices *calls, struct pool *pool, uint32_t file, uint32_t process,
                       const struct fxt_event *event);
/* Sorts the calls, drops what does not nest, and sums up the others. */
void call_slices_finish(struct call_slices *calls);
/* After call_slices_finish: keeps the slices of some methods. The sums stay as they are. */
void call_slices_pick(struct call_slices *calls, void *context, bool (*picked)(void *context, uint32_t name));
/* After call_slices_finish: keeps the `limit` longest slices. The sums stay as they are. A call is at
 * least as long as those inside, so all that contain a kept one are kept, too. */
void call_slices_keep_longest(struct call_slices *calls, uint32_t limit);

#endif
