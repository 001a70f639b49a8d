/* samples.c - see samples.h */
#define _GNU_SOURCE /* qsort_r */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "db/samples.h"
#include "fxt/packet.h"

enum { ROWS_MAX = 1 << 26 };

/* Fields of Perfetto's messages. */
enum { DEFAULTS_STACK_SAMPLE = 100, DEFAULTS_SOURCE = 1, DEFAULTS_PRIMARY = 2, DEFAULTS_FOLLOWER = 3 };
enum { COUNTER_NAME = 2, COUNTER_UNIT = 3, COUNTER_UNIT_TEXT = 4 };
enum { SAMPLE_TASK = 1, SAMPLE_TASK_IID = 2, SAMPLE_STACK_IID = 6, SAMPLE_WEIGHT = 11, SAMPLE_FOLLOWERS = 14 };
enum { TASK_PID = 2, TASK_TID = 3 };
enum { FRAME_NAME = 2, FRAME_MAPPING, FRAME_PC, FRAME_PATH, FRAME_LINE, FRAME_KIND, FRAME_KIND_TEXT };
enum { STACK_FRAME = 2, MAPPING_PATH = 7, ENTRY_IID = 1, STRING_TEXT = 2 };

/* What packets refer to by number: tables of InternedData. */
enum table { NAMES, FRAMES, STACKS, MAPPING_PATHS, SOURCE_PATHS, MAPPINGS, TASKS, TABLES };
static const uint32_t table_fields[TABLES] = {
    [NAMES] = 5, [FRAMES] = 6, [STACKS] = 7, [MAPPING_PATHS] = 17, [SOURCE_PATHS] = 18, [MAPPINGS] = 19, [TASKS] = 48};

enum { COUNTERS_MAX = 8 };

struct counter_kind {
    uint32_t name; /* strings of the pool, or MODEL_NONE */
    uint32_t unit;
};

/* The first counter is the primary one. */
struct defaults {
    uint32_t source; /* or MODEL_NONE */
    unsigned counters;
    struct counter_kind kinds[COUNTERS_MAX];
};

struct sequence {
    uint32_t id;
    uint32_t generation; /* 0: nothing can be referred to */
    uint32_t defaults;   /* or MODEL_NONE */
};

struct frame {
    uint32_t name, mapping, path; /* numbers of its generation; 0: none */
    uint32_t line;                /* or MODEL_NONE */
    uint32_t kind;                /* string, or MODEL_NONE */
    uint64_t pc;
};

struct stack {
    uint32_t first, count; /* of frame_ids */
};

struct task {
    uint32_t pid, tid;
};

struct sample {
    int64_t ts;
    uint32_t sequence; /* index */
    uint32_t generation;
    uint32_t defaults;
    uint32_t stack;       /* number of its generation */
    struct task task;     /* tid 0: none, or: */
    uint32_t task_iid;
    uint32_t first_weight; /* of weights, one for each counter */
    uint32_t weight_count;
    bool weighted;        /* the first of these is the primary one */
};

struct samples_reading {
    struct map sequence_of_id;
    struct map tables[TABLES]; /* generation and number -> string, or index into the arrays below */
    uint32_t generations;
    MODEL_ARRAY(struct sequence) sequences;
    MODEL_ARRAY(struct defaults) defaults;
    MODEL_ARRAY(struct frame) frames;
    MODEL_ARRAY(uint32_t) frame_ids;
    MODEL_ARRAY(struct stack) stacks;
    MODEL_ARRAY(struct task) tasks;
    MODEL_ARRAY(struct sample) samples;
    MODEL_ARRAY(uint64_t) weights;
};

/* --- reading ------------------------------------------------------------------------------------- */

static uint32_t
text_in(struct model *model, struct proto message)
{
    return pool_intern(model->pool, (const char *)message.at, (size_t)(message.end - message.at));
}

