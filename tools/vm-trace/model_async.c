/* model_async.c - on which track an async event lies. Events of one id share a track; a track that is free is used again. */
#include <stdlib.h>

#include "model.h"
#include "xalloc.h"

struct lane {
    uint64_t id;
    uint32_t open;
    uint32_t track; /* MODEL_NONE before its first event */
};

/* Tracks for events of one name. */
struct lanes {
    struct lane *list;
    uint32_t count;
    uint32_t capacity;
};

struct model_asyncs {
    struct map name_of_id;   /* an id keeps the first name that it was used with */
    struct map lanes_of_name;
    struct lanes *list;
    uint32_t count;
    uint32_t capacity;
};

static struct lane *
lane_of(struct lanes *lanes, uint64_t id)
{
    struct lane *unused = NULL;
    for (uint32_t i = 0; i < lanes->count; i++) {
        if (lanes->list[i].id == id) return &lanes->list[i];
        if (unused == NULL && lanes->list[i].open == 0) unused = &lanes->list[i];
    }
    if (unused == NULL) {
        make_room(lanes->list, lanes->count, lanes->capacity);
        unused = &lanes->list[lanes->count++];
        *unused = (struct lane){.track = MODEL_NONE};
    }
    unused->id = id;
    return unused;
}

uint32_t
model_async_track(struct model *model, enum fxt_event_type type, uint32_t name, uint64_t id)
{
    if (model->asyncs == NULL) model->asyncs = xcalloc(1, sizeof *model->asyncs);
    struct model_asyncs *asyncs = model->asyncs;
    uint32_t root = map_get(&asyncs->name_of_id, id);
    if (root == MAP_NONE) {
        root = name;
        map_set(&asyncs->name_of_id, id, root);
    }
    uint32_t index = map_get(&asyncs->lanes_of_name, root);
    if (index == MAP_NONE) {
        index = asyncs->count;
        make_room(asyncs->list, asyncs->count, asyncs->capacity);
        asyncs->list[asyncs->count++] = (struct lanes){0};
        map_set(&asyncs->lanes_of_name, root, index);
    }
    struct lane *lane = lane_of(&asyncs->list[index], id);
    if (type == FXT_EVENT_ASYNC_BEGIN) lane->open++;
    else if (type == FXT_EVENT_ASYNC_END && lane->open > 0) lane->open--;
    if (lane->track == MODEL_NONE) lane->track = model_track(model, MODEL_ASYNC_TRACK, name, MODEL_NONE);
    return lane->track;
}

void
model_async_end(struct model *model)
{
    struct model_asyncs *asyncs = model->asyncs;
    if (asyncs == NULL) return;
    for (uint32_t i = 0; i < asyncs->count; i++) free(asyncs->list[i].list);
    free(asyncs->list);
    map_free(&asyncs->name_of_id);
    map_free(&asyncs->lanes_of_name);
    free(asyncs);
    model->asyncs = NULL;
}
