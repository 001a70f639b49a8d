/* timeline.c - see timeline.h */
#include <stdlib.h>

#include "topics/threads/timeline.h"
#include "base/xalloc.h"

enum { FIRST_SHIFT = 10, LAST_SHIFT = 62 };

void
timeline_free(struct timeline *timeline)
{
    for (uint32_t i = 0; i < timeline->count; i++) free(timeline->segments[i].names);
    free(timeline->segments);
    *timeline = (struct timeline){0};
}

static enum timeline_state
largest_state(const uint64_t ns[TIMELINE_STATES])
{
    enum timeline_state largest = TIMELINE_WAITING;
    for (unsigned state = 1; state < TIMELINE_STATES; state++) {
        if (ns[state] > ns[largest]) largest = (enum timeline_state)state;
    }
    return largest;
}

void
timeline_add(struct timeline *timeline, const struct timeline_segment *segment, const struct timeline_name *name)
{
    make_room(timeline->segments, timeline->count, timeline->capacity);
    struct timeline_segment *added = &timeline->segments[timeline->count++];
    *added = *segment;
    added->state = largest_state(added->ns);
    added->pieces = 1;
    if (name == NULL) return;
    added->names = xrealloc(NULL, 1, sizeof *added->names);
    added->names[0] = *name;
    added->name_count = 1;
}

static int
by_time(const void *left, const void *right)
{
    const struct timeline_segment *a = left, *b = right;
    if (a->from_ns != b->from_ns) return a->from_ns < b->from_ns ? -1 : 1;
    return (a->to_ns > b->to_ns) - (a->to_ns < b->to_ns);
}

void
timeline_sort(struct timeline *timeline)
{
    if (timeline->count > 1) qsort(timeline->segments, timeline->count, sizeof *timeline->segments, by_time);
}

/* --- folding ------------------------------------------------------------------------------------ */

static void
add_name(struct timeline_segment *segment, const struct timeline_name *name)
{
    uint32_t wanted = name->name, i = 0;
    while (i < segment->name_count && segment->names[i].name != wanted) i++;
    if (i == segment->name_count && i >= TIMELINE_NAMES_MAX - 1) {
        for (i = 0; i < segment->name_count && segment->names[i].name != TIMELINE_OTHER_NAMES;) i++;
        wanted = TIMELINE_OTHER_NAMES;
    }
    if (i == segment->name_count) {
        segment->names = xrealloc(segment->names, ++segment->name_count, sizeof *segment->names);
        segment->names[i] = (struct timeline_name){.name = wanted};
    }
    struct timeline_name *sum = &segment->names[i];
    sum->count += name->count;
    sum->firsts += name->firsts;
    sum->ns += name->ns;
    if (name->longest_ns > sum->longest_ns) sum->longest_ns = name->longest_ns;
}

static void
merge(struct timeline_segment *segment, struct timeline_segment *next)
{
    if (next->from_ns < segment->from_ns) segment->from_ns = next->from_ns;
    if (next->to_ns > segment->to_ns) segment->to_ns = next->to_ns;
    for (unsigned state = 0; state < TIMELINE_STATES; state++) segment->ns[state] += next->ns[state];
    segment->state = largest_state(segment->ns);
    segment->pieces += next->pieces;
    segment->waker = TIMELINE_NO_NAME;
    for (uint32_t i = 0; i < next->name_count; i++) add_name(segment, &next->names[i]);
    free(next->names);
}

/* Whether both are short, and begin in the same part of time. */
static bool
folded_together(const struct timeline_segment *segment, const struct timeline_segment *next, unsigned shift)
{
    int64_t width_ns = INT64_C(1) << shift;
    return segment->to_ns - segment->from_ns < width_ns && next->to_ns - next->from_ns < width_ns &&
           segment->from_ns >> shift == next->from_ns >> shift;
}

void
timeline_fold(struct timeline *timeline, uint32_t limit)
{
    if (timeline->count <= limit) return;
    if (timeline->shift == 0) timeline->shift = FIRST_SHIFT;
    for (;; timeline->shift++) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < timeline->count; i++) {
            struct timeline_segment *last = kept > 0 ? &timeline->segments[kept - 1] : NULL;
            if (last != NULL && folded_together(last, &timeline->segments[i], timeline->shift))
                merge(last, &timeline->segments[i]);
            else timeline->segments[kept++] = timeline->segments[i];
        }
        timeline->count = kept;
        if (kept <= limit || timeline->shift == LAST_SHIFT) return;
    }
}
