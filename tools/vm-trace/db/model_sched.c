/* model_sched.c - scheduling: which thread ran on which CPU, and the states of threads in
 * between. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "db/model.h"

struct scheduled {
    uint32_t pid; /* number of model_pid */
    uint32_t tid;
    int64_t last_ts;
    uint32_t slice; /* its open row, or MODEL_NONE */
    uint32_t state;
};

/* Of a recording. Tids count with all their 64 bits, so these keys are hashes. */
struct model_scheduling {
    struct map by_process;  /* process and tid, of threads that a record names */
    struct map by_provider; /* provider and tid, of threads that it named or switched */
    struct map by_tid;      /* what was last named or switched */
    ARRAY_OF(struct scheduled) threads;
};

static uint64_t
thread_hash(uint64_t tid, uint32_t recording, uint32_t owner)
{
    return hash_mix(tid) ^ hash_mix(((uint64_t)recording << 32 | owner) + 1);
}

static struct model_scheduling *
scheduling_of(struct model *model)
{
    if (model->scheduling == NULL) model->scheduling = xcalloc(1, sizeof *model->scheduling);
    return model->scheduling;
}

static uint32_t
new_scheduled(struct model *model, uint64_t tid, uint32_t pid)
{
    struct model_scheduling *all = scheduling_of(model);
    model_room(model, all->threads.list, all->threads.count, all->threads.capacity);
    all->threads.list[all->threads.count] =
        (struct scheduled){.pid = pid, .tid = (uint32_t)tid, .slice = MODEL_NONE, .state = MODEL_NONE};
    return all->threads.count++;
}

/* Returns the thread that a record means which does not name its process: that of this number which the same
 * provider named or switched last, or else any provider. */
static uint32_t
get(struct model *model, const struct model_switch *sched, uint64_t tid)
{
    struct model_scheduling *all = scheduling_of(model);
    uint64_t key = thread_hash(tid, sched->recording, 0);
    uint32_t index = map_get(&all->by_provider, thread_hash(tid, sched->recording, sched->provider));
    if (index == MAP_NONE) index = map_get(&all->by_tid, key);
    if (index == MAP_NONE) {
        index = new_scheduled(model, tid, model_pid_of(model, sched->recording, 0));
        model_map_set(model, &all->by_tid, key, index);
    }
    return index;
}

/* Returns the thread of a legacy context switch, which names its process. Of a process that no kernel object
 * names, Perfetto does not look at that. */
static uint32_t
get_switched(struct model *model, const struct model_switch *sched, uint64_t tid, uint32_t pid)
{
    struct model_scheduling *all = scheduling_of(model);
    uint32_t index = map_get(&all->by_process, thread_hash(tid, 0, pid));
    if (index == MAP_NONE) return get(model, sched, tid);
    model_map_set(model, &all->by_provider, thread_hash(tid, sched->recording, sched->provider), index);
    return index;
}

void
model_thread_process(struct model *model, const struct fxt_object *object)
{
    struct model_scheduling *all = scheduling_of(model);
    uint32_t pid = model_pid(model, object->provider, object->pid), recording = model->pids.list[pid].recording;
    uint64_t key = thread_hash(object->raw_tid, 0, pid);
    uint32_t index = map_get(&all->by_process, key);
    if (index == MAP_NONE) {
        index = new_scheduled(model, object->raw_tid, pid);
        model_map_set(model, &all->by_process, key, index);
    }
    model_map_set(model, &all->by_provider, thread_hash(object->raw_tid, recording, object->provider), index);
    model_map_set(model, &all->by_tid, thread_hash(object->raw_tid, recording, 0), index);
}

static const char *
state_name(unsigned state)
{
    static const char *const names[] = {"R", "R", "T", "S", "Z", "X"};
    return state < sizeof names / sizeof *names ? names[state] : NULL;
}

/* Ends the thread's open state and begins a new one. */
static void
new_state(struct model *model, struct scheduled *thread, uint32_t utid, int64_t ts, uint32_t cpu, const char *state,
          uint32_t waker, uint32_t waker_state)
{
    if (thread->state != MODEL_NONE) model->states.list[thread->state].dur = ts - thread->last_ts;
    thread->last_ts = ts;
    thread->state = model->states.count;
    model_room(model, model->states.list, model->states.count, model->states.capacity);
    model->states.list[model->states.count++] = (struct model_state){
        .ts = ts, .dur = -1, .cpu = cpu, .utid = utid, .state = state, .waker = waker, .waker_state = waker_state};
}

static void
switch_from(struct model *model, uint32_t index, int64_t ts, uint32_t cpu, unsigned state)
{
    struct scheduled *thread = &model->scheduling->threads.list[index];
    uint32_t utid = model_thread(model, thread->tid, thread->pid);
    if (thread->slice != MODEL_NONE) {
        model->scheds.list[thread->slice].dur = ts - thread->last_ts;
        model->scheds.list[thread->slice].end_state = state_name(state);
        thread->slice = MODEL_NONE;
    }
    new_state(model, thread, utid, ts, cpu, state_name(state), MODEL_NONE, MODEL_NONE);
}

