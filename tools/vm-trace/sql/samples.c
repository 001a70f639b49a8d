/* samples.c - see samples.h */
#define _GNU_SOURCE /* qsort_r */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/portable.h"
#include "base/xalloc.h"
#include "topics/trace_choice.h"
#include "sql/samples.h"
#include "fxt/sample_packets.h"

enum { ROWS_MAX = 1 << 26 };

struct read_sample {
    struct packet_sample sample; /* without its weights: */
    uint32_t first_weight;
    uint32_t pid; /* number of model_pid */
};

struct samples_reading {
    struct sample_packets *packets;
    uint32_t recording; /* of the current blob */
    ARRAY_OF(struct read_sample) samples;
    ARRAY_OF(struct packet_weight) weights;
    struct map context_rows; /* generation and number -> row */
};

/* --- reading ------------------------------------------------------------------------------------- */

static void
on_sample(void *context, const struct packet_sample *sample)
{
    struct model *model = context;
    struct samples_reading *reading = model->samples->reading;
    struct budget *budget = reader_budget(model->reader);
    const struct time_sample task = {.ts_ns = sample->ts_ns, .recording = reading->recording,
                                     .pid = sample->task.pid, .tid = sample->task.tid};
    if (model->filter != NULL && !trace_filter_sample(model->filter, &task)) return;
    uint32_t pid = model_pid(model, reading->recording, sample->task.pid);
    model_room(model, reading->samples.list, reading->samples.count, reading->samples.capacity);
    reading->samples.list[reading->samples.count++] =
        (struct read_sample){*sample, reading->weights.count, pid};
    for (uint32_t i = 0; i < sample->weight_count; i++) {
        model_room(model, reading->weights.list, reading->weights.count, reading->weights.capacity);
        reading->weights.list[reading->weights.count++] = sample->weights[i];
        budget_charge(budget, sizeof(struct sample_counter) + sizeof(struct model_counter));
    }
    budget_charge(budget, sizeof(struct sample_row));
}

void
model_samples_read(struct model *model, const struct fxt_blob *blob)
{
    model->samples->reading->recording = blob->recording;
    sample_packets_read(model->samples->reading->packets, blob, on_sample, model);
}

/* --- tables ---------------------------------------------------------------------------------------- */

static uint32_t
row_number(const struct row_table *table, const void *row)
{
    return row == NULL ? MODEL_NONE : row_table_number(table, row);
}

/* Perfetto shows a path with a slash before it. */
static uint32_t
mapping_name(struct model *model, uint32_t path)
{
    struct fxt_string text = pool_string(model->pool, path);
    char *name = xcalloc((size_t)text.len + 1, 1);
    name[0] = '/';
    memcpy(name + 1, text.ptr, text.len);
    uint32_t id = pool_intern(model->pool, name, (size_t)text.len + 1);
    free(name);
    return id;
}

static uint32_t
mapping_row(struct model *model, uint32_t generation, uint32_t path)
{
    struct samples *samples = model->samples;
    const struct sample_mapping key = path == SAMPLE_NONE
                                          ? (struct sample_mapping){generation, pool_intern(model->pool, "", 0)}
                                          : (struct sample_mapping){MODEL_NONE, mapping_name(model, path)};
    return row_number(&samples->mappings, row_table_get(&samples->mappings, &key.generation));
}

/* The row of a frame; MODEL_NONE if it is not known. */
static uint32_t
frame_row(struct model *model, uint32_t generation, uint32_t iid)
{
    struct samples *samples = model->samples;
    struct packet_frame frame;
    if (!sample_packets_frame(samples->reading->packets, generation, iid, &frame)) return MODEL_NONE;
    uint32_t mapping = mapping_row(model, generation, frame.mapping);
    if (mapping == MODEL_NONE) return MODEL_NONE;
    const struct sample_mapping *of = row_table_at(&samples->mappings, mapping);
    bool own = of->generation != MODEL_NONE; /* without a path */
    struct sample_frame key = {.mapping = mapping, .name = frame.name, .pc_low = (uint32_t)frame.pc,
                               .pc_high = (uint32_t)(frame.pc >> 32), .path = own ? frame.path : 0,
                               .line = own ? frame.line : 0};
    uint32_t before = samples->frames.count;
    struct sample_frame *row = row_table_get(&samples->frames, &key.mapping);
    if (row == NULL) return MODEL_NONE;
    if (samples->frames.count > before) {
        row->source_path = frame.path;
        row->source_line = frame.line;
    }
    row->kind = frame.kind;
    return row_number(&samples->frames, row);
}

