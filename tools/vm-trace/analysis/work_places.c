/* work_places.c - see work_places.h */
#include <string.h>

#include "analysis/label.h"
#include "analysis/version_history.h" /* label_without_line */
#include "analysis/work_places.h"

/* Sums of one place: by line, or by innermost frame. */
struct part_sum {
    uint32_t method; /* the key */
    uint32_t label;
    uint64_t ns;
};
enum { PART_KEYS = 2 };

static bool
same_line_p(const struct pool *pool, uint32_t left, uint32_t right)
{
    struct label_parts a = label_parts(pool_string(pool, left)), b = label_parts(pool_string(pool, right));
    return a.line > 0 && a.line == b.line && a.path.len == b.path.len && memcmp(a.path.ptr, b.path.ptr, a.path.len) == 0;
}

/* Whether the label is of a file outside of Ruby's own ones. */
static bool
outside_of_ruby_p(struct frame_owners *owners, uint32_t label)
{
    return !fxt_string_is(pool_string(owners->pool, frame_owner(owners, label)), FRAME_OWNER_RUBY);
}

/* The node of the place of a stack; its innermost one if there is no other. */
static uint32_t
place_node(const struct profile *profile, struct frame_owners *owners, uint32_t innermost)
{
    uint32_t other = 0;
    for (uint32_t node = innermost; node > 0; node = profile->nodes[node].parent) {
        uint32_t label = profile->nodes[node].text;
        if (frame_of_app(owners, label) && label_parts(pool_string(owners->pool, label)).path.len > 0) return node;
        if (other == 0 && outside_of_ruby_p(owners, label)) other = node;
    }
    return other > 0 ? other : innermost;
}

static void
add_part(struct row_table *parts, uint32_t method, uint32_t label, uint64_t ns, uint32_t *most_out, uint64_t *most_ns)
{
    struct part_sum *part = row_table_get(parts, (const uint32_t[PART_KEYS]){method, label});
    if (part == NULL) return;
    part->ns += ns;
    if (part->ns <= *most_ns) return;
    *most_ns = part->ns;
    *most_out = label;
}

struct work_places
work_places_of(const struct time_samples *samples, struct frame_owners *owners)
{
    const struct profile *profile = samples->profile;
    struct work_places places = {.pool = owners->pool};
    struct row_table lines, ends;
    row_table_init(&places.rows, sizeof(struct work_place), 1, WORK_PLACES_MAX);
    row_table_init(&lines, sizeof(struct part_sum), PART_KEYS, WORK_PLACES_MAX);
    row_table_init(&ends, sizeof(struct part_sum), PART_KEYS, WORK_PLACES_MAX);
    for (uint32_t i = 1; profile != NULL && i < profile->node_count; i++) {
        const struct profile_node *end = &profile->nodes[i];
        enum time_sample_state state = time_samples_state(samples, end);
        if (state == TIME_SAMPLE_STATES || end->count == 0 || end->parent == 0) continue;
        uint32_t node = place_node(profile, owners, end->parent), from = node;
        while (profile->nodes[node].parent > 0 &&
               same_line_p(owners->pool, profile->nodes[node].text, profile->nodes[profile->nodes[node].parent].text))
            node = profile->nodes[node].parent;
        uint32_t method = label_without_line(owners->pool, profile->nodes[node].text);
        for (uint32_t at = from;; at = profile->nodes[at].parent) {
            map_set(&places.place_of, profile->nodes[at].text, method);
            uint32_t plain = label_without_line(owners->pool, profile->nodes[at].text);
            if (map_get(&places.place_of, plain) == MAP_NONE || plain == method) map_set(&places.place_of, plain, method);
            if (at == node) break;
        }
        struct work_place *place = row_table_get(&places.rows, &method);
        if (place == NULL) continue;
        place->ns[state] += end->count;
        if (time_sample_waits(state)) continue;
        uint32_t innermost = label_without_line(owners->pool, profile->nodes[end->parent].text);
        add_part(&lines, method, profile->nodes[node].text, end->count, &place->line, &place->line_ns);
        add_part(&ends, method, innermost, end->count, &place->innermost, &place->innermost_ns);
    }
    row_table_free(&lines);
    row_table_free(&ends);
    return places;
}

void
work_places_free(struct work_places *places)
{
    row_table_free(&places->rows);
    map_free(&places->place_of);
}

uint32_t
work_place_of(const struct work_places *places, uint32_t label)
{
    uint32_t method = map_get(&places->place_of, label);
    if (method != MAP_NONE) return method;
    uint32_t plain = label_without_line(places->pool, label);
    method = map_get(&places->place_of, plain);
    return method != MAP_NONE ? method : plain;
}

const struct work_place *
work_places_find(struct work_places *places, uint32_t method)
{
    return row_table_find(&places->rows, &method);
}

uint64_t
work_place_ran_ns(const struct work_place *place)
{
    uint64_t ns = 0;
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++) {
        if (!time_sample_waits((enum time_sample_state)state)) ns += place->ns[state];
    }
    return ns;
}
