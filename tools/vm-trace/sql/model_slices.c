/* model_slices.c - slices: which end closes which begin, how they nest, and which are dropped.
 *
 * Each track has a stack of slices. As in Perfetto, ended slices are removed only when the next
 * slice begins: a flow event in between binds to the ended slice.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "sql/model.h"

enum { OPEN = -1, DEPTH_MAX = 512 };

uint32_t
model_track(struct model *model, enum model_track_kind kind, uint32_t name, uint32_t owner)
{
    model_room(model, model->tracks.list, model->tracks.count, model->tracks.capacity);
    model->tracks.list[model->tracks.count] = (struct model_track){.kind = kind, .name = name, .owner = owner};
    model_room(model, model->stacks.list, model->stacks.count, model->stacks.capacity);
    model->stacks.list[model->stacks.count++] = (struct model_stack){0};
    return model->tracks.count++;
}

uint32_t
model_thread_track(struct model *model, uint32_t utid)
{
    uint32_t track = map_get(&model->track_of_thread, utid);
    if (track != MAP_NONE) return track;
    track = model_track(model, MODEL_THREAD_TRACK, MODEL_NONE, utid);
    model_map_set(model, &model->track_of_thread, utid, track);
    return track;
}

/* Removes ended slices when a new one begins at `ts` (dur is OPEN if its end is unknown).
 * Returns false if the new slice would end after the one that it begins in. */
static bool
remove_ended(struct model *model, struct model_stack *stack, int64_t ts, int64_t dur)
{
    bool open_above = false;
    for (uint32_t i = stack->depth; i-- > 0;) {
        const struct model_slice *slice = &model->slices.list[stack->slices[i]];
        int64_t end = slice->ts + slice->dur;
        if (slice->dur == OPEN) {
            open_above = true;
        }
        else if (open_above) {
            if (ts <= end) continue;
            /* Open slices within an ended slice end with it. */
            for (uint32_t j = stack->depth; --j > i;) {
                struct model_slice *child = &model->slices.list[stack->slices[j]];
                child->dur = end - child->ts;
            }
            stack->depth = i;
            open_above = false;
        }
        else if (end < ts || (end == ts && !(slice->dur == 0 && dur == 0))) {
            stack->depth--; /* instants of the same time nest in each other */
        }
        else if (dur != OPEN && ts < end && ts + dur > end) {
            return false;
        }
    }
    return true;
}

uint32_t
model_slice_begin(struct model *model, uint32_t track, int64_t ts, int64_t dur, uint32_t category, uint32_t name,
                  uint32_t arg_set)
{
    struct model_stack *stack = &model->stacks.list[track];
    bool overlaps = !remove_ended(model, stack, ts, dur);
    if (overlaps || stack->depth >= DEPTH_MAX) {
        model->dropped_slices[overlaps ? MODEL_OVERLAPS : MODEL_TOO_DEEP]++;
        return MODEL_NONE;
    }
    uint32_t id = model->slices.count;
    model_room(model, model->slices.list, model->slices.count, model->slices.capacity);
    model->slices.list[model->slices.count++] = (struct model_slice){
        .ts = ts, .dur = dur, .track = track, .category = category, .name = name, .depth = stack->depth,
        .parent = stack->depth > 0 ? stack->slices[stack->depth - 1] : MODEL_NONE, .arg_set = arg_set,
    };
    model_room(model, stack->slices, stack->depth, stack->capacity);
    stack->slices[stack->depth++] = id;
    return id;
}

void
model_slice_end(struct model *model, uint32_t track, int64_t ts, uint32_t category, uint32_t name, uint32_t arg_set)
{
    struct model_stack *stack = &model->stacks.list[track];
    if (!remove_ended(model, stack, ts, OPEN)) return;
    for (uint32_t i = stack->depth; i-- > 0;) {
        struct model_slice *slice = &model->slices.list[stack->slices[i]];
        if (slice->dur != OPEN) continue;
        if (category != STRING_NONE && slice->category != category) continue;
        if (name != STRING_NONE && slice->name != name) continue;
        slice->dur = ts - slice->ts;
        if (arg_set != MODEL_NONE) {
            const struct model_arg *args;
            unsigned count = model_args_of(model, arg_set, &args);
            struct model_arg copy[FXT_ARGS_MAX]; /* copy, because the array may move */
            for (unsigned j = 0; j < count; j++) copy[j] = args[j];
            slice->arg_set = model_arg_set(model, slice->arg_set, copy, count);
        }
        if (i == stack->depth - 1) stack->depth--;
        return;
    }
}

uint32_t
model_top_slice(const struct model *model, uint32_t track)
{
    const struct model_stack *stack = &model->stacks.list[track];
    return stack->depth > 0 ? stack->slices[stack->depth - 1] : MODEL_NONE;
}