static void
switch_to(struct model *model, uint32_t index, int64_t ts, uint32_t cpu, int32_t priority)
{
    struct scheduled *thread = &model->scheduling->threads.list[index];
    uint32_t utid = model_thread(model, thread->tid, thread->pid);
    thread->slice = model->scheds.count;
    model_room(model, model->scheds.list, model->scheds.count, model->scheds.capacity);
    model->scheds.list[model->scheds.count++] =
        (struct model_sched){.ts = ts, .dur = -1, .cpu = cpu, .utid = utid, .priority = priority};
    new_state(model, thread, utid, ts, cpu, "Running", MODEL_NONE, MODEL_NONE);
}

/* waker: a utid, or MODEL_NONE: the thread woke by itself. */
static void
wake(struct model *model, const struct model_switch *sched, int64_t ts, uint32_t waker)
{
    uint32_t by = sched->has_waker ? get(model, sched, sched->in_tid) : MODEL_NONE;
    uint32_t index = get(model, sched, sched->out_tid);
    struct scheduled *threads = model->scheduling->threads.list, *thread = &threads[index];
    uint32_t utid = model_thread(model, thread->tid, thread->pid);
    uint32_t waker_state = by != MODEL_NONE ? threads[by].state : thread->state;
    new_state(model, thread, utid, ts, sched->cpu, "W", waker != MODEL_NONE ? waker : utid, waker_state);
}

/* Returns an int32 argument of a record that is not dropped, or 0. */
static int32_t
weight_arg(const struct fxt_sched *sched, const char *name)
{
    int32_t weight = 0;
    for (unsigned i = 0; i < sched->arg_count; i++) {
        if (fxt_string_is(sched->args[i].name, name)) weight = (int32_t)sched->args[i].i64;
    }
    return weight;
}

struct model_switch
model_switch_from(struct model *model, const struct fxt_sched *sched)
{
    struct model_switch kept = {
        .type = sched->type,
        .out_state = sched->out_state,
        .cpu = sched->cpu,
        .in = sched->in_priority,
        .out = sched->out_priority,
        .out_tid = sched->out_tid,
        .in_tid = sched->in_tid,
        .dropped = sched->dropped,
        .recording = recording_of(&model->piece_ends.recording, sched->provider),
        .provider = sched->provider,
        .out_pid = model_pid(model, sched->provider, sched->out_pid),
        .in_pid = model_pid(model, sched->provider, sched->in_pid),
    };
    if (kept.dropped) return kept;
    if (sched->type == FXT_SCHED_SWITCH) {
        kept.in = weight_arg(sched, "incoming_weight");
        kept.out = weight_arg(sched, "outgoing_weight");
    }
    else if (sched->type == FXT_SCHED_WAKEUP) {
        kept.in = weight_arg(sched, "weight");
        for (unsigned i = 0; i < sched->arg_count; i++) {
            if (!fxt_string_is(sched->args[i].name, "waker")) continue;
            kept.has_waker = true;
            kept.in_tid = sched->args[i].u64;
        }
    }
    return kept;
}

/* Whether a record says what process it belongs to. */
static bool
named(const struct model *model, const struct scheduled *thread)
{
    return model->pids.list[thread->pid].pid != 0;
}

void
model_scheduled(struct model *model, int64_t ts, const struct model_switch *sched)
{
    const int32_t idle = INT32_MIN;
    const struct scheduled *threads;
    uint32_t out, in, waker = MODEL_NONE;
    switch (sched->type) { /* from here on both threads are known, also as wakers */
      case FXT_SCHED_LEGACY_SWITCH:
        out = get_switched(model, sched, sched->out_tid, sched->out_pid);
        in = get_switched(model, sched, sched->in_tid, sched->in_pid);
        threads = model->scheduling->threads.list;
        if (sched->dropped) break;
        if (named(model, &threads[out]) || sched->out != 0) switch_from(model, out, ts, sched->cpu, sched->out_state);
        if (named(model, &threads[in]) || sched->in != 0) switch_to(model, in, ts, sched->cpu, sched->in);
        break;
      case FXT_SCHED_SWITCH:
        out = get(model, sched, sched->out_tid);
        in = get(model, sched, sched->in_tid);
        if (sched->dropped) break;
        if (sched->out != idle) switch_from(model, out, ts, sched->cpu, sched->out_state);
        if (sched->in != idle) switch_to(model, in, ts, sched->cpu, sched->in);
        break;
      case FXT_SCHED_WAKEUP:
        get(model, sched, sched->out_tid);
        if (sched->dropped) break;
        if (sched->has_waker) waker = model_any_thread(model, sched->recording, (uint32_t)sched->in_tid);
        if (sched->in != idle) wake(model, sched, ts, waker);
        break;
    }
}

void
model_sched_end(struct model *model)
{
    if (model->scheduling == NULL) return;
    map_free(&model->scheduling->by_process);
    map_free(&model->scheduling->by_provider);
    map_free(&model->scheduling->by_tid);
    free(model->scheduling->threads.list);
    free(model->scheduling);
    model->scheduling = NULL;
}
