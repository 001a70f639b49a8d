/* work_places.c - see work_places.h */
#include <string.h>

#include "analysis/label.h"
#include "report/work_places.h"

/* A sum by two texts: of a place by line or innermost frame, of a label by place. */
struct part_sum {
    uint32_t first, second; /* the key; of the sums by label alone, `second` is no part of it */
    uint64_t ns;
};
enum { PART_KEYS = 2 };

static bool
same_line_p(const struct pool *pool, uint32_t left, uint32_t right)
{
    struct label_parts a = label_parts(pool_string(pool, left)), b = label_parts(pool_string(pool, right));
    return a.line > 0 && a.line == b.line && fxt_string_equal(a.path, b.path);
}

/* Whether the frame is that of a method in C: it has the line of its caller, as has only a block on the same line. */
static bool
in_c_p(const struct profile *profile, const struct pool *pool, uint32_t node)
{
    uint32_t parent = profile->nodes[node].parent, label = profile->nodes[node].text;
    return parent > 0 && same_line_p(pool, label, profile->nodes[parent].text) &&
           !fxt_string_starts(pool_string(pool, label), "block ");
}

/* Whether the label is of a file outside of Ruby's own ones. */
static bool
outside_of_ruby_p(struct frame_owners *owners, uint32_t label)
{
    return !fxt_string_is(pool_string(owners->pool, frame_owner(owners, label)), FRAME_OWNER_RUBY);
}

static bool
loads_p(struct fxt_string label)
{
    return fxt_string_starts(label, "Kernel#require") || fxt_string_starts(label, "Kernel#load ") ||
           fxt_string_starts(label, "Bundler::Runtime#require");
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

/* "Foo#bar (a.rb)" of "block (2 levels) in Foo#bar (a.rb:5)". */
static uint32_t
method_of(struct pool *pool, uint32_t label)
{
    struct fxt_string text = pool_string(pool, label_without_line(pool, label));
    const char *in = fxt_string_starts(text, "block ") ? strstr(text.ptr, " in ") : NULL;
    if (in == NULL) return pool_id(pool, text);
    return pool_intern(pool, in + 4, (size_t)(text.ptr + text.len - in - 4));
}

/* The method for which another one ran at a node: the next one outside of Ruby's own files. STRING_NONE: none. */
static uint32_t
caller_of(const struct profile *profile, struct frame_owners *owners, uint32_t node, uint32_t method)
{
    while ((node = profile->nodes[node].parent) > 0) {
        uint32_t label = profile->nodes[node].text;
        if (in_c_p(profile, owners->pool, node) || !outside_of_ruby_p(owners, label)) continue;
        uint32_t caller = method_of(owners->pool, label);
        if (caller != method) return caller;
    }
    return STRING_NONE;
}

/* What samples say of labels: whose place they are mostly in. */
struct placing {
    struct row_table parts; /* of struct part_sum, by label and place */
    struct row_table most;  /* of struct part_sum, by label */
};
enum { MOST_KEYS = 1 };

static void
place_label(struct placing *placing, struct work_places *places, uint32_t label, uint32_t method, uint64_t ns)
{
    struct part_sum *part = row_table_get(&placing->parts, (const uint32_t[PART_KEYS]){label, method});
    struct part_sum *most = part != NULL ? row_table_get(&placing->most, &label) : NULL;
    if (most == NULL) return;
    part->ns += ns;
    if (part->ns <= most->ns) return;
    most->ns = part->ns;
    map_set(&places->place_of, label, method);
}

struct work_places
work_places_of(const struct time_samples *samples, struct frame_owners *owners)
{
    const struct profile *profile = samples->profile;
    struct work_places places = {.pool = owners->pool};
    struct placing placing;
    struct row_table lines, ends, callers, *parts[] = {&lines, &ends, &callers, &placing.parts};
    enum { PARTS = sizeof parts / sizeof *parts };
    row_table_init(&places.rows, sizeof(struct work_place), 1, WORK_PLACES_MAX);
    row_table_init(&placing.most, sizeof(struct part_sum), MOST_KEYS, WORK_PLACES_MAX);
    for (unsigned i = 0; i < PARTS; i++) row_table_init(parts[i], sizeof(struct part_sum), PART_KEYS, WORK_PLACES_MAX);
    for (uint32_t i = 1; profile != NULL && i < profile->node_count; i++) {
        const struct profile_node *end = &profile->nodes[i];
        enum time_sample_state state = time_samples_state(samples, end);
        if (state == TIME_SAMPLE_STATES || end->count == 0 || end->parent == 0) continue;
        uint32_t node = place_node(profile, owners, end->parent);
        while (profile->nodes[node].parent > 0 &&
               same_line_p(owners->pool, profile->nodes[node].text, profile->nodes[profile->nodes[node].parent].text))
            node = profile->nodes[node].parent;
        uint32_t method = method_of(owners->pool, profile->nodes[node].text);
        bool loads = false;
        for (uint32_t at = end->parent;; at = profile->nodes[at].parent) {
            loads |= loads_p(pool_string(owners->pool, profile->nodes[at].text));
            place_label(&placing, &places, profile->nodes[at].text, method, end->count);
            place_label(&placing, &places, label_without_line(owners->pool, profile->nodes[at].text), method, end->count);
            if (at == node) break;
        }
        if (state == TIME_SAMPLE_INTERPRETED && !in_c_p(profile, owners->pool, end->parent))
            places.interpreted_ns += end->count;
        struct work_place *place = row_table_get(&places.rows, &method);
        if (place == NULL) continue;
        place->ns[state] += end->count;
        if (time_sample_waits(state) || state == TIME_SAMPLE_NO_CPU) continue;
        place->loading_ns += loads ? end->count : 0;
        uint32_t innermost = label_without_line(owners->pool, profile->nodes[end->parent].text);
        add_part(&lines, method, profile->nodes[node].text, end->count, &place->line, &place->line_ns);
        add_part(&ends, method, innermost, end->count, &place->innermost, &place->innermost_ns);
        uint32_t caller = caller_of(profile, owners, node, method);
        if (caller != STRING_NONE) add_part(&callers, method, caller, end->count, &place->caller, &place->caller_ns);
    }
    for (unsigned i = 0; i < PARTS; i++) row_table_free(parts[i]);
    row_table_free(&placing.most);
    return places;
}

void
work_places_free(struct work_places *places)
{
    row_table_free(&places->rows);
    map_free(&places->place_of);
}

uint32_t
work_method_of(const struct work_places *places, uint32_t label)
{
    return method_of(places->pool, label);
}

uint32_t
work_place_of(const struct work_places *places, uint32_t label)
{
    uint32_t method = map_get(&places->place_of, label);
    if (method != MAP_NONE) return method;
    method = map_get(&places->place_of, label_without_line(places->pool, label));
    return method != MAP_NONE ? method : method_of(places->pool, label);
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
        bool waits = time_sample_waits((enum time_sample_state)state) || state == TIME_SAMPLE_NO_CPU;
        if (!waits) ns += place->ns[state];
    }
    return ns;
}
