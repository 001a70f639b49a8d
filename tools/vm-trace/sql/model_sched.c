/* model_sched.c - scheduling: which thread ran on which CPU, and the states of threads in
 * between. */
#include <stdlib.h>

#include "base/row_table.h"
#include "base/xalloc.h"
#include "sql/model.h"
#include "fxt/sched_threads.h"

struct scheduled {
    uint32_t pid; /* the key: number of model_pid, that of pid 0 if no record names its process */
    uint32_t tid, tid_high;
    int64_t last_ts;
    uint32_t slice; /* its open row, or MODEL_NONE */
    uint32_t state;
};

struct model_scheduling {
    struct row_table threads;   /* of struct scheduled */
    struct sched_threads meant; /* numbers of these */
};

void
model_sched_begin(struct model *model)
{
    model->scheduling = xcalloc(1, sizeof *model->scheduling);
    model->scheduling->meant.budget = reader_budget(model->reader);
    row_table_init(&model->scheduling->threads, sizeof(struct scheduled), 3, MODEL_NONE - 1);
}

static struct scheduled *
scheduled(const struct model *model, uint32_t index)
{
    return row_table_at(&model->scheduling->threads, index);
}

static uint32_t
get_of_process(struct model *model, uint64_t tid, uint32_t pid)
{
    const uint32_t key[] = {pid, (uint32_t)tid, (uint32_t)(tid >> 32)};
    bool added;
    uint32_t index = row_table_intern(&model->scheduling->threads, key, reader_budget(model->reader), &added);
    if (added) scheduled(model, index)->slice = scheduled(model, index)->state = MODEL_NONE;
    return index;
}

/* Returns the thread that a record means which does not name its process. */
static uint32_t
get(struct model *model, const struct model_switch *sched, uint64_t tid)
{
    struct sched_threads *meant = &model->scheduling->meant;
    uint32_t index = sched_threads_find(meant, sched->recording, sched->provider, tid);
    if (index != MAP_NONE) return index;
    index = get_of_process(model, tid, model_pid(model, sched->recording, 0));
    sched_threads_note(meant, sched->recording, sched->provider, tid, index);
    return index;
}

/* Returns the thread of a legacy context switch, which names its process. Of a process that no kernel object
 * names, Perfetto does not look at that. */
static uint32_t
get_switched(struct model *model, const struct model_switch *sched, uint64_t tid, uint32_t pid)
{
    struct model_scheduling *all = model->scheduling;
    const uint32_t key[] = {pid, (uint32_t)tid, (uint32_t)(tid >> 32)};
    const struct scheduled *thread = row_table_find(&all->threads, key);
    if (thread == NULL) return get(model, sched, tid);
    uint32_t index = row_table_number(&all->threads, thread);
    sched_threads_note(&all->meant, sched->recording, sched->provider, tid, index);
    return index;
}

void
model_thread_process(struct model *model, const struct fxt_object *object)
{
    uint32_t pid = model_pid(model, object->recording, object->pid);
    sched_threads_note(&model->scheduling->meant, object->recording, object->provider, object->raw_tid,
                       get_of_process(model, object->raw_tid, pid));
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
    struct scheduled *thread = scheduled(model, index);
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
    struct scheduled *thread = scheduled(model, index);
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
    struct scheduled *thread = scheduled(model, get(model, sched, sched->out_tid));
    uint32_t utid = model_thread(model, thread->tid, thread->pid);
    uint32_t waker_state = by != MODEL_NONE ? scheduled(model, by)->state : thread->state;
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
        .recording = sched->recording,
        .provider = sched->provider,
        .out_pid = model_pid(model, sched->recording, sched->out_pid),
        .in_pid = model_pid(model, sched->recording, sched->in_pid),
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
named(const struct model *model, uint32_t index)
{
    return model->pids.list[scheduled(model, index)->pid].pid != 0;
}

void
model_scheduled(struct model *model, int64_t ts, const struct model_switch *sched)
{
    const int32_t idle = INT32_MIN;
    uint32_t out, in, waker = MODEL_NONE;
    switch (sched->type) { /* from here on both threads are known, also as wakers */
      case FXT_SCHED_LEGACY_SWITCH:
        out = get_switched(model, sched, sched->out_tid, sched->out_pid);
        in = get_switched(model, sched, sched->in_tid, sched->in_pid);
        if (sched->dropped) break;
        if (named(model, out) || sched->out != 0) switch_from(model, out, ts, sched->cpu, sched->out_state);
        if (named(model, in) || sched->in != 0) switch_to(model, in, ts, sched->cpu, sched->in);
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
    row_table_free(&model->scheduling->threads);
    sched_threads_free(&model->scheduling->meant);
    free(model->scheduling);
}
