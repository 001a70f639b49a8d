/* lost_stacks.c - see lost_stacks.h */
#include "analysis/event_args.h"
#include "analysis/label.h"
#include "analysis/lost_stacks.h"
#include "fxt/known_strings.h"

enum { PLACES_MAX = 256 * 1024, PARTS_MAX = 4 * 1024 * 1024 };

/* Exits of one reason at one line. The method is not part of the key: events name the class of the
 * receiver, sites may not know it. */
struct place {
    uint32_t process; /* the key */
    uint32_t reason;
    uint32_t path_and_line;
    uint32_t location; /* label of a site; STRING_NONE: there is none */
    uint64_t site_ns;  /* exact, of all exits */
    uint64_t recorded_ns;     /* of the recorded ones, weighted */
    uint64_t recorded_events; /* also those whose time is unknown */
    uint64_t shared_ns; /* while it is shared: what has been given away, and what for */
    double shared_of;
};
enum { PLACE_KEYS = 3 };

/* What exits of one place lost at one node. */
struct part {
    uint32_t node; /* the key */
    uint32_t place;
    uint64_t ns; /* weighted */
    uint64_t events;
};
enum { PART_KEYS = 2 };

void
lost_stacks_init(struct lost_stacks *stacks)
{
    *stacks = (struct lost_stacks){0};
    row_table_init(&stacks->places, sizeof(struct place), PLACE_KEYS, PLACES_MAX);
    row_table_init(&stacks->parts, sizeof(struct part), PART_KEYS, PARTS_MAX);
}

void
lost_stacks_free(struct lost_stacks *stacks)
{
    row_table_free(&stacks->places);
    row_table_free(&stacks->parts);
    map_free(&stacks->summarized);
}

static struct place *
place_of(struct lost_stacks *stacks, struct pool *pool, const struct fxt_event *event, uint32_t location)
{
    struct fxt_string label = pool_string(pool, location);
    size_t method = label_method_bytes(label);
    uint32_t path_and_line = pool_intern(pool, label.ptr + method, label.len - method);
    const uint32_t key[PLACE_KEYS] = {event->process, event_reason(pool, event), path_and_line};
    return row_table_get(&stacks->places, key);
}

void
lost_stacks_exit(struct lost_stacks *stacks, struct pool *pool, uint32_t node, const struct fxt_event *event)
{
    uint64_t ns, lost_ns = event_uint(event, STRING_LOST_NS, 0);
    if (__builtin_mul_overflow(lost_ns, event_uint(event, STRING_WEIGHT, 1), &ns)) ns = lost_ns;
    struct place *place = place_of(stacks, pool, event, event_text(pool, event, STRING_FRAME_0));
    if (place == NULL) return; /* so many places are in no flame graph */
    const uint32_t key[PART_KEYS] = {node, (uint32_t)(place - (struct place *)stacks->places.rows)};
    struct part *part = row_table_get(&stacks->parts, key);
    if (part == NULL) return;
    place->recorded_ns += ns;
    place->recorded_events++;
    part->ns += ns;
    part->events++;
}

void
lost_stacks_trace(struct lost_stacks *stacks, struct pool *pool, const struct fxt_event *event)
{
    if (event->name.id == STRING_SUMMARY) map_set(&stacks->summarized, event->process, 1);
    if (event->name.id != STRING_SITE) return;
    uint64_t lost_ns = event_uint(event, STRING_LOST_NS, 0);
    uint32_t location = event_text(pool, event, STRING_LOCATION);
    struct place *place = lost_ns > 0 ? place_of(stacks, pool, event, location) : NULL;
    if (place == NULL) return;
    place->site_ns += lost_ns;
    place->location = location;
}

/* What the exits of a part lost: their share of what all exits of the place did; by number, if none
 * of them knows its time. Shares are rounded so that they add up. */
static uint64_t
share_of(struct place *place, const struct part *part)
{
    bool timed = place->recorded_ns > 0;
    place->shared_of += (double)(timed ? part->ns : part->events);
    double whole = (double)(timed ? place->recorded_ns : place->recorded_events);
    uint64_t until_ns = (uint64_t)((double)place->site_ns * (place->shared_of / whole) + 0.5);
    if (until_ns > place->site_ns) until_ns = place->site_ns;
    uint64_t ns = until_ns - place->shared_ns;
    place->shared_ns = until_ns;
    return ns;
}

void
lost_stacks_finish(struct lost_stacks *stacks, const struct lost_visitor *visitor)
{
    for (uint32_t i = 0; i < stacks->parts.count; i++) {
        const struct part *part = row_table_at(&stacks->parts, i);
        struct place *place = row_table_at(&stacks->places, part->place);
        bool exact = place->site_ns > 0 && map_get(&stacks->summarized, place->process) != MAP_NONE;
        uint64_t ns = exact ? share_of(place, part) : part->ns;
        if (ns > 0) visitor->stack(visitor->context, part->node, part->events, ns);
    }
    for (uint32_t i = 0; i < stacks->places.count; i++) {
        const struct place *place = row_table_at(&stacks->places, i);
        if (place->recorded_events == 0 && place->site_ns > 0)
            visitor->place(visitor->context, place->location, place->reason, place->site_ns);
    }
}
