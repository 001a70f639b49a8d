/* model.c - collects the records of a trace, sorts them by time, and builds the tables from
 * them. See model.h. */
#define _GNU_SOURCE /* qsort_r */
#include <stdlib.h>
#include <string.h>

#include "base/portable.h"
#include "base/xalloc.h"
#include "sql/model.h"
#include "fxt/counter_values.h"

/* An event or scheduling record that waits to be sorted. */
struct item {
    int64_t ts;
    uint64_t id; /* id of counter, async, flow; end of a complete duration */
    uint32_t type; /* enum fxt_event_type, or SCHED */
    uint32_t pid;  /* number of model_pid */
    uint32_t tid;
    uint32_t category;
    uint32_t name;
    uint32_t args; /* set; for SCHED: index of the record */
};

enum { SCHED = 100 };

/* The memory of an item in the tables, which is reserved while the file is read. Processes,
 * threads and tracks are not known then: an eighth of the memory is reserved for them. */
enum { PLAYED_BYTES = 96, REST_SHARE = 8 };

struct model_items {
    ARRAY_OF(struct item) events;
    ARRAY_OF(struct model_switch) scheds;
    size_t rest_bytes; /* reserved in the budget until model_finish */
};

static uint32_t
args_of_event(struct model *model, const struct fxt_event *event)
{
    struct model_arg args[FXT_ARGS_MAX];
    for (unsigned i = 0; i < event->arg_count; i++) model_arg_from(model, &event->args[i], &args[i]);
    return model_arg_set(model, MODEL_NONE, args, event->arg_count);
}

static void
push(struct model *model, struct item item)
{
    struct model_items *items = model->items;
    model_room(model, items->events.list, items->events.count, items->events.capacity);
    items->events.list[items->events.count++] = item;
    budget_charge(reader_budget(model->reader), PLAYED_BYTES);
}

/* Each value is an item of its own, with its bits in `id`. */
static void
add_counter(struct model *model, const struct fxt_event *event)
{
    struct item item = {.ts = event->ts_ns, .type = FXT_EVENT_COUNTER, .name = STRING_NONE,
                        .pid = model_pid(model, event->recording, event->pid)};
    push(model, item); /* makes the process known even without a value */
    for (unsigned i = 0; i < event->arg_count; i++) {
        double value;
        if (!counter_value(&event->args[i], &value)) continue;
        memcpy(&item.id, &value, sizeof value);
        item.name = counter_name(model->pool, event, &event->args[i]);
        push(model, item);
    }
}

static void
on_piece_end(void *context, const struct piece_end *end)
{
    push(context, (struct item){.ts = end->ts_ns, .type = FXT_EVENT_DURATION_END,
                                .pid = model_pid(context, end->recording, end->pid), .tid = end->tid,
                                .category = end->category, .name = end->name, .args = MODEL_NONE});
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct model *model = context;
    piece_ends_event(&model->piece_ends, event);
    if (event->type == FXT_EVENT_COUNTER) {
        add_counter(model, event);
        return;
    }
    push(model, (struct item){
                    .ts = event->ts_ns,
                    .id = event->type == FXT_EVENT_DURATION_COMPLETE ? (uint64_t)event->end_ns : event->id,
                    .type = event->type,
                    .pid = model_pid(model, event->recording, event->pid),
                    .tid = event->tid,
                    .category = pool_id(model->pool, event->category),
                    .name = pool_id(model->pool, event->name),
                    .args = args_of_event(model, event),
                });
}

static void
on_sched(void *context, const struct fxt_sched *sched)
{
    struct model *model = context;
    struct model_items *items = model->items;
    model_room(model, items->scheds.list, items->scheds.count, items->scheds.capacity);
    items->scheds.list[items->scheds.count] = model_switch_from(model, sched);
    push(model, (struct item){.ts = sched->ts_ns, .type = SCHED, .args = items->scheds.count++});
}

/* Names apply in the order of the file, before any event. */
static void
on_object(void *context, const struct fxt_object *object)
{
    struct model *model = context;
    uint32_t name = pool_id(model->pool, object->name);
    if (object->type == FXT_OBJECT_PROCESS) {
        uint32_t upid = model_process(model, model_pid(model, object->recording, object->pid));
        model->processes.list[upid].name = name;
        return;
    }
    model_thread_process(model, object);
    uint32_t utid = model_thread(model, object->tid, model_pid(model, object->recording, object->pid));
    model->threads.list[utid].name = name;
}