static uint32_t
number_in(const struct proto_field *field)
{
    return field->type == PROTO_VARINT && field->value <= UINT32_MAX ? (uint32_t)field->value : 0;
}

static uint32_t
unit_name(struct model *model, uint64_t unit)
{
    static const char *const names[] = {NULL, "ns", "cycles", "instructions", "bytes", "page-faults", "cache-misses",
                                        "cache-references", "branch-misses", "count"};
    if (unit == 0 || unit >= sizeof names / sizeof *names) return MODEL_NONE;
    return pool_intern(model->pool, names[unit], strlen(names[unit]));
}

static struct counter_kind
counter_kind(struct model *model, struct proto message)
{
    struct counter_kind kind = {MODEL_NONE, MODEL_NONE};
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number == COUNTER_NAME && field.type == PROTO_BYTES) kind.name = text_in(model, field.message);
        if (field.number == COUNTER_UNIT && field.type == PROTO_VARINT) kind.unit = unit_name(model, field.value);
        if (field.number == COUNTER_UNIT_TEXT && field.type == PROTO_BYTES) kind.unit = text_in(model, field.message);
    }
    return kind;
}

static void
read_defaults(struct model *model, struct sequence *sequence, struct proto message)
{
    struct samples_reading *reading = model->samples->reading;
    struct defaults defaults = {.source = MODEL_NONE, .counters = 1, .kinds = {{MODEL_NONE, MODEL_NONE}}};
    bool any = false;
    for (struct proto_field outer; proto_next(&message, &outer);) {
        if (outer.number != DEFAULTS_STACK_SAMPLE || outer.type != PROTO_BYTES) continue;
        any = true;
        for (struct proto_field field; proto_next(&outer.message, &field);) {
            if (field.type != PROTO_BYTES) continue;
            if (field.number == DEFAULTS_SOURCE) defaults.source = text_in(model, field.message);
            if (field.number == DEFAULTS_PRIMARY) defaults.kinds[0] = counter_kind(model, field.message);
            if (field.number == DEFAULTS_FOLLOWER && defaults.counters < COUNTERS_MAX)
                defaults.kinds[defaults.counters++] = counter_kind(model, field.message);
        }
    }
    sequence->defaults = MODEL_NONE;
    if (!any) return;
    model_room(model, reading->defaults.list, reading->defaults.count, reading->defaults.capacity);
    sequence->defaults = reading->defaults.count;
    reading->defaults.list[reading->defaults.count++] = defaults;
}

static uint32_t
read_frame(struct model *model, struct proto message)
{
    static const char *const kinds[] = {NULL, "native", "kernel", "interpreted", "jit", "gc", "runtime"};
    struct samples_reading *reading = model->samples->reading;
    struct frame frame = {.line = MODEL_NONE, .kind = MODEL_NONE};
    for (struct proto_field field; proto_next(&message, &field);) {
        switch (field.number) {
          case FRAME_NAME: frame.name = number_in(&field); break;
          case FRAME_MAPPING: frame.mapping = number_in(&field); break;
          case FRAME_PC: frame.pc = field.value; break;
          case FRAME_PATH: frame.path = number_in(&field); break;
          case FRAME_LINE: frame.line = number_in(&field); break;
          case FRAME_KIND:
              if (field.value > 0 && field.value < sizeof kinds / sizeof *kinds)
                  frame.kind = pool_intern(model->pool, kinds[field.value], strlen(kinds[field.value]));
              break;
          case FRAME_KIND_TEXT:
              if (field.type == PROTO_BYTES) frame.kind = text_in(model, field.message);
              break;
        }
    }
    model_room(model, reading->frames.list, reading->frames.count, reading->frames.capacity);
    reading->frames.list[reading->frames.count] = frame;
    return reading->frames.count++;
}

