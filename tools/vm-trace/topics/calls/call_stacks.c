/* call_stacks.c - see call_stacks.h */
#include <stdlib.h>

#include "topics/calls/call_stacks.h"
#include "analysis/event_args.h"
#include "fxt/known_strings.h"

/* --- nodes ---------------------------------------------------------------------------------------- */

static struct budget *
budget_of(const struct call_stacks *stacks)
{
    return reader_budget(stacks->profile->reader);
}

static uint32_t
new_node(struct call_stacks *stacks, uint32_t name)
{
    uint32_t number = stacks->freed;
    if (number != 0) {
        stacks->freed = stacks->nodes[number].next;
    }
    else {
        make_room_within(budget_of(stacks), stacks->nodes, stacks->count, stacks->capacity);
        number = stacks->count++;
    }
    stacks->nodes[number] = (struct call_node){.name = name};
    return number;
}

static void
free_node(struct call_stacks *stacks, uint32_t number)
{
    stacks->nodes[number].next = stacks->freed;
    stacks->freed = number;
}

/* The child of a node with this name, or 0. It moves to the front: what was called is called again. */
static uint32_t
child_of(struct call_stacks *stacks, uint32_t parent, uint32_t name)
{
    struct call_node *nodes = stacks->nodes;
    for (uint32_t before = 0, at = nodes[parent].child; at != 0; before = at, at = nodes[at].next) {
        if (nodes[at].name != name) continue;
        if (before == 0) return at;
        nodes[before].next = nodes[at].next;
        nodes[at].next = nodes[parent].child;
        nodes[parent].child = at;
        return at;
    }
    return 0;
}

static void
add_child(struct call_stacks *stacks, uint32_t parent, uint32_t child)
{
    stacks->nodes[child].next = stacks->nodes[parent].child;
    stacks->nodes[parent].child = child;
}

static void
merge_later(struct call_stacks *stacks, uint32_t into, uint32_t from)
{
    make_room(stacks->merges, stacks->merge_count, stacks->merge_capacity);
    stacks->merges[stacks->merge_count++] = (struct merge){into, from};
}

/* Merges two nodes of the same name, and all below. */
static void
merge(struct call_stacks *stacks, uint32_t into, uint32_t from)
{
    merge_later(stacks, into, from);
    while (stacks->merge_count > 0) {
        struct merge next = stacks->merges[--stacks->merge_count];
        struct call_node *nodes = stacks->nodes;
        nodes[next.into].calls += nodes[next.from].calls;
        call_add_ns(&nodes[next.into].own_ns, nodes[next.from].own_ns);
        for (uint32_t child = nodes[next.from].child, following; child != 0; child = following) {
            following = nodes[child].next;
            uint32_t same = child_of(stacks, next.into, nodes[child].name);
            if (same == 0) add_child(stacks, next.into, child);
            else merge_later(stacks, same, child);
        }
        free_node(stacks, next.from);
    }
}

/* --- what the nesting finds ------------------------------------------------------------------------- */

static struct call_child *
child_by_name(struct call_stacks *stacks, uint32_t name)
{
    struct call_children *children = stacks->children;
    uint32_t names = children->names;
    if (name >= names) {
        while (children->names <= name)
            children->names = (uint32_t)grown_capacity(children->names, sizeof children->names);
        children->list = xrealloc(children->list, children->names, sizeof *children->list);
        for (; names < children->names; names++) children->list[names] = (struct call_child){0};
    }
    return &children->list[name];
}

static void
on_callee(void *context, uint32_t track, struct call *caller, const struct call *callee)
{
    struct call_stacks *stacks = context;
    (void)track;
    if (caller->data == 0) {
        caller->data = new_node(stacks, caller->name);
        stacks->children->age++;
    }
    struct call_child *child = child_by_name(stacks, callee->name);
    if (child->age == stacks->children->age) {
        merge(stacks, child->node, callee->data);
        return;
    }
    *child = (struct call_child){stacks->children->age, callee->data};
    add_child(stacks, caller->data, callee->data);
}

static void
on_returned(void *context, uint32_t track, struct call *call)
{
    struct call_stacks *stacks = context;
    (void)track;
    if (call->data == 0) call->data = new_node(stacks, call->name);
    stacks->nodes[call->data].calls++;
    call_add_ns(&stacks->nodes[call->data].own_ns, call->own_ns);
}

static void
on_late_callee(void *context, uint32_t track, struct call *caller, const struct call *callee)
{
    struct call_stacks *stacks = context;
    (void)track;
    call_add_ns(&stacks->nodes[caller->data].own_ns, (int64_t)(0 - callee->total_ns));
    uint32_t same = child_of(stacks, caller->data, callee->name);
    if (same != 0) merge(stacks, same, callee->data);
    else add_child(stacks, caller->data, callee->data);
}

static void
on_fold(void *context, struct call *into, const struct call *from)
{
    merge(context, into->data, from->data);
}

/* Moves a tree to the profile. */
static void
on_outermost(void *context, uint32_t track, const struct call *call)
{
    struct call_stacks *stacks = context;
    struct profile *profile = stacks->profile;
    const struct thread *thread = &profile->threads.list[track];
    merge_later(stacks, profile_thread(profile, thread->name, thread->tid), call->data);
    while (stacks->merge_count > 0) {
        struct merge next = stacks->merges[--stacks->merge_count]; /* into: a node of the profile */
        struct call_node *node = &stacks->nodes[next.from];
        uint32_t to = profile_child(profile, next.into, node->name, false);
        uint64_t own_ns = node->own_ns > 0 ? (uint64_t)node->own_ns : 0;
        uint32_t end = profile_end_of(profile, to);
        if (profile->picks == NULL || profile->picks(profile->picks_context, STRING_NONE, profile->nodes[end].text))
            profile_add_many(profile, end, node->calls, own_ns);
        for (uint32_t child = node->child; child != 0; child = stacks->nodes[child].next)
            merge_later(stacks, to, child);
        free_node(stacks, next.from);
    }
}

/* --- all ---------------------------------------------------------------------------------------------- */

void
call_stacks_init(struct call_stacks *stacks, struct profile *profile, struct call_stacks *others)
{
    *stacks = (struct call_stacks){.profile = profile};
    stacks->children = others != NULL ? others->children : &stacks->own_children;
    const struct call_nesting_visitor visitor = {.context = stacks, .callee = on_callee, .late_callee = on_late_callee,
                                                 .returned = on_returned,
                                                 .outermost = on_outermost, .fold = on_fold};
    call_nesting_init(&stacks->nesting, &visitor);
    new_node(stacks, STRING_NONE);
}

void
call_stacks_free(struct call_stacks *stacks)
{
    call_nesting_free(&stacks->nesting);
    free(stacks->nodes);
    free(stacks->own_children.list);
    free(stacks->merges);
}

void
call_stacks_event(struct call_stacks *stacks, const struct fxt_event *event)
{
    struct profile *profile = stacks->profile;
    if (event->category.id == STRING_TRACE && event->name.id == STRING_SETTINGS)
        call_nesting_settings(&stacks->nesting, event);
    if (event->category.id != STRING_CALL) return;
    const struct thread *thread = threads_get(&profile->threads, event->process, event->tid);
    if (thread == NULL) return;
    call_nesting_event(&stacks->nesting, (uint32_t)(thread - profile->threads.list), reader_pool(profile->reader),
                       event);
}

void
call_stacks_file_end(struct call_stacks *stacks)
{
    call_nesting_finish(&stacks->nesting);
}