static void
on_blob(void *context, const struct fxt_blob *blob)
{
    model_samples_read(context, blob);
}

static void
play_counter(struct model *model, const struct item *item)
{
    uint32_t upid = model_process(model, item->pid);
    if (item->name == STRING_NONE) return;
    uint64_t key = (uint64_t)upid << 32 | item->name;
    uint32_t track = map_get(&model->track_of_counter, key);
    if (track == MAP_NONE) {
        track = model_track(model, MODEL_COUNTER_TRACK, item->name, upid);
        model_map_set(model, &model->track_of_counter, key, track);
    }
    model_room(model, model->counters.list, model->counters.count, model->counters.capacity);
    struct model_counter *counter = &model->counters.list[model->counters.count++];
    *counter = (struct model_counter){.ts = item->ts, .track = track};
    memcpy(&counter->value, &item->id, sizeof counter->value);
}

static uint32_t
thread_track_of(struct model *model, const struct item *item)
{
    return model_thread_track(model, model_thread(model, item->tid, item->pid));
}

static void
play(struct model *model, const struct item *item)
{
    uint32_t track;
    switch (item->type) {
      case FXT_EVENT_INSTANT:
        model_slice_begin(model, thread_track_of(model, item), item->ts, 0, item->category, item->name, item->args);
        break;
      case FXT_EVENT_COUNTER:
        play_counter(model, item);
        break;
      case FXT_EVENT_DURATION_BEGIN:
        model_slice_begin(model, thread_track_of(model, item), item->ts, -1, item->category, item->name, item->args);
        break;
      case FXT_EVENT_DURATION_END:
        model_slice_end(model, thread_track_of(model, item), item->ts, STRING_NONE, STRING_NONE, item->args);
        break;
      case FXT_EVENT_DURATION_COMPLETE:
        model_slice_begin(model, thread_track_of(model, item), item->ts, (int64_t)item->id - item->ts, item->category,
                          item->name, item->args);
        break;
      case FXT_EVENT_ASYNC_BEGIN:
      case FXT_EVENT_ASYNC_INSTANT:
      case FXT_EVENT_ASYNC_END:
        model_process(model, item->pid);
        track = model_async_track(model, (enum fxt_event_type)item->type, model->pids.list[item->pid].recording,
                                  item->name, item->id);
        if (item->type == FXT_EVENT_ASYNC_END) {
            model_slice_end(model, track, item->ts, item->category, item->name, item->args);
        }
        else {
            int64_t dur = item->type == FXT_EVENT_ASYNC_BEGIN ? -1 : 0;
            model_slice_begin(model, track, item->ts, dur, item->category, item->name, item->args);
        }
        break;
      case FXT_EVENT_FLOW_BEGIN:
      case FXT_EVENT_FLOW_STEP:
      case FXT_EVENT_FLOW_END:
        track = thread_track_of(model, item);
        model_flow(model, (enum fxt_event_type)item->type, track, item->pid, item->id);
        break;
      case SCHED:
        model_scheduled(model, item->ts, &model->items->scheds.list[item->args]);
        break;
    }
}

static int
by_time(const void *left, const void *right, void *context)
{
    const struct item *list = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (list[a].ts != list[b].ts) return list[a].ts < list[b].ts ? -1 : 1;
    return a < b ? -1 : 1; /* items of the same time stay in the order of the file */
}

/* Drops sets that no slice uses (such as an end's own arguments, once merged), and numbers the
 * others in the order of the slices. */
static void
drop_unused_sets(struct model *model)
{
    uint32_t *number_of = xrealloc(NULL, model->arg_sets.count, sizeof *number_of);
    for (uint32_t i = 0; i < model->arg_sets.count; i++) number_of[i] = MODEL_NONE;
    struct model used = {.arg_sets = {0}};
    for (uint32_t i = 0; i < model->slices.count; i++) {
        uint32_t *set = &model->slices.list[i].arg_set;
        if (*set == MODEL_NONE) continue;
        if (number_of[*set] == MODEL_NONE) {
            const struct model_arg *args;
            unsigned count = model_args_of(model, *set, &args);
            number_of[*set] = used.arg_sets.count;
            make_room(used.arg_sets.list, used.arg_sets.count, used.arg_sets.capacity);
            used.arg_sets.list[used.arg_sets.count++] = used.args.count;
            for (unsigned j = 0; j < count; j++) {
                make_room(used.args.list, used.args.count, used.args.capacity);
                used.args.list[used.args.count] = args[j];
                used.args.list[used.args.count++].set = number_of[*set];
            }
        }
        *set = number_of[*set];
    }
    free(number_of);
    free(model->args.list);
    free(model->arg_sets.list);
    memcpy(&model->args, &used.args, sizeof used.args);
    memcpy(&model->arg_sets, &used.arg_sets, sizeof used.arg_sets);
    hash_index_free(&model->set_index);
}

