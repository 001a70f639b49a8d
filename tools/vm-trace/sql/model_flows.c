/* model_flows.c - flows: arrows from the slice of a flow's begin to the slice of its next step or
 * end.
 *
 * Ids belong to a process. A step or end in another process finds the flow by its id alone,
 * provided that only one process has it.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "sql/model.h"
#include "fxt/event_keys.h"

enum { GONE = UINT32_MAX - 1 }; /* stands for a removed entry, because maps cannot remove */

struct owner {
    uint32_t pid; /* number of model_pid */
    bool ambiguous;
};

struct model_flow_state {
    struct map flow_of_key;  /* process and id -> number of flow */
    struct map owner_of_id;  /* id -> index into owners */
    ARRAY_OF(struct owner) owners;
    ARRAY_OF(uint32_t) last_slice; /* by number of flow; MODEL_NONE until its begin is bound */
    /* The flow that began last, which is not in the maps yet: most end before another one begins. */
    struct {
        bool begun;
        uint32_t pid, flow;
        uint64_t id;
    } latest;
};

static uint32_t
look_up(const struct map *map, uint64_t key)
{
    uint32_t value = map_get(map, key);
    return value == (uint32_t)GONE ? MAP_NONE : value;
}

/* Enters the latest flow into the maps, so that its steps and its end are found in any order. */
static void
enter_latest(struct model *model)
{
    struct model_flow_state *state = model->flow_state;
    if (!state->latest.begun) return;
    state->latest.begun = false;
    uint32_t pid = state->latest.pid;
    uint64_t id = state->latest.id;
    model_map_set(model, &state->flow_of_key, flow_key(pid, id), state->latest.flow);
    uint32_t index = look_up(&state->owner_of_id, id);
    if (index == MAP_NONE) {
        model_map_set(model, &state->owner_of_id, id, state->owners.count);
        model_room(model, state->owners.list, state->owners.count, state->owners.capacity);
        state->owners.list[state->owners.count++] = (struct owner){.pid = pid};
    }
    else if (state->owners.list[index].pid != pid) {
        state->owners.list[index].ambiguous = true;
    }
}

static uint32_t
begin(struct model *model, uint32_t pid, uint64_t id)
{
    struct model_flow_state *state = model->flow_state;
    uint32_t flow = state->last_slice.count;
    enter_latest(model);
    model_room(model, state->last_slice.list, state->last_slice.count, state->last_slice.capacity);
    state->last_slice.list[state->last_slice.count++] = MODEL_NONE;
    state->latest.begun = true;
    state->latest.pid = pid;
    state->latest.id = id;
    state->latest.flow = flow;
    return flow;
}

void
model_flow(struct model *model, enum fxt_event_type type, uint32_t track, uint32_t pid, uint64_t id)
{
    if (model->flow_state == NULL) model->flow_state = xcalloc(1, sizeof *model->flow_state);
    struct model_flow_state *state = model->flow_state;
    uint32_t owner = pid;
    bool latest = state->latest.begun && state->latest.pid == pid && state->latest.id == id;
    if (!latest && type != FXT_EVENT_FLOW_BEGIN) enter_latest(model);
    uint32_t flow = latest ? state->latest.flow : look_up(&state->flow_of_key, flow_key(pid, id));
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
    if (type != FXT_EVENT_FLOW_END) return;
    if (latest && look_up(&state->owner_of_id, id) == MAP_NONE) {
        state->latest.begun = false;
    }
    else {
        enter_latest(model);
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