static uint32_t
read_stack(struct model *model, struct proto message)
{
    struct samples_reading *reading = model->samples->reading;
    struct stack stack = {.first = reading->frame_ids.count};
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number != STACK_FRAME || field.type != PROTO_VARINT) continue;
        model_room(model, reading->frame_ids.list, reading->frame_ids.count, reading->frame_ids.capacity);
        reading->frame_ids.list[reading->frame_ids.count++] = number_in(&field);
        budget_charge(reader_budget(model->reader), sizeof(struct sample_callsite) + sizeof(uint64_t));
    }
    stack.count = reading->frame_ids.count - stack.first;
    model_room(model, reading->stacks.list, reading->stacks.count, reading->stacks.capacity);
    reading->stacks.list[reading->stacks.count] = stack;
    return reading->stacks.count++;
}

static struct task
task_in(struct proto message)
{
    struct task task = {0, 0};
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number == TASK_PID) task.pid = number_in(&field);
        if (field.number == TASK_TID) task.tid = number_in(&field);
    }
    return task;
}

static uint32_t
read_task(struct model *model, struct proto message)
{
    struct samples_reading *reading = model->samples->reading;
    model_room(model, reading->tasks.list, reading->tasks.count, reading->tasks.capacity);
    reading->tasks.list[reading->tasks.count] = task_in(message);
    return reading->tasks.count++;
}

/* The bytes of the field; empty if there is none. */
static struct proto
bytes_of(struct proto message, uint32_t number)
{
    struct proto found = {0};
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number == number && field.type == PROTO_BYTES) found = field.message;
    }
    return found;
}

static uint32_t
number_of(struct proto message, uint32_t number)
{
    uint32_t found = 0;
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number == number) found = number_in(&field);
    }
    return found;
}

static uint64_t
key_of(uint32_t generation, uint32_t iid)
{
    return (uint64_t)generation << 32 | iid;
}

/* An entry keeps its first meaning. */
static void
read_entry(struct model *model, uint32_t generation, enum table table, struct proto entry)
{
    struct map *map = &model->samples->reading->tables[table];
    uint32_t iid = number_of(entry, ENTRY_IID), value;
    if (iid == 0 || map_get(map, key_of(generation, iid)) != MAP_NONE) return;
    switch (table) {
      case FRAMES: value = read_frame(model, entry); break;
      case STACKS: value = read_stack(model, entry); break;
      case TASKS: value = read_task(model, entry); break;
      case MAPPINGS: value = number_of(entry, MAPPING_PATH); break;
      default: value = text_in(model, bytes_of(entry, STRING_TEXT)); break;
    }
    model_map_set(model, map, key_of(generation, iid), value);
}

static void
read_interned(struct model *model, uint32_t generation, struct proto message)
{
    for (struct proto_field field; proto_next(&message, &field);) {
        for (unsigned table = 0; table < TABLES && field.type == PROTO_BYTES; table++) {
            if (field.number == table_fields[table])
                read_entry(model, generation, (enum table)table, field.message);
        }
    }
}

static void
add_weight(struct model *model, struct sample *sample, uint64_t weight)
{
    struct samples_reading *reading = model->samples->reading;
    model_room(model, reading->weights.list, reading->weights.count, reading->weights.capacity);
    reading->weights.list[reading->weights.count++] = weight;
    sample->weight_count++;
    budget_charge(reader_budget(model->reader), sizeof(struct sample_counter) + sizeof(struct model_counter));
}

