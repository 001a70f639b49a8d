/* model_threads.c - processes and threads, numbered as Perfetto numbers them. */
#include <stdlib.h>

#include "model.h"
#include "xalloc.h"

static uint32_t
new_thread(struct model *model, uint32_t tid)
{
    uint32_t utid = model->threads.count;
    make_room(model->threads.list, model->threads.count, model->threads.capacity);
    model->threads.list[model->threads.count++] = (struct model_thread){.tid = tid, .upid = MODEL_NONE, .name = MODEL_NONE};
    return utid;
}

static struct model_tid_list *
tid_list(struct model *model, uint32_t tid)
{
    uint32_t index = map_get(&model->utids_of_tid, tid);
    if (index == MAP_NONE) {
        index = model->tid_lists.count;
        make_room(model->tid_lists.list, model->tid_lists.count, model->tid_lists.capacity);
        model->tid_lists.list[model->tid_lists.count++] = (struct model_tid_list){0};
        map_set(&model->utids_of_tid, tid, index);
    }
    return &model->tid_lists.list[index];
}

static uint32_t
start_thread(struct model *model, uint32_t tid)
{
    uint32_t utid = new_thread(model, tid);
    struct model_tid_list *list = tid_list(model, tid);
    make_room(list->utids, list->count, list->capacity);
    list->utids[list->count++] = utid;
    return utid;
}

void
model_threads_begin(struct model *model)
{
    /* Number 0 of both belongs to the idle process; a trace's own pid 0 gets another. */
    make_room(model->processes.list, model->processes.count, model->processes.capacity);
    model->processes.list[model->processes.count++] = (struct model_process){.name = MODEL_NONE};
    uint32_t utid = new_thread(model, 0);
    struct model_thread *idle = &model->threads.list[utid];
    idle->upid = 0;
    idle->main = true;
}

void
model_threads_end(struct model *model)
{
    for (uint32_t i = 0; i < model->tid_lists.count; i++) free(model->tid_lists.list[i].utids);
    free(model->tid_lists.list);
    map_free(&model->utids_of_tid);
    map_free(&model->upid_of_pid);
}

uint32_t
model_process(struct model *model, uint32_t pid)
{
    uint32_t upid = map_get(&model->upid_of_pid, pid);
    if (upid != MAP_NONE) return upid;
    upid = model->processes.count;
    make_room(model->processes.list, model->processes.count, model->processes.capacity);
    model->processes.list[model->processes.count++] = (struct model_process){.pid = pid, .name = MODEL_NONE};
    map_set(&model->upid_of_pid, pid, upid);
    model_thread(model, pid, pid); /* a process comes with its main thread */
    return upid;
}

uint32_t
model_any_thread(struct model *model, uint32_t tid)
{
    struct model_tid_list *list = tid_list(model, tid);
    return list->count > 0 ? list->utids[list->count - 1] : start_thread(model, tid);
}

uint32_t
model_thread(struct model *model, uint32_t tid, uint32_t pid)
{
    uint32_t upid = model_process(model, pid);
    struct model_tid_list *list = tid_list(model, tid);
    uint32_t utid = MODEL_NONE;
    for (uint32_t i = list->count; i-- > 0;) {
        uint32_t owner = model->threads.list[list->utids[i]].upid;
        if (owner != MODEL_NONE && owner != upid) continue;
        utid = list->utids[i];
        /* To the end: a search by tid alone shall find the one seen last. */
        for (; i + 1 < list->count; i++) list->utids[i] = list->utids[i + 1];
        list->utids[list->count - 1] = utid;
        break;
    }
    if (utid == MODEL_NONE) utid = start_thread(model, tid);
    struct model_thread *thread = &model->threads.list[utid];
    if (thread->upid == MODEL_NONE) {
        thread->upid = upid;
        thread->main = tid == pid;
    }
    return utid;
}
