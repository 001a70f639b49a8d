/* profile.c - see profile.h */
#include <stdlib.h>

#include "analysis/event_args.h"
#include "analysis/profile.h"
#include "fxt/known_strings.h"

/* Deeper than any stack of Ruby; if a file claims more, the rest is shown as left out. */
enum { DEPTH_MAX = 256 * 1024 };
#define REASON_BIT 0x80000000u /* tells a reason from a label with the same text; a pool never has so many strings */

void
profile_init(struct profile *profile, struct reader *reader, enum profile_kind kind, bool with_reasons)
{
    *profile = (struct profile){.reader = reader, .kind = kind, .with_reasons = with_reasons, .first_ns = INT64_MAX};
    make_room(profile->nodes, profile->node_count, profile->node_capacity);
    profile->nodes[profile->node_count++] = (struct profile_node){0};
}

void
profile_free(struct profile *profile)
{
    free(profile->nodes);
    free(profile->rest.list);
    map_free(&profile->node_of);
    map_free(&profile->node_of_rest);
}

/* Returns the node of a frame below its parent. If the budget is used up, stops reading and
 * returns the parent. */
static uint32_t
child_node(struct profile *profile, uint32_t parent, uint32_t text, bool reason)
{
    uint64_t key = (uint64_t)parent << 32 | text | (reason ? REASON_BIT : 0);
    uint32_t node = map_get(&profile->node_of, key);
    if (node != MAP_NONE) return node;
    /* 48 bytes cover the entry in the map, whose arrays grow by doubling. */
    if (!budget_take(reader_budget(profile->reader), 2 * sizeof *profile->nodes + 48)) {
        reader_out_of_budget(profile->reader);
        return parent;
    }
    make_room(profile->nodes, profile->node_count, profile->node_capacity);
    node = profile->node_count++;
    profile->nodes[node] = (struct profile_node){.parent = parent, .text = text, .reason = reason};
    map_set(&profile->node_of, key, node);
    return node;
}

static uint32_t
node_of_rest(struct profile *profile, struct fxt_string text)
{
    struct pool *pool = reader_pool(profile->reader);
    uint32_t id = pool_id(pool, text);
    uint32_t node = id == STRING_NONE ? MAP_NONE : map_get(&profile->node_of_rest, id);
    if (node != MAP_NONE) return node;

    struct frames *rest = &profile->rest;
    frames_of_rest(rest, pool, text);
    uint64_t depth = rest->left_out;
    uint32_t first = 0; /* innermost frames come first, and are kept */
    for (; first < rest->count && depth <= DEPTH_MAX; first++) depth += rest->list[first].run;
    node = 0;
    if (rest->left_out > 0 || depth > DEPTH_MAX) {
        node = child_node(profile, node, pool_intern(pool, PROFILE_LEFT_OUT, sizeof PROFILE_LEFT_OUT - 1), false);
    }
    if (depth > DEPTH_MAX && first > 0) first--;
    while (first-- > 0) {
        for (uint32_t run = rest->list[first].run; run-- > 0;)
            node = child_node(profile, node, rest->list[first].label, false);
    }
    if (id != STRING_NONE) map_set(&profile->node_of_rest, id, node);
    return node;
}

void
profile_event(void *context, const struct fxt_event *event)
{
    struct profile *profile = context;
    if (event->ts_ns < profile->first_ns) profile->first_ns = event->ts_ns;
    if (event->ts_ns > profile->last_ns) profile->last_ns = event->ts_ns;
    uint32_t category = event->category.id;
    bool wanted = profile->kind == PROFILE_FALLBACKS
                      ? category == STRING_FALLBACK
                      : category == STRING_SIDE_EXIT || category == STRING_RECOMPILE_EXIT;
    if (!wanted || event->type != FXT_EVENT_INSTANT) return;

    struct pool *pool = reader_pool(profile->reader);
    struct fxt_string frames[STRING_FRAME_REST - STRING_FRAME_0 + 1];
    unsigned present = 0;
    uint64_t weight = 1;
    for (unsigned i = 0; i < event->arg_count; i++) {
        const struct fxt_arg *arg = &event->args[i];
        if (arg->name.id == STRING_WEIGHT) fxt_arg_uint(arg, &weight);
        if (arg->name.id < STRING_FRAME_0 || arg->name.id > STRING_FRAME_REST || arg->type != FXT_ARG_STRING) continue;
        frames[arg->name.id - STRING_FRAME_0] = arg->string;
        present |= 1u << (arg->name.id - STRING_FRAME_0);
    }
    uint32_t node = 0;
    for (unsigned i = STRING_FRAME_REST - STRING_FRAME_0 + 1; i-- > 0;) {
        if (!(present >> i & 1)) continue;
        node = i == STRING_FRAME_REST - STRING_FRAME_0 ? node_of_rest(profile, frames[i])
                                                   : child_node(profile, node, pool_id(pool, frames[i]), false);
    }
    if (profile->with_reasons) node = child_node(profile, node, event_reason(pool, event), true);
    profile->nodes[node].events++;
    profile->nodes[node].count += weight;
    profile->events++;
    profile->count += weight;
}