static void
read_sample(struct model *model, const struct sequence *sequence, int64_t ts, struct proto message)
{
    struct samples_reading *reading = model->samples->reading;
    struct sample sample = {.ts = ts, .sequence = (uint32_t)(sequence - reading->sequences.list),
                            .generation = sequence->generation, .defaults = sequence->defaults,
                            .first_weight = reading->weights.count};
    struct proto followers = {0};
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number == SAMPLE_TASK && field.type == PROTO_BYTES) sample.task = task_in(field.message);
        if (field.number == SAMPLE_TASK_IID) sample.task_iid = number_in(&field);
        if (field.number == SAMPLE_STACK_IID) sample.stack = number_in(&field);
        if (field.number == SAMPLE_FOLLOWERS && field.type == PROTO_BYTES) followers = field.message;
        if (field.number == SAMPLE_WEIGHT && field.type == PROTO_VARINT && !sample.weighted) {
            add_weight(model, &sample, field.value);
            sample.weighted = true;
        }
    }
    if (sample.stack == 0) return;
    for (uint64_t weight; followers.at < followers.end && proto_varint(&followers, &weight);)
        add_weight(model, &sample, weight);
    model_room(model, reading->samples.list, reading->samples.count, reading->samples.capacity);
    reading->samples.list[reading->samples.count++] = sample;
    budget_charge(reader_budget(model->reader), sizeof(struct sample_row));
}

static struct sequence *
sequence_of(struct model *model, uint32_t id)
{
    struct samples_reading *reading = model->samples->reading;
    uint32_t index = map_get(&reading->sequence_of_id, id);
    if (index == MAP_NONE) {
        model_room(model, reading->sequences.list, reading->sequences.count, reading->sequences.capacity);
        index = reading->sequences.count++;
        reading->sequences.list[index] = (struct sequence){.id = id, .defaults = MODEL_NONE};
        model_map_set(model, &reading->sequence_of_id, id, index);
    }
    return &reading->sequences.list[index];
}

static void
read_packet(struct model *model, struct proto packet)
{
    struct samples_reading *reading = model->samples->reading;
    int64_t ts = -1;
    uint32_t id = 0, flags = 0;
    struct proto defaults = {0}, interned = {0}, sample = {0};
    for (struct proto_field field; proto_next(&packet, &field);) {
        if (field.number == PACKET_TIMESTAMP) take_packet_time(&field, &ts);
        if (field.number == PACKET_SEQUENCE) id = number_in(&field);
        if (field.number == PACKET_SEQUENCE_FLAGS) flags = number_in(&field);
        if (field.type != PROTO_BYTES) continue;
        if (field.number == PACKET_DEFAULTS) defaults = field.message;
        if (field.number == PACKET_INTERNED_DATA) interned = field.message;
        if (field.number == PACKET_STACK_SAMPLE) sample = field.message;
    }
    if (id == 0) return;
    struct sequence *sequence = sequence_of(model, id);
    if (flags & SEQUENCE_STATE_CLEARED || (sequence->generation == 0 && !(flags & SEQUENCE_NEEDS_STATE))) {
        sequence->generation = ++reading->generations;
        sequence->defaults = MODEL_NONE;
    }
    if (sequence->generation == 0) return; /* what it refers to was lost */
    if (defaults.at != NULL) read_defaults(model, sequence, defaults);
    if (interned.at != NULL) read_interned(model, sequence->generation, interned);
    if (sample.at != NULL && ts >= 0) read_sample(model, sequence, ts, sample);
}

void
model_samples_read(struct model *model, const struct fxt_blob *blob)
{
    struct proto bytes = proto_of(blob->bytes, blob->len);
    for (struct proto_field field; proto_next(&bytes, &field);) read_packet(model, field.message);
}

/* --- tables ---------------------------------------------------------------------------------------- */

static uint32_t
row_number(const struct row_table *table, const void *row)
{
    return row == NULL ? MODEL_NONE : row_table_number(table, row);
}