/* The innermost row of a stack; MODEL_NONE if a part of it is not known. */
static uint32_t
callsite_row(struct model *model, uint32_t generation, uint32_t iid)
{
    struct samples *samples = model->samples;
    struct packet_stack stack;
    uint32_t parent = MODEL_NONE;
    if (!sample_packets_stack(samples->reading->packets, generation, iid, &stack)) return MODEL_NONE;
    for (uint32_t i = 0; i < stack.count; i++) {
        uint32_t frame = frame_row(model, generation, stack.frames[i]);
        if (frame == MODEL_NONE) return MODEL_NONE;
        const struct sample_callsite key = {parent, frame, 0};
        struct sample_callsite *row = row_table_get(&samples->callsites, &key.parent);
        if (row == NULL) return MODEL_NONE;
        row->depth = i;
        parent = row_number(&samples->callsites, row);
    }
    return parent;
}

/* The row of an async context, after those of its parents; MODEL_NONE if it is not known. Perfetto keeps
 * those of each generation apart. */
static uint32_t
context_row(struct model *model, uint32_t generation, uint32_t iid)
{
    enum { DEPTH_MAX = 64 };
    struct samples *samples = model->samples;
    struct map *rows = &samples->reading->context_rows;
    struct packet_context contexts[DEPTH_MAX];
    uint32_t iids[DEPTH_MAX] = {0}, depth = 0, parent = MODEL_NONE;
    for (; depth < DEPTH_MAX && sample_packets_context(samples->reading->packets, generation, iid, &contexts[depth]);
         iid = contexts[depth++].parent) {
        iids[depth] = iid;
        parent = map_get(rows, (uint64_t)generation << 32 | iid);
        if (parent != MAP_NONE) break;
    }
    while (depth-- > 0) {
        model_room(model, samples->contexts.list, samples->contexts.count, samples->contexts.capacity);
        samples->contexts.list[samples->contexts.count] =
            (struct sample_context){contexts[depth].name, contexts[depth].kind, parent};
        parent = samples->contexts.count++;
        model_map_set(model, rows, (uint64_t)generation << 32 | iids[depth], parent);
    }
    return parent;
}

static uint32_t
task_row(struct model *model, const struct packet_sample *sample, uint32_t pid)
{
    struct samples *samples = model->samples;
    struct packet_task task = sample->task;
    if (task.tid == 0) return MODEL_NONE;
    uint32_t utid = task.pid != 0 ? model_thread(model, task.tid, pid)
                                  : model_any_thread(model, model->pids.list[pid].recording, task.tid);
    const struct sample_task key = {.utid = utid, .context = context_row(model, sample->generation, task.context)};
    struct sample_task *row = row_table_get(&samples->tasks, &key.utid);
    if (row != NULL) row->upid = model->threads.list[utid].upid;
    return row_number(&samples->tasks, row);
}

/* `row` is the sample's, or MODEL_NONE. */
static void
add_counter(struct model *model, uint32_t session, const struct packet_sample *sample,
            const struct packet_weight *weight, uint32_t row)
{
    struct samples *samples = model->samples;
    const struct packet_counter counter = sample_packets_counter(samples->reading->packets, weight->counter);
    const struct sample_counter_track key = {.session = session, .source = sample->source, .name = counter.name};
    uint32_t before = samples->tracks.count;
    struct sample_counter_track *track = row_table_get(&samples->tracks, &key.session);
    if (track == NULL) return;
    if (samples->tracks.count > before) {
        track->unit = counter.unit;
        track->primary = counter.primary;
        track->track = model_track(model, MODEL_SAMPLE_TRACK, counter.name, row_number(&samples->tracks, track));
    }
    model_room(model, model->counters.list, model->counters.count, model->counters.capacity);
    model_room(model, samples->counters.list, samples->counters.count, samples->counters.capacity);
    if (row != MODEL_NONE)
        samples->counters.list[samples->counters.count++] = (struct sample_counter){model->counters.count, row};
    model->counters.list[model->counters.count++] =
        (struct model_counter){.ts = sample->ts_ns, .value = (double)weight->value, .track = track->track};
}

