/* model_flows.c - flows: arrows from the slice in which one began to the slice of its next step or end.
 *
 * Ids belong to a process; a step or end in another process finds the flow by its id alone, as long as only one process has it.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "db/model.h"
#include "fxt/event_keys.h"

enum { GONE = UINT32_MAX - 1 }; /* an entry that was taken out of a map: maps have no removal */

struct owner {
    uint32_t pid;
    bool ambiguous;
};

struct model_flow_state {
    struct map flow_of_key;  /* process and id -> number of flow */
    struct map owner_of_id;  /* id -> index into owners */
    MODEL_ARRAY(struct owner) owners;
    MODEL_ARRAY(uint32_t) last_slice; /* by number of flow; MODEL_NONE before its begin was bound */
};

static uint32_t
look_up(const struct map *map, uint64_t key)
{
    uint32_t value = map_get(map, key);
    return value == (uint32_t)GONE ? MAP_NONE : value;
}

static uint32_t
begin(struct model *model, uint32_t pid, uint64_t id)
{
    struct model_flow_state *state = model->flow_state;
    uint32_t flow = state->last_slice.count;
    model_room(model, state->last_slice.list, state->last_slice.count, state->last_slice.capacity);
    state->last_slice.list[state->last_slice.count++] = MODEL_NONE;
    model_map_set(model, &state->flow_of_key, flow_key(pid, id), flow);
    uint32_t index = look_up(&state->owner_of_id, id);
    if (index == MAP_NONE) {
        model_map_set(model, &state->owner_of_id, id, state->owners.count);
        model_room(model, state->owners.list, state->owners.count, state->owners.capacity);
        state->owners.list[state->owners.count++] = (struct owner){.pid = pid};
    }
    else if (state->owners.list[index].pid != pid) {
        state->owners.list[index].ambiguous = true;
    }
    return flow;
}

void
model_flow(struct model *model, enum fxt_event_type type, uint32_t track, uint32_t pid, uint64_t id)
{
    if (model->flow_state == NULL) model->flow_state = xcalloc(1, sizeof *model->flow_state);
    struct model_flow_state *state = model->flow_state;
    uint32_t owner = pid;
    uint32_t flow = look_up(&state->flow_of_key, flow_key(pid, id));
    if (flow == MAP_NONE && type == FXT_EVENT_FLOW_BEGIN) flow = begin(model, pid, id);
    if (flow == MAP_NONE) {
        uint32_t index = look_up(&state->owner_of_id, id);
        if (index == MAP_NONE || state->owners.list[index].ambiguous) return;
        owner = state->owners.list[index].pid;
        flow = look_up(&state->flow_of_key, flow_key(owner, id));
        if (flow == MAP_NONE) return;
    }
    uint32_t *last = &state->last_slice.list[flow];
    uint32_t slice = model_top_slice(model, track);
    if (type == FXT_EVENT_FLOW_BEGIN) {
        if (*last == MODEL_NONE) *last = slice;
        return;
    }
    if (slice != MODEL_NONE && *last != MODEL_NONE) {
        bool back = model->slices.list[*last].ts > model->slices.list[slice].ts;
        model_room(model, model->flows.list, model->flows.count, model->flows.capacity);
        model->flows.list[model->flows.count++] = (struct model_flow){
            .out = back ? slice : *last, .in = back ? *last : slice, .id = (uint64_t)flow + 1};
        *last = slice;
    }
    if (type == FXT_EVENT_FLOW_END) {
        model_map_set(model, &state->flow_of_key, flow_key(owner, id), (uint32_t)GONE);
        model_map_set(model, &state->owner_of_id, id, (uint32_t)GONE);
    }
}

void
model_flows_end(struct model *model)
{
    struct model_flow_state *state = model->flow_state;
    if (state == NULL) return;
    map_free(&state->flow_of_key);
    map_free(&state->owner_of_id);
    free(state->owners.list);
    free(state->last_slice.list);
    free(state);
    model->flow_state = NULL;
}