static uint32_t
interned(const struct samples *samples, enum table table, uint32_t generation, uint32_t iid)
{
    return iid == 0 ? MAP_NONE : map_get(&samples->reading->tables[table], key_of(generation, iid));
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
mapping_row(struct model *model, uint32_t generation, uint32_t iid)
{
    struct samples *samples = model->samples;
    uint32_t path_iid = interned(samples, MAPPINGS, generation, iid);
    uint32_t path = path_iid == MAP_NONE ? MAP_NONE : interned(samples, MAPPING_PATHS, generation, path_iid);
    const struct sample_mapping key = path == MAP_NONE
                                          ? (struct sample_mapping){generation, pool_intern(model->pool, "", 0)}
                                          : (struct sample_mapping){MODEL_NONE, mapping_name(model, path)};
    return row_number(&samples->mappings, row_table_get(&samples->mappings, &key.generation));
}

/* The row of a frame; MODEL_NONE if it is not known. */
static uint32_t
frame_row(struct model *model, uint32_t generation, uint32_t iid)
{
    struct samples *samples = model->samples;
    uint32_t index = interned(samples, FRAMES, generation, iid);
    if (index == MAP_NONE) return MODEL_NONE;
    const struct frame *frame = &samples->reading->frames.list[index];
    uint32_t name = interned(samples, NAMES, generation, frame->name);
    uint32_t path = interned(samples, SOURCE_PATHS, generation, frame->path);
    uint32_t mapping = mapping_row(model, generation, frame->mapping);
    if (frame->name == 0) name = pool_intern(model->pool, "", 0);
    if (name == MAP_NONE || mapping == MODEL_NONE || (frame->path != 0 && path == MAP_NONE)) return MODEL_NONE;
    const struct sample_mapping *of = row_table_at(&samples->mappings, mapping);
    bool own = of->generation != MODEL_NONE; /* without a path */
    struct sample_frame key = {.mapping = mapping, .name = name, .pc_low = (uint32_t)frame->pc,
                               .pc_high = (uint32_t)(frame->pc >> 32), .path = own ? path : 0,
                               .line = own ? frame->line : 0};
    uint32_t before = samples->frames.count;
    struct sample_frame *row = row_table_get(&samples->frames, &key.mapping);
    if (row == NULL) return MODEL_NONE;
    if (samples->frames.count > before) {
        row->source_path = path;
        row->source_line = frame->line;
    }
    row->kind = frame->kind;
    return row_number(&samples->frames, row);
}

/* The innermost row of a stack; MODEL_NONE if a part of it is not known. */
static uint32_t
callsite_row(struct model *model, uint32_t generation, uint32_t iid)
{
    struct samples *samples = model->samples;
    uint32_t index = interned(samples, STACKS, generation, iid), parent = MODEL_NONE;
    if (index == MAP_NONE) return MODEL_NONE;
    const struct stack *stack = &samples->reading->stacks.list[index];
    for (uint32_t i = 0; i < stack->count; i++) {
        uint32_t frame = frame_row(model, generation, samples->reading->frame_ids.list[stack->first + i]);
        if (frame == MODEL_NONE) return MODEL_NONE;
        const struct sample_callsite key = {parent, frame, 0};
        struct sample_callsite *row = row_table_get(&samples->callsites, &key.parent);
        if (row == NULL) return MODEL_NONE;
        row->depth = i;
        parent = row_number(&samples->callsites, row);
    }
    return parent;
}

static uint32_t
task_row(struct model *model, const struct sample *sample)
{
    struct samples *samples = model->samples;
    struct task task = sample->task;
    uint32_t index = interned(samples, TASKS, sample->generation, sample->task_iid);
    if (task.tid == 0 && index != MAP_NONE) task = samples->reading->tasks.list[index];
    if (task.tid == 0) return MODEL_NONE;
    uint32_t utid = task.pid != 0 ? model_thread(model, task.tid, task.pid) : model_any_thread(model, task.tid);
    struct sample_task *row = row_table_get(&samples->tasks, &utid);
    if (row != NULL) row->upid = model->threads.list[utid].upid;
    return row_number(&samples->tasks, row);
}

/* `row` is the sample's, or MODEL_NONE. */
static void
add_counter(struct model *model, uint32_t session, const struct defaults *defaults, unsigned index, int64_t ts,
            uint64_t weight, uint32_t row)
{
    struct samples *samples = model->samples;
    const struct counter_kind *kind = &defaults->kinds[index];
    const struct sample_counter_track key = {.session = session, .source = defaults->source, .name = kind->name};
    uint32_t before = samples->tracks.count;
    struct sample_counter_track *track = row_table_get(&samples->tracks, &key.session);
    if (track == NULL) return;
    if (samples->tracks.count > before) {
        track->unit = kind->unit;
        track->primary = index == 0;
        track->track = model_track(model, MODEL_SAMPLE_TRACK, kind->name, row_number(&samples->tracks, track));
    }
    model_room(model, model->counters.list, model->counters.count, model->counters.capacity);
    model_room(model, samples->counters.list, samples->counters.count, samples->counters.capacity);
    if (row != MODEL_NONE)
        samples->counters.list[samples->counters.count++] = (struct sample_counter){model->counters.count, row};
    model->counters.list[model->counters.count++] =
        (struct model_counter){.ts = ts, .value = (double)weight, .track = track->track};
}

static void
add_sample(struct model *model, const struct sample *sample)
{
    struct samples *samples = model->samples;
    struct samples_reading *reading = samples->reading;
    static const struct defaults none = {.source = MODEL_NONE};
    const struct defaults *defaults =
        sample->defaults == MODEL_NONE ? &none : &reading->defaults.list[sample->defaults];
    uint32_t callsite = callsite_row(model, sample->generation, sample->stack);
    uint32_t task = task_row(model, sample), before = samples->sessions.count;
    struct sample_session *session =
        row_table_get(&samples->sessions, &reading->sequences.list[sample->sequence].id);
    if (session == NULL) return;
    if (samples->sessions.count > before) {
        session->source = defaults->source;
        session->unit = defaults->counters > 0 ? defaults->kinds[0].unit : MODEL_NONE;
    }
    uint32_t number = row_number(&samples->sessions, session), row = MODEL_NONE;
    if (callsite != MODEL_NONE) { /* a sample without a known stack is only in the counters */
        row = samples->rows.count;
        model_room(model, samples->rows.list, samples->rows.count, samples->rows.capacity);
        samples->rows.list[samples->rows.count++] = (struct sample_row){
            .ts = sample->ts, .source = defaults->source, .task = task, .callsite = callsite, .session = number};
    }
    unsigned first = sample->weighted ? 0 : 1;
    for (uint32_t i = 0; i < sample->weight_count && first + i < defaults->counters; i++)
        add_counter(model, number, defaults, first + i, sample->ts, reading->weights.list[sample->first_weight + i],
                    row);
}

static int
by_time(const void *left, const void *right, void *context)
{
    const struct sample *list = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (list[a].ts != list[b].ts) return list[a].ts < list[b].ts ? -1 : 1;
    return a < b ? -1 : 1;
}

static void
free_reading(struct samples_reading *reading)
{
    if (reading == NULL) return;
    map_free(&reading->sequence_of_id);
    for (unsigned i = 0; i < TABLES; i++) map_free(&reading->tables[i]);
    free(reading->sequences.list);
    free(reading->defaults.list);
    free(reading->frames.list);
    free(reading->frame_ids.list);
    free(reading->stacks.list);
    free(reading->tasks.list);
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
model_samples_new(void)
{
    struct samples *samples = xcalloc(1, sizeof *samples);
    samples->reading = xcalloc(1, sizeof *samples->reading);
    row_table_init(&samples->sessions, sizeof(struct sample_session), 1, ROWS_MAX);
    row_table_init(&samples->tasks, sizeof(struct sample_task), 1, ROWS_MAX);
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
    free(samples->counters.list);
    row_table_free(&samples->sessions);
    row_table_free(&samples->tasks);
    row_table_free(&samples->mappings);
    row_table_free(&samples->frames);
    row_table_free(&samples->callsites);
    row_table_free(&samples->tracks);
    free(samples);
}