static void
add_sample(struct model *model, const struct read_sample *read)
{
    struct samples *samples = model->samples;
    const struct packet_sample *sample = &read->sample;
    uint32_t callsite = callsite_row(model, sample->generation, sample->stack);
    uint32_t task = task_row(model, sample, read->pid), before = samples->sessions.count;
    struct sample_session *session = row_table_get(&samples->sessions, &sample->sequence);
    if (session == NULL) return;
    if (samples->sessions.count > before) {
        session->source = sample->source;
        session->unit = sample->unit;
    }
    uint32_t number = row_number(&samples->sessions, session), row = MODEL_NONE;
    if (callsite != MODEL_NONE) { /* a sample without a known stack is only in the counters */
        row = samples->rows.count;
        model_room(model, samples->rows.list, samples->rows.count, samples->rows.capacity);
        samples->rows.list[samples->rows.count++] = (struct sample_row){
            .ts = sample->ts_ns, .source = sample->source, .task = task, .callsite = callsite, .session = number};
    }
    for (uint32_t i = 0; i < sample->weight_count; i++)
        add_counter(model, number, sample, &samples->reading->weights.list[read->first_weight + i], row);
}

static int
by_time(const void *left, const void *right, void *context)
{
    const struct read_sample *list = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int64_t a_ns = list[a].sample.ts_ns, b_ns = list[b].sample.ts_ns;
    if (a_ns != b_ns) return a_ns < b_ns ? -1 : 1;
    return a < b ? -1 : 1;
}

static void
free_reading(struct samples_reading *reading)
{
    if (reading == NULL) return;
    sample_packets_free(reading->packets);
    map_free(&reading->context_rows);
    free(reading->samples.list);
    free(reading->weights.list);
    free(reading);
}

void
model_samples_finish(struct model *model)
{
    struct samples_reading *reading = model->samples->reading;
    uint32_t count = reading->samples.count;
    uint32_t *order = xrealloc(NULL, count + 1, sizeof *order);
    for (uint32_t i = 0; i < count; i++) order[i] = i;
    qsort_r(order, count, sizeof *order, by_time, reading->samples.list);
    for (uint32_t i = 0; i < count; i++) add_sample(model, &reading->samples.list[order[i]]);
    free(order);
    free_reading(reading);
    model->samples->reading = NULL;
}

struct samples *
model_samples_new(struct reader *reader)
{
    struct samples *samples = xcalloc(1, sizeof *samples);
    samples->reading = xcalloc(1, sizeof *samples->reading);
    samples->reading->packets = sample_packets_new(reader, SAMPLE_NONE);
    row_table_init(&samples->sessions, sizeof(struct sample_session), 1, ROWS_MAX);
    row_table_init(&samples->tasks, sizeof(struct sample_task), 2, ROWS_MAX);
    row_table_init(&samples->mappings, sizeof(struct sample_mapping), 2, ROWS_MAX);
    row_table_init(&samples->frames, sizeof(struct sample_frame), 6, ROWS_MAX);
    row_table_init(&samples->callsites, sizeof(struct sample_callsite), 2, ROWS_MAX);
    row_table_init(&samples->tracks, sizeof(struct sample_counter_track), 3, ROWS_MAX);
    return samples;
}

void
model_samples_free(struct samples *samples)
{
    free_reading(samples->reading);
    free(samples->rows.list);
    free(samples->contexts.list);
    free(samples->counters.list);
    row_table_free(&samples->sessions);
    row_table_free(&samples->tasks);
    row_table_free(&samples->mappings);
    row_table_free(&samples->frames);
    row_table_free(&samples->callsites);
    row_table_free(&samples->tracks);
    free(samples);
}
