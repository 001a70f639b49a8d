/* model_async.c - assigns tracks to async events. Events of a recording with one id share a track; free
 * tracks are reused, the oldest first. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "sql/model.h"

struct lane {
    uint64_t id;
    uint32_t open;
    uint32_t track;
    bool listed; /* in the heap of free lanes */
};

/* The tracks for events of one name. */
struct lanes {
    ARRAY_OF(struct lane) all;
    struct map lane_of_id;       /* the id's last lane, which another id may have now */
    ARRAY_OF(uint32_t) free;  /* a heap of lanes, lowest first; some may be in use again */
};

struct model_asyncs {
    struct map name_of_id;   /* an id keeps the first name that it was used with */
    struct map lanes_of_name; /* by recording and name */
    struct lanes *list;
    uint32_t count;
    uint32_t capacity;
};

static void
swap(uint32_t *a, uint32_t *b)
{
    uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

static void
list_as_free(struct lanes *lanes, uint32_t lane)
{
    if (lanes->all.list[lane].listed) return;
    lanes->all.list[lane].listed = true;
    make_room(lanes->free.list, lanes->free.count, lanes->free.capacity);
    uint32_t *heap = lanes->free.list, at = lanes->free.count++;
    heap[at] = lane;
    for (; at > 0 && heap[at] < heap[(at - 1) / 2]; at = (at - 1) / 2) swap(&heap[at], &heap[(at - 1) / 2]);
}

static uint32_t
take_lowest(struct lanes *lanes)
{
    uint32_t *heap = lanes->free.list, lowest = heap[0], count = --lanes->free.count;
    heap[0] = heap[count];
    for (uint32_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1] < heap[child]) child++;
        if (heap[at] <= heap[child]) break;
        swap(&heap[at], &heap[child]);
    }
    lanes->all.list[lowest].listed = false;
    return lowest;
}

/* Returns the lane of the id; or the lowest lane without an open event; or a new one, whose
 * track is MODEL_NONE. */
static uint32_t
lane_of(struct model *model, struct lanes *lanes, uint64_t id)
{
    uint32_t lane = map_get(&lanes->lane_of_id, id);
    if (lane != MAP_NONE && lanes->all.list[lane].id == id) return lane;
    lane = MAP_NONE;
    while (lane == MAP_NONE && lanes->free.count > 0) {
        lane = take_lowest(lanes);
        if (lanes->all.list[lane].open > 0) lane = MAP_NONE;
    }
    if (lane == MAP_NONE) {
        lane = lanes->all.count;
        model_room(model, lanes->all.list, lanes->all.count, lanes->all.capacity);
        lanes->all.list[lanes->all.count++] = (struct lane){.track = MODEL_NONE};
    }
    lanes->all.list[lane].id = id;
    model_map_set(model, &lanes->lane_of_id, id, lane);
    return lane;
}

uint32_t
model_async_track(struct model *model, enum fxt_event_type type, uint32_t recording, uint32_t name, uint64_t id)
{
    id ^= hash_mix(recording);
    if (model->asyncs == NULL) model->asyncs = xcalloc(1, sizeof *model->asyncs);
    struct model_asyncs *asyncs = model->asyncs;
    uint32_t root = map_get(&asyncs->name_of_id, id);
    if (root == MAP_NONE) {
        root = name;
        model_map_set(model, &asyncs->name_of_id, id, root);
    }
    uint64_t key = (uint64_t)recording << 32 | root;
    uint32_t index = map_get(&asyncs->lanes_of_name, key);
    if (index == MAP_NONE) {
        index = asyncs->count;
        model_room(model, asyncs->list, asyncs->count, asyncs->capacity);
        asyncs->list[asyncs->count++] = (struct lanes){0};
        model_map_set(model, &asyncs->lanes_of_name, key, index);
    }
    struct lanes *lanes = &asyncs->list[index];
    uint32_t number = lane_of(model, lanes, id);
    struct lane *lane = &lanes->all.list[number];
    if (type == FXT_EVENT_ASYNC_BEGIN) lane->open++;
    else if (type == FXT_EVENT_ASYNC_END && lane->open > 0) lane->open--;
    if (lane->open == 0) list_as_free(lanes, number);
    if (lane->track == MODEL_NONE) lane->track = model_track(model, MODEL_ASYNC_TRACK, name, MODEL_NONE);
    return lane->track;
}

void
model_async_end(struct model *model)
{
    struct model_asyncs *asyncs = model->asyncs;
    if (asyncs == NULL) return;
    for (uint32_t i = 0; i < asyncs->count; i++) {
        free(asyncs->list[i].all.list);
        free(asyncs->list[i].free.list);
        map_free(&asyncs->list[i].lane_of_id);
    }
    free(asyncs->list);
    map_free(&asyncs->name_of_id);
    map_free(&asyncs->lanes_of_name);
    free(asyncs);
    model->asyncs = NULL;
}
