/* model_threads.c - processes and threads, with Perfetto's numbers. */
#include "base/xalloc.h"
#include "sql/model.h"

static uint32_t
new_thread(struct model *model, uint32_t tid)
{
    uint32_t utid = model->threads.count;
    model_room(model, model->threads.list, model->threads.count, model->threads.capacity);
    model->threads.list[model->threads.count++] =
        (struct model_thread){.tid = tid, .upid = MODEL_NONE, .name = MODEL_NONE};
    return utid;
}

void
model_threads_begin(struct model *model)
{
    /* Number 0 of both is the idle process; a pid 0 in a trace gets another number. */
    model_room(model, model->processes.list, model->processes.count, model->processes.capacity);
    model->processes.list[model->processes.count++] = (struct model_process){.name = MODEL_NONE};
    uint32_t utid = new_thread(model, 0);
    struct model_thread *idle = &model->threads.list[utid];
    idle->upid = 0;
    idle->main = true;
}

void
model_threads_end(struct model *model)
{
    map_free(&model->utid_of_thread);
    map_free(&model->last_of_tid);
    map_free(&model->upid_of_pid);
    map_free(&model->pid_numbers);
}

uint32_t
model_pid(struct model *model, uint32_t recording, uint32_t pid)
{
    uint64_t key = (uint64_t)recording << 32 | pid;
    uint32_t number = map_get(&model->pid_numbers, key);
    if (number != MAP_NONE) return number;
    number = model->pids.count;
    model_room(model, model->pids.list, model->pids.count, model->pids.capacity);
    model->pids.list[model->pids.count++] = (struct model_pid){.pid = pid, .recording = recording};
    model_map_set(model, &model->pid_numbers, key, number);
    return number;
}

uint32_t
model_process(struct model *model, uint32_t number)
{
    uint32_t upid = map_get(&model->upid_of_pid, number), pid = model->pids.list[number].pid;
    if (upid != MAP_NONE) return upid;
    upid = model->processes.count;
    model_room(model, model->processes.list, model->processes.count, model->processes.capacity);
    model->processes.list[model->processes.count++] = (struct model_process){.pid = pid, .name = MODEL_NONE};
    model_map_set(model, &model->upid_of_pid, number, upid);
    model_thread(model, pid, number); /* a process implies its main thread */
    return upid;
}

static uint64_t
tid_key(uint32_t recording, uint32_t tid)
{
    return (uint64_t)recording << 32 | tid;
}

uint32_t
model_any_thread(struct model *model, uint32_t recording, uint32_t tid)
{
    uint32_t utid = map_get(&model->last_of_tid, tid_key(recording, tid));
    if (utid != MAP_NONE) return utid;
    utid = new_thread(model, tid); /* its process is unknown: the next process with this tid takes it */
    model_map_set(model, &model->last_of_tid, tid_key(recording, tid), utid);
    return utid;
}

uint32_t
model_thread(struct model *model, uint32_t tid, uint32_t number)
{
    const struct model_pid process = model->pids.list[number];
    uint32_t upid = model_process(model, number);
    uint64_t key = (uint64_t)upid << 32 | tid;
    uint32_t utid = map_get(&model->utid_of_thread, key);
    if (utid == MAP_NONE) {
        utid = map_get(&model->last_of_tid, tid_key(process.recording, tid));
        if (utid == MAP_NONE || model->threads.list[utid].upid != MODEL_NONE) utid = new_thread(model, tid);
        model->threads.list[utid].upid = upid;
        model->threads.list[utid].main = tid == process.pid;
        model_map_set(model, &model->utid_of_thread, key, utid);
    }
    model_map_set(model, &model->last_of_tid, tid_key(process.recording, tid), utid);
    return utid;
}
