/* model_sched.c - scheduling: which thread ran on which CPU, and the states of threads in
 * between. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "db/model.h"

struct scheduled {
    uint32_t pid;
    uint32_t tid;
    int64_t last_ts;
    uint32_t slice; /* its open row, or MODEL_NONE */
    uint32_t state;
};

struct model_scheduling {
    struct map by_tid; /* by all 64 bits */
    ARRAY_OF(struct scheduled) threads;
};

static struct scheduled *
get(struct model *model, uint64_t tid)
{
    if (model->scheduling == NULL) model->scheduling = xcalloc(1, sizeof *model->scheduling);
    struct model_scheduling *all = model->scheduling;
    uint32_t index = map_get(&all->by_tid, tid);
    if (index == MAP_NONE) {
        index = all->threads.count;
        model_room(model, all->threads.list, all->threads.count, all->threads.capacity);
        all->threads.list[all->threads.count++] =
            (struct scheduled){.tid = (uint32_t)tid, .slice = MODEL_NONE, .state = MODEL_NONE};
        model_map_set(model, &all->by_tid, tid, index);
    }
    return &all->threads.list[index];
}

void
model_thread_process(struct model *model, uint64_t tid, uint64_t pid)
{
    get(model, tid)->pid = (uint32_t)pid;
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
switch_from(struct model *model, uint64_t tid, int64_t ts, uint32_t cpu, unsigned state)
{
    struct scheduled *thread = get(model, tid);
    uint32_t utid = model_thread(model, thread->tid, thread->pid);
    if (thread->slice != MODEL_NONE) {
        model->scheds.list[thread->slice].dur = ts - thread->last_ts;
        model->scheds.list[thread->slice].end_state = state_name(state);
        thread->slice = MODEL_NONE;
    }
    new_state(model, thread, utid, ts, cpu, state_name(state), MODEL_NONE, MODEL_NONE);
}

static void
switch_to(struct model *model, uint64_t tid, int64_t ts, uint32_t cpu, int32_t priority)
{
    struct scheduled *thread = get(model, tid);
    uint32_t utid = model_thread(model, thread->tid, thread->pid);
    thread->slice = model->scheds.count;
    model_room(model, model->scheds.list, model->scheds.count, model->scheds.capacity);
    model->scheds.list[model->scheds.count++] =
        (struct model_sched){.ts = ts, .dur = -1, .cpu = cpu, .utid = utid, .priority = priority};
    new_state(model, thread, utid, ts, cpu, "Running", MODEL_NONE, MODEL_NONE);
}

static void
wake(struct model *model, uint64_t tid, int64_t ts, uint32_t cpu, const uint64_t *waker_tid, uint32_t waker)
{
    struct scheduled *thread = get(model, tid);
    uint32_t utid = model_thread(model, thread->tid, thread->pid);
    uint32_t waker_state = thread->state; /* without a waker, the thread woke by itself */
    if (waker_tid != NULL) {
        uint32_t index = map_get(&model->scheduling->by_tid, *waker_tid);
        waker_state = index == MAP_NONE ? MODEL_NONE : model->scheduling->threads.list[index].state;
    }
    new_state(model, thread, utid, ts, cpu, "W", waker_tid != NULL ? waker : utid, waker_state);
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
model_switch_from(const struct fxt_sched *sched)
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

void
model_scheduled(struct model *model, int64_t ts, const struct model_switch *sched)
{
    const int32_t idle = INT32_MIN;
    get(model, sched->out_tid); /* from here on both are known, also as wakers */
    if (sched->type != FXT_SCHED_WAKEUP) get(model, sched->in_tid);
    if (sched->dropped) return;
    switch (sched->type) {
      case FXT_SCHED_LEGACY_SWITCH:
        if (get(model, sched->out_tid)->pid != 0 || sched->out != 0) {
            switch_from(model, sched->out_tid, ts, sched->cpu, sched->out_state);
        }
        if (get(model, sched->in_tid)->pid != 0 || sched->in != 0)
            switch_to(model, sched->in_tid, ts, sched->cpu, sched->in);
        break;
      case FXT_SCHED_SWITCH:
        if (sched->out != idle) switch_from(model, sched->out_tid, ts, sched->cpu, sched->out_state);
        if (sched->in != idle) switch_to(model, sched->in_tid, ts, sched->cpu, sched->in);
        break;
      case FXT_SCHED_WAKEUP: {
        uint32_t waker = sched->has_waker ? model_any_thread(model, (uint32_t)sched->in_tid) : MODEL_NONE;
        if (sched->in != idle)
            wake(model, sched->out_tid, ts, sched->cpu, sched->has_waker ? &sched->in_tid : NULL, waker);
        break;
      }
    }
}

void
model_sched_end(struct model *model)
{
    if (model->scheduling == NULL) return;
    map_free(&model->scheduling->by_tid);
    free(model->scheduling->threads.list);
    free(model->scheduling);
    model->scheduling = NULL;
}