/* Releases the memory reserved for the tables. The arrays of the reading phase may have grown
 * past the limit. */
static void
release_reserve(struct model *model)
{
    struct budget *budget = reader_budget(model->reader);
    size_t reserve = (size_t)model->items->events.count * PLAYED_BYTES + model->items->rest_bytes;
    budget_give_back(budget, reserve);
    if (budget->limit_bytes < budget->used_bytes + reserve) budget->limit_bytes = budget->used_bytes + reserve;
    budget->exceeded = false;
}

uint32_t
model_finish(struct model *model)
{
    struct model_items *items = model->items;
    const struct budget *budget = reader_budget(model->reader);
    release_reserve(model);
    bool sorted = true;
    uint32_t played = 0;
    for (uint32_t i = 1; i < items->events.count && sorted; i++) {
        sorted = items->events.list[i - 1].ts <= items->events.list[i].ts;
    }
    uint32_t *order = sorted ? NULL : xrealloc(NULL, items->events.count, sizeof *order);
    if (order != NULL) {
        for (uint32_t i = 0; i < items->events.count; i++) order[i] = i;
        qsort_r(order, items->events.count, sizeof *order, by_time, items->events.list);
    }
    for (; played < items->events.count && !budget->exceeded; played++) {
        play(model, &items->events.list[order != NULL ? order[played] : played]);
    }
    free(order);
    uint32_t left_out = items->events.count - played;
    free(items->events.list);
    free(items->scheds.list);
    *items = (struct model_items){0};
    drop_unused_sets(model);
    model_samples_finish(model);
    return left_out;
}

struct model *
model_new(struct reader *reader)
{
    struct model *model = xcalloc(1, sizeof *model);
    model->reader = reader;
    model->pool = reader_pool(reader);
    model->items = xcalloc(1, sizeof *model->items);
    model->items->rest_bytes = reader_budget(reader)->limit_bytes / REST_SHARE;
    budget_charge(reader_budget(reader), model->items->rest_bytes);
    piece_ends_init(&model->piece_ends, model->pool, on_piece_end, model);
    model->samples = model_samples_new(reader);
    model_threads_begin(model);
    model_sched_begin(model);
    return model;
}

struct fxt_visitor
model_visitor(struct model *model)
{
    return (struct fxt_visitor){.context = model, .event = on_event, .object = on_object, .sched = on_sched,
                                .blob = on_blob};
}

static void
on_file_begin(void *context, const char *path)
{
    struct model *model = context;
    piece_ends_file_begin(&model->piece_ends, path);
}

/* Takes the reader's counts of faults. */
static void
on_file_end(void *context)
{
    struct model *model = context;
    const struct fxt_counts *counts = reader_counts(model->reader);
    for (unsigned i = 0; i < FXT_FAULT_CODES; i++) model->faults[i] += counts->faults[i];
}

const struct file_bounds model_file_bounds = {on_file_begin, on_file_end};

void
model_free(struct model *model)
{
    if (model == NULL) return;
    model_threads_end(model);
    model_async_end(model);
    model_flows_end(model);
    model_sched_end(model);
    piece_ends_free(&model->piece_ends);
    model_samples_free(model->samples);
    for (uint32_t i = 0; i < model->stacks.count; i++) free(model->stacks.list[i].slices);
    free(model->stacks.list);
    free(model->slices.list);
    free(model->args.list);
    free(model->arg_sets.list);
    free(model->pids.list);
    free(model->processes.list);
    free(model->threads.list);
    free(model->tracks.list);
    free(model->counters.list);
    free(model->flows.list);
    free(model->scheds.list);
    free(model->states.list);
    hash_index_free(&model->set_index);
    map_free(&model->track_of_thread);
    map_free(&model->track_of_counter);
    free(model->items->events.list);
    free(model->items->scheds.list);
    free(model->items);
    free(model);
}
