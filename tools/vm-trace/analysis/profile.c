/* profile.c - see profile.h */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/event_args.h"
#include "analysis/profile.h"
#include "fxt/known_strings.h"

/* Deeper than any stack of Ruby; if a file claims more, the rest is shown as left out. */
enum { DEPTH_MAX = 256 * 1024 };
#define REASON_BIT 0x80000000u /* tells a reason from a label with the same text; a pool never has so many strings */

/* A sampled object. Its end may be in the file before its allocation. */
struct object {
    uint32_t process; /* the key */
    uint32_t number_low, number_high;
    uint32_t node; /* 0: the event of its allocation is not there (yet) */
    uint32_t class_name; /* STRING_NONE: the same */
    uint64_t size, weight, malloc_bytes;
    bool alive, freed, of_holder;
};
enum { OBJECT_KEYS = 3, OBJECTS_MAX = 4 * 1024 * 1024 };

const struct profile_names profile_names[PROFILE_KINDS] = {
    [PROFILE_EXITS] = {"exits", "exits", "exits", "count"},
    [PROFILE_FALLBACKS] = {"fallbacks", "fallbacks", "fallbacks", "count"},
    [PROFILE_BLOCKED] = {"blocked", "blocked durations", "blocked", "nanoseconds"},
    [PROFILE_PREEMPTED] = {"preempted", "ends of time slices", "preempted", "count"},
    [PROFILE_ALLOCATIONS] = {"allocations", "allocations", "allocated", "bytes"},
    [PROFILE_ALIVE] = {"alive", "objects that are alive (--vm-trace=allocations records them)", "alive", "bytes"},
    [PROFILE_CALLS] = {"calls", "calls (--vm-trace=calls records them)", "own time", "nanoseconds"},
    [PROFILE_SAMPLES] = {"samples", "samples of time (--vm-trace=samples records them)", "time", "nanoseconds"},
    [PROFILE_LOST] = {"exits", "exits with the time that they lost (--vm-trace=states records it)", "lost",
                      "nanoseconds"},
};

void
profile_init(struct profile *profile, struct reader *reader, enum profile_kind kind, bool with_reasons)
{
    *profile = (struct profile){.reader = reader, .kind = kind, .with_reasons = with_reasons, .first_ns = INT64_MAX};
    make_room(profile->nodes, profile->node_count, profile->node_capacity);
    profile->nodes[profile->node_count++] = (struct profile_node){0};
    lost_stacks_init(&profile->lost);
    row_table_init(&profile->objects, sizeof(struct object), OBJECT_KEYS, OBJECTS_MAX);
}

void
profile_free(struct profile *profile)
{
    threads_free(&profile->threads);
    lost_stacks_free(&profile->lost);
    row_table_free(&profile->objects);
    free(profile->nodes);
    free(profile->rest.list);
    map_free(&profile->node_of);
    map_free(&profile->node_of_rest);
    map_free(&profile->ended);
}

