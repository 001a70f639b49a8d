#ifndef TIMELINE_H
#define TIMELINE_H
/* timeline.h - the states of one thread over time, in a limited number of segments.
 *
 * Short neighbors are folded into one segment when there are too many. A folded segment keeps the
 * sums of what it holds, so sums over whole segments are exact however many were folded.
 */
#include <stdbool.h>
#include <stdint.h>

/* In the order of the reports. */
enum timeline_state { TIMELINE_WAITING, TIMELINE_BLOCKED, TIMELINE_GC, TIMELINE_RUNNING, TIMELINE_STATES };

/* `TIMELINE_NAMES_MAX` different names in one segment, then TIMELINE_OTHER_NAMES. */
enum { TIMELINE_NAMES_MAX = 16, TIMELINE_NO_NAME = UINT32_MAX, TIMELINE_OTHER_NAMES = UINT32_MAX - 1 };

/* What a segment has by name: methods that blocked, or reasons of collections. */
struct timeline_name {
    uint32_t name; /* the caller's number */
    uint32_t count;
    uint32_t firsts; /* of them, the first ones of a collection */
    uint64_t ns;
    uint64_t longest_ns;
};

struct timeline_segment {
    int64_t from_ns, to_ns;
    uint64_t ns[TIMELINE_STATES];
    enum timeline_state state; /* the one with most time */
    uint32_t pieces;           /* 1: a single one; more: they were folded */
    uint32_t waker;            /* of a single one: the caller's number, or TIMELINE_NO_NAME */
    uint32_t name_count;
    struct timeline_name *names;
};

/* A zeroed timeline is empty. */
struct timeline {
    struct timeline_segment *segments;
    uint32_t count;
    uint32_t capacity;
    unsigned shift; /* segments shorter than 2**shift ns were folded */
};

void timeline_free(struct timeline *timeline);
/* Adds a segment of one piece, which sets only its times, `ns` and `waker`. `name` may be NULL. */
void timeline_add(struct timeline *timeline, const struct timeline_segment *segment, const struct timeline_name *name);
/* Sorts the segments by time, if they are not. */
void timeline_sort(struct timeline *timeline);
/* Folds segments until at most `limit` (16 or more) are left. */
void timeline_fold(struct timeline *timeline, uint32_t limit);

#endif