uint32_t
profile_child(struct profile *profile, uint32_t parent, uint32_t text, bool reason)
{
    uint64_t key = (uint64_t)parent << 32 | text | (reason ? REASON_BIT : 0);
    if (!reason && profile->app_only != NULL && !frame_of_app(profile->app_only, text)) return parent;
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

uint32_t
profile_end_of(struct profile *profile, uint32_t node)
{
    bool none = node == 0 || profile->nodes[node].reason;
    return none && profile->app_only != NULL ? profile_child(profile, node, profile->app_only->outside, false) : node;
}

static uint32_t
node_of_rest(struct profile *profile, uint32_t root, struct fxt_string text)
{
    struct pool *pool = reader_pool(profile->reader);
    uint32_t id = pool_id(pool, text);
    uint64_t key = (uint64_t)root << 32 | id;
    uint32_t node = id == STRING_NONE ? MAP_NONE : map_get(&profile->node_of_rest, key);
    if (node != MAP_NONE) return node;

    struct frames *rest = &profile->rest;
    frames_of_rest(rest, pool, text);
    uint64_t depth = rest->left_out;
    uint32_t first = 0; /* innermost frames come first, and are kept */
    for (; first < rest->count && depth <= DEPTH_MAX; first++) depth += rest->list[first].run;
    node = root;
    if (rest->left_out > 0 || depth > DEPTH_MAX) {
        node = profile_child(profile, node, pool_intern(pool, PROFILE_LEFT_OUT, sizeof PROFILE_LEFT_OUT - 1), false);
    }
    if (depth > DEPTH_MAX && first > 0) first--;
    while (first-- > 0) {
        for (uint32_t run = rest->list[first].run; run-- > 0;)
            node = profile_child(profile, node, rest->list[first].label, false);
    }
    if (id != STRING_NONE) map_set(&profile->node_of_rest, key, node);
    return node;
}

uint32_t
profile_thread(struct profile *profile, uint32_t name, uint32_t tid)
{
    if (!profile->with_threads) return 0;
    if (name == STRING_NONE) {
        char text[24];
        int len = snprintf(text, sizeof text, "thread %" PRIu32, tid);
        name = pool_intern(reader_pool(profile->reader), text, (size_t)len);
    }
    return profile_child(profile, 0, name, true);
}

uint32_t
profile_stack(struct profile *profile, uint32_t root, const struct fxt_event *event, unsigned first)
{
    enum { REST = STRING_FRAME_REST - STRING_FRAME_0 };
    struct fxt_string frames[REST + 1];
    char buffer[REST_TEXT_BYTES];
    unsigned present = 0;
    for (unsigned i = 0; i < event->arg_count; i++) {
        const struct fxt_arg *arg = &event->args[i];
        if (arg->name.id < STRING_FRAME_0 || arg->name.id > STRING_FRAME_REST) continue;
        struct fxt_string *text = &frames[arg->name.id - STRING_FRAME_0];
        if (arg->type == FXT_ARG_STRING) *text = arg->string;
        else if (arg->name.id != STRING_FRAME_REST || !frames_rest_text(arg, buffer, text)) continue;
        present |= 1u << (arg->name.id - STRING_FRAME_0);
    }
    uint32_t node = root;
    for (unsigned i = REST + 1; i-- > first;) {
        if (!(present >> i & 1)) continue;
        node = i == REST ? node_of_rest(profile, node, frames[i])
                         : profile_child(profile, node, pool_id(reader_pool(profile->reader), frames[i]), false);
    }
    return node;
}

void
profile_add_many(struct profile *profile, uint32_t node, uint64_t events, uint64_t weight)
{
    profile->nodes[node].events += events;
    profile->nodes[node].count += weight;
    profile->events += events;
    profile->count += weight;
}

void
profile_add(struct profile *profile, uint32_t node, uint64_t weight)
{
    profile_add_many(profile, node, 1, weight);
}

/* Whether the event counts; what is not here is added by others. */
static bool
wanted(enum profile_kind kind, const struct fxt_event *event)
{
    uint32_t category = event->category.id;
    if (event->type != FXT_EVENT_INSTANT) return false;
    switch (kind) {
      case PROFILE_EXITS:
      case PROFILE_LOST: return category == STRING_SIDE_EXIT || category == STRING_RECOMPILE_EXIT;
      case PROFILE_FALLBACKS: return category == STRING_FALLBACK;
      case PROFILE_PREEMPTED: return category == STRING_PREEMPTED;
      case PROFILE_ALLOCATIONS:
        return category == STRING_ALLOCATION && event->name.id != STRING_FREED && event->name.id != STRING_ALIVE;
      case PROFILE_ALIVE: return category == STRING_ALLOCATION;
      case PROFILE_BLOCKED:
      case PROFILE_SAMPLES:
      case PROFILE_CALLS: break;
    }
    return false;
}

/* The thread of an event: the Ruby thread that it names, or else that of its track. */
static uint32_t
thread_of(struct profile *profile, const struct fxt_event *event)
{
    if (!profile->with_threads) return 0;
    uint32_t name = event_text(reader_pool(profile->reader), event, STRING_THREAD);
    if (name == STRING_NONE) {
        const struct thread *thread = threads_get(&profile->threads, event->process, event->tid);
        if (thread != NULL) name = thread->name;
    }
    return profile_thread(profile, name, event->tid);
}

void
profile_object(void *context, const struct fxt_object *object)
{
    struct profile *profile = context;
    if (profile->with_threads || profile->kind == PROFILE_CALLS) {
        threads_name(&profile->threads, reader_pool(profile->reader), object->process, object);
    }
}

/* The stack of an object, or 0: the event has none. */
static uint32_t
object_node(struct profile *profile, const struct fxt_event *event, bool alive)
{
    /* Who says that it is alive need not be the thread that allocated it. */
    uint32_t root = alive ? 0 : thread_of(profile, event);
    uint32_t node = profile_end_of(profile, profile_stack(profile, root, event, 0));
    if (node != root) return node;
    struct pool *pool = reader_pool(profile->reader);
    return profile_child(profile, root, pool_intern(pool, PROFILE_NO_STACK, sizeof PROFILE_NO_STACK - 1), false);
}

/* A class may have got its name since it was allocated. Only the end of a buffer says whose it was. */
static void
find_class(struct profile *profile, struct object *object, const struct fxt_event *event, bool alive)
{
    struct pool *pool = reader_pool(profile->reader);
    bool holder = alive && fxt_event_arg(event, STRING_HOLDER) != NULL;
    bool described = alive && object->class_name == STRING_NONE && fxt_event_arg(event, STRING_CLASS) != NULL;
    if (holder || described) {
        uint32_t name = event_text(pool, event, holder ? STRING_HOLDER : STRING_CLASS);
        object->class_name = pool_without_addresses(pool, name);
        object->of_holder = holder;
    } else if (!alive && !object->of_holder) object->class_name = event_reason(pool, event);
}

static void
add_object(struct profile *profile, const struct fxt_event *event)
{
    uint64_t number = event_uint(event, STRING_SAMPLE, UINT64_MAX), weight = event_uint(event, STRING_WEIGHT, 0);
    const uint32_t key[OBJECT_KEYS] = {event->process, (uint32_t)number, (uint32_t)(number >> 32)};
    bool alive = event->name.id == STRING_ALIVE;
    if (event_uint(event, STRING_UNTRACKED, 0) != 0) return;
    struct object *object = row_table_get(&profile->objects, key);
    if (object == NULL) return;
    if (event->name.id == STRING_FREED) {
        object->freed = true;
        return;
    }
    if (alive) object->malloc_bytes = event_uint(event, STRING_MALLOC_BYTES, 0);
    object->alive |= alive;
    if (alive || weight > 0) find_class(profile, object, event, alive);
    if (weight == 0 || (object->node != 0 && alive)) return;
    object->node = object_node(profile, event, alive);
    object->size = event_uint(event, STRING_SIZE, 0);
    object->weight = weight;
}

/* A trace that says at its end what is alive, or a part of one. */
static void
add_end(struct profile *profile, const struct fxt_event *event)
{
    uint32_t name = event->name.id;
    bool snapshot = name == STRING_SETTINGS && fxt_event_arg(event, STRING_SNAPSHOT) != NULL;
    if (snapshot || name == STRING_SUMMARY || name == STRING_CUT || name == STRING_LOSS)
        map_set(&profile->ended, event->process, 1);
}

/* Without an end, what no collection has freed is alive. */
static bool
alive_p(const struct profile *profile, const struct object *object)
{
    return object->alive || (!object->freed && map_get(&profile->ended, object->process) == MAP_NONE);
}

static void
add_objects(struct profile *profile)
{
    for (uint32_t i = 0; i < profile->objects.count; i++) {
        const struct object *object = row_table_at(&profile->objects, i);
        if (object->node == 0 || !alive_p(profile, object)) continue;
        double objects = object->size > 0 ? (double)object->weight / (double)object->size : 0;
        uint64_t held = (uint64_t)((double)object->malloc_bytes * objects + 0.5);
        uint32_t node = object->node;
        if (profile->with_reasons) node = profile_child(profile, node, object->class_name, true);
        profile_add(profile, node, object->weight + held);
    }
}

void
profile_event(void *context, const struct fxt_event *event)
{
    struct profile *profile = context;
    if (event->ts_ns < profile->first_ns) profile->first_ns = event->ts_ns;
    if (event->ts_ns > profile->last_ns) profile->last_ns = event->ts_ns;
    bool lost = profile->kind == PROFILE_LOST;
    if (lost && event->category.id == STRING_TRACE && event->type == FXT_EVENT_INSTANT)
        lost_stacks_trace(&profile->lost, reader_pool(profile->reader), event);
    if (profile->kind == PROFILE_ALIVE && event->category.id == STRING_TRACE) add_end(profile, event);
    if (!wanted(profile->kind, event)) return;
    if (profile->kind == PROFILE_ALIVE) {
        add_object(profile, event);
        return;
    }
    uint32_t node = profile_end_of(profile, profile_stack(profile, thread_of(profile, event), event, 0));
    if (profile->with_reasons && profile->kind != PROFILE_PREEMPTED)
        node = profile_child(profile, node, event_reason(reader_pool(profile->reader), event), true);
    if (lost) lost_stacks_exit(&profile->lost, reader_pool(profile->reader), node, event);
    else {
        uint64_t weight = event_uint(event, STRING_WEIGHT, 1);
        profile_add(profile, node, weight);
        if (profile->added != NULL) profile->added(profile->context, node, event, weight);
    }
}

static void
add_lost(void *context, uint32_t node, uint64_t events, uint64_t ns)
{
    profile_add_many(context, node, events, ns);
}

static void
add_lost_place(void *context, uint32_t location, uint32_t reason, uint64_t ns)
{
    struct profile *profile = context;
    if (profile->picks != NULL && !profile->picks(profile->picks_context, reason, location)) return;
    uint32_t none = pool_intern(reader_pool(profile->reader), PROFILE_NO_STACK, sizeof PROFILE_NO_STACK - 1);
    uint32_t node = profile_end_of(profile, profile_child(profile, profile_child(profile, 0, none, true), location, false));
    if (profile->with_reasons) node = profile_child(profile, node, reason, true);
    profile_add_many(profile, node, 0, ns);
}

void
profile_finish(struct profile *profile)
{
    const struct lost_visitor visitor = {.context = profile, .stack = add_lost, .place = add_lost_place};
    if (profile->kind == PROFILE_LOST) lost_stacks_finish(&profile->lost, &visitor);
    add_objects(profile);
}

void
profile_merge(struct profile *into, const struct profile *from)
{
    uint32_t *node_of = xcalloc(from->node_count, sizeof *node_of); /* callers come before what they called */
    for (uint32_t i = 1; i < from->node_count; i++) {
        const struct profile_node *node = &from->nodes[i];
        struct fxt_string text = pool_string(reader_pool(from->reader), node->text);
        uint32_t id = pool_intern(reader_pool(into->reader), text.ptr, text.len);
        node_of[i] = profile_child(into, node_of[node->parent], id, node->reason);
        profile_add_many(into, node_of[i], node->events, node->count);
    }
    free(node_of);
}
