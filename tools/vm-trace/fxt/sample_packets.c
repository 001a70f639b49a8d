/* sample_packets.c - see sample_packets.h */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "fxt/packet.h"
#include "fxt/sample_packets.h"

/* Fields of Perfetto's messages. */
enum { DEFAULTS_STACK_SAMPLE = 100, DEFAULTS_SOURCE = 1, DEFAULTS_PRIMARY = 2, DEFAULTS_FOLLOWER = 3 };
enum { COUNTER_NAME = 2, COUNTER_UNIT = 3, COUNTER_UNIT_TEXT = 4 };
enum {
    SAMPLE_TASK = 1, SAMPLE_TASK_IID = 2, SAMPLE_STACK_IID = 6, SAMPLE_WEIGHT = 11, SAMPLE_FOLLOWER_IIDS = 13,
    SAMPLE_FOLLOWERS = 14
};
enum { TASK_PID = 2, TASK_TID = 3, TASK_ASYNC_ID = 4 };
enum { CONTEXT_NAME = 2, CONTEXT_KIND = 3, CONTEXT_PARENT = 4 };
enum { FRAME_NAME = 2, FRAME_MAPPING, FRAME_PC, FRAME_PATH, FRAME_LINE, FRAME_KIND, FRAME_KIND_TEXT };
enum { STACK_FRAME = 2, MAPPING_PATH = 7, ENTRY_IID = 1, INTERNED_TEXT = 2 };

/* What packets refer to by number: tables of InternedData. */
enum table { NAMES, FRAMES, STACKS, MAPPING_PATHS, SOURCE_PATHS, MAPPINGS, TASKS, COUNTERS, CONTEXTS, TABLES };
static const uint32_t table_fields[TABLES] = {
    [NAMES] = 5, [FRAMES] = 6, [STACKS] = 7, [MAPPING_PATHS] = 17, [SOURCE_PATHS] = 18, [MAPPINGS] = 19,
    [TASKS] = 48, [COUNTERS] = 50, [CONTEXTS] = 51};

enum { WEIGHTS_MAX = 8 };

/* Of a sequence, for samples that do not say it themselves. */
struct defaults {
    uint32_t source;                 /* or SAMPLE_NONE */
    uint32_t primary;                /* counter, or SAMPLE_NONE */
    uint32_t followers[WEIGHTS_MAX]; /* counters */
    unsigned follower_count;
};

struct sequence {
    uint32_t id;
    uint32_t generation; /* 0: nothing can be referred to */
    struct defaults defaults;
};

struct frame {
    uint32_t name, mapping, path; /* numbers of its generation; 0: none */
    uint32_t line;                /* or SAMPLE_NONE */
    uint32_t kind;                /* string, or SAMPLE_NONE */
    uint64_t pc;
};

struct stack {
    uint32_t first, count; /* of frame_ids */
};

struct sample_packets {
    struct reader *reader;
    struct pool *pool;
    uint32_t source; /* only samples of this one are read; SAMPLE_NONE: all */
    struct map sequence_of_id;
    struct map tables[TABLES]; /* generation and number -> string, number, or index into a list below */
    uint32_t generations;
    ARRAY_OF(struct sequence) sequences;
    ARRAY_OF(struct packet_counter) counters;
    ARRAY_OF(struct packet_context) contexts;
    ARRAY_OF(struct frame) frames;
    ARRAY_OF(uint32_t) frame_ids;
    ARRAY_OF(struct stack) stacks;
    ARRAY_OF(struct packet_task) tasks;
    struct packet_weight weights[WEIGHTS_MAX]; /* of the sample that is read */
};

#define append(packets, array, item) \
    do { \
        make_room_within(reader_budget((packets)->reader), (array)->list, (array)->count, (array)->capacity); \
        (array)->list[(array)->count++] = (item); \
    } while (0)

static uint32_t
text_in(struct sample_packets *packets, struct proto message)
{
    return pool_intern(packets->pool, (const char *)message.at, (size_t)(message.end - message.at));
}

static uint32_t
number_in(const struct proto_field *field)
{
    return field->type == PROTO_VARINT && field->value <= UINT32_MAX ? (uint32_t)field->value : 0;
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

static uint32_t
interned(const struct sample_packets *packets, enum table table, uint32_t generation, uint32_t iid)
{
    return iid == 0 ? MAP_NONE : map_get(&packets->tables[table], key_of(generation, iid));
}

/* --- definitions ---------------------------------------------------------------------------------- */

static uint32_t
unit_name(struct sample_packets *packets, uint64_t unit)
{
    static const char *const names[] = {NULL, "ns", "cycles", "instructions", "bytes", "page-faults", "cache-misses",
                                        "cache-references", "branch-misses", "count"};
    if (unit == 0 || unit >= sizeof names / sizeof *names) return SAMPLE_NONE;
    return pool_intern(packets->pool, names[unit], strlen(names[unit]));
}

static uint32_t
read_counter(struct sample_packets *packets, struct proto message, bool primary)
{
    struct packet_counter counter = {SAMPLE_NONE, SAMPLE_NONE, primary};
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number == COUNTER_NAME && field.type == PROTO_BYTES) counter.name = text_in(packets, field.message);
        if (field.number == COUNTER_UNIT && field.type == PROTO_VARINT) counter.unit = unit_name(packets, field.value);
        if (field.number == COUNTER_UNIT_TEXT && field.type == PROTO_BYTES)
            counter.unit = text_in(packets, field.message);
    }
    append(packets, &packets->counters, counter);
    return packets->counters.count - 1;
}

static const struct defaults no_defaults = {.source = SAMPLE_NONE, .primary = SAMPLE_NONE};

static void
read_defaults(struct sample_packets *packets, struct defaults *defaults, struct proto message)
{
    *defaults = no_defaults;
    struct proto sample = bytes_of(message, DEFAULTS_STACK_SAMPLE);
    for (struct proto_field field; proto_next(&sample, &field);) {
        if (field.type != PROTO_BYTES) continue;
        if (field.number == DEFAULTS_SOURCE) defaults->source = text_in(packets, field.message);
        if (field.number == DEFAULTS_PRIMARY) defaults->primary = read_counter(packets, field.message, true);
        if (field.number == DEFAULTS_FOLLOWER && defaults->follower_count < WEIGHTS_MAX - 1)
            defaults->followers[defaults->follower_count++] = read_counter(packets, field.message, false);
    }
}

static uint32_t
read_frame(struct sample_packets *packets, struct proto message)
{
    static const char *const kinds[] = {NULL, "native", "kernel", "interpreted", "jit", "gc", "runtime"};
    struct frame frame = {.line = SAMPLE_NONE, .kind = SAMPLE_NONE};
    for (struct proto_field field; proto_next(&message, &field);) {
        switch (field.number) {
          case FRAME_NAME: frame.name = number_in(&field); break;
          case FRAME_MAPPING: frame.mapping = number_in(&field); break;
          case FRAME_PC: frame.pc = field.value; break;
          case FRAME_PATH: frame.path = number_in(&field); break;
          case FRAME_LINE: frame.line = number_in(&field); break;
          case FRAME_KIND:
              if (field.value > 0 && field.value < sizeof kinds / sizeof *kinds)
                  frame.kind = pool_intern(packets->pool, kinds[field.value], strlen(kinds[field.value]));
              break;
          case FRAME_KIND_TEXT:
              if (field.type == PROTO_BYTES) frame.kind = text_in(packets, field.message);
              break;
        }
    }
    append(packets, &packets->frames, frame);
    return packets->frames.count - 1;
}

static uint32_t
read_stack(struct sample_packets *packets, struct proto message)
{
    struct stack stack = {.first = packets->frame_ids.count};
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number == STACK_FRAME && field.type == PROTO_VARINT)
            append(packets, &packets->frame_ids, number_in(&field));
    }
    stack.count = packets->frame_ids.count - stack.first;
    append(packets, &packets->stacks, stack);
    return packets->stacks.count - 1;
}

static struct packet_task
task_in(struct proto message)
{
    struct packet_task task = {0, 0, 0};
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number == TASK_PID) task.pid = number_in(&field);
        if (field.number == TASK_TID) task.tid = number_in(&field);
        if (field.number == TASK_ASYNC_ID) task.context = number_in(&field);
    }
    return task;
}

static uint32_t
read_task(struct sample_packets *packets, struct proto message)
{
    append(packets, &packets->tasks, task_in(message));
    return packets->tasks.count - 1;
}

static uint32_t
read_context(struct sample_packets *packets, struct proto message)
{
    struct packet_context context = {SAMPLE_NONE, SAMPLE_NONE, 0};
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number == CONTEXT_PARENT) context.parent = number_in(&field);
        if (field.type != PROTO_BYTES || field.message.at == field.message.end) continue;
        if (field.number == CONTEXT_NAME) context.name = text_in(packets, field.message);
        if (field.number == CONTEXT_KIND) context.kind = text_in(packets, field.message);
    }
    append(packets, &packets->contexts, context);
    return packets->contexts.count - 1;
}

/* An entry keeps its first meaning. */
static void
read_entry(struct sample_packets *packets, uint32_t generation, enum table table, struct proto entry)
{
    struct map *map = &packets->tables[table];
    uint32_t iid = number_of(entry, ENTRY_IID), value;
    if (iid == 0 || map_get(map, key_of(generation, iid)) != MAP_NONE) return;
    switch (table) {
      case FRAMES: value = read_frame(packets, entry); break;
      case STACKS: value = read_stack(packets, entry); break;
      case TASKS: value = read_task(packets, entry); break;
      case COUNTERS: value = read_counter(packets, entry, false); break;
      case CONTEXTS: value = read_context(packets, entry); break;
      case MAPPINGS: value = number_of(entry, MAPPING_PATH); break;
      default: value = text_in(packets, bytes_of(entry, INTERNED_TEXT)); break;
    }
    map_set_within(reader_budget(packets->reader), map, key_of(generation, iid), value);
}

static void
read_interned(struct sample_packets *packets, uint32_t generation, struct proto message)
{
    for (struct proto_field field; proto_next(&message, &field);) {
        for (unsigned table = 0; table < TABLES && field.type == PROTO_BYTES; table++) {
            if (field.number == table_fields[table])
                read_entry(packets, generation, (enum table)table, field.message);
        }
    }
}

/* --- samples ---------------------------------------------------------------------------------------- */

/* The weights of followers, each of the counter at its place. One whose counter is unknown is left out. */
static void
read_followers(struct sample_packets *packets, const struct sequence *sequence, struct proto iids, struct proto values,
               struct packet_sample *sample)
{
    bool own = iids.at < iids.end;
    uint64_t value, iid;
    for (unsigned i = 0; values.at < values.end && proto_varint(&values, &value); i++) {
        uint32_t counter = MAP_NONE;
        if (own) {
            if (iids.at >= iids.end || !proto_varint(&iids, &iid)) return;
            if (iid <= UINT32_MAX) counter = interned(packets, COUNTERS, sequence->generation, (uint32_t)iid);
        } else {
            if (i >= sequence->defaults.follower_count) return;
            counter = sequence->defaults.followers[i];
        }
        if (counter == MAP_NONE || sample->weight_count == WEIGHTS_MAX) continue;
        packets->weights[sample->weight_count++] = (struct packet_weight){value, counter};
    }
}

/* Returns whether it has a stack. */
static bool
read_sample(struct sample_packets *packets, const struct sequence *sequence, struct proto message,
            struct packet_sample *sample)
{
    const struct defaults *defaults = &sequence->defaults;
    struct proto followers = {0}, follower_iids = {0};
    uint32_t task = MAP_NONE;
    *sample = (struct packet_sample){
        .sequence = sequence->id, .generation = sequence->generation, .source = defaults->source,
        .unit = defaults->primary == SAMPLE_NONE ? SAMPLE_NONE : packets->counters.list[defaults->primary].unit,
        .weights = packets->weights};
    for (struct proto_field field; proto_next(&message, &field);) {
        if (field.number == SAMPLE_TASK && field.type == PROTO_BYTES) sample->task = task_in(field.message);
        if (field.number == SAMPLE_TASK_IID)
            task = interned(packets, TASKS, sequence->generation, number_in(&field));
        if (field.number == SAMPLE_STACK_IID) sample->stack = number_in(&field);
        if (field.number == SAMPLE_FOLLOWERS && field.type == PROTO_BYTES) followers = field.message;
        if (field.number == SAMPLE_FOLLOWER_IIDS && field.type == PROTO_BYTES) follower_iids = field.message;
        if (field.number == SAMPLE_WEIGHT && field.type == PROTO_VARINT && defaults->primary != SAMPLE_NONE &&
            sample->weight_count == 0)
            packets->weights[sample->weight_count++] = (struct packet_weight){field.value, defaults->primary};
    }
    if (sample->task.tid == 0 && task != MAP_NONE) sample->task = packets->tasks.list[task];
    read_followers(packets, sequence, follower_iids, followers, sample);
    return sample->stack != 0;
}

static struct sequence *
sequence_of(struct sample_packets *packets, uint32_t id)
{
    uint32_t index = map_get(&packets->sequence_of_id, id);
    if (index == MAP_NONE) {
        const struct sequence sequence = {.id = id, .defaults = no_defaults};
        append(packets, &packets->sequences, sequence);
        index = packets->sequences.count - 1;
        map_set_within(reader_budget(packets->reader), &packets->sequence_of_id, id, index);
    }
    return &packets->sequences.list[index];
}

/* Returns whether the packet has a sample. */
static bool
read_packet(struct sample_packets *packets, struct proto packet, struct packet_sample *sample_out)
{
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
    if (id == 0) return false;
    struct sequence *sequence = sequence_of(packets, id);
    if (flags & SEQUENCE_STATE_CLEARED || (sequence->generation == 0 && !(flags & SEQUENCE_NEEDS_STATE))) {
        sequence->generation = ++packets->generations;
        sequence->defaults = no_defaults;
    }
    if (sequence->generation == 0) return false; /* what it refers to was lost */
    if (defaults.at != NULL) read_defaults(packets, &sequence->defaults, defaults);
    if (packets->source != SAMPLE_NONE && sequence->defaults.source != packets->source) return false;
    if (interned.at != NULL) read_interned(packets, sequence->generation, interned);
    if (sample.at == NULL || ts < 0 || !read_sample(packets, sequence, sample, sample_out)) return false;
    sample_out->ts_ns = ts;
    return true;
}

void
sample_packets_read(struct sample_packets *packets, const struct fxt_blob *blob,
                    void (*on_sample)(void *context, const struct packet_sample *sample), void *context)
{
    struct proto bytes = proto_of(blob->bytes, blob->len);
    struct packet_sample sample;
    for (struct proto_field field; proto_next(&bytes, &field);) {
        if (!read_packet(packets, field.message, &sample)) continue;
        sample.offset = blob->offset;
        on_sample(context, &sample);
    }
}

/* --- what samples refer to ---------------------------------------------------------------------------- */

struct packet_counter
sample_packets_counter(const struct sample_packets *packets, uint32_t counter)
{
    return packets->counters.list[counter];
}

bool
sample_packets_stack(const struct sample_packets *packets, uint32_t generation, uint32_t stack,
                     struct packet_stack *stack_out)
{
    uint32_t index = interned(packets, STACKS, generation, stack);
    if (index == MAP_NONE) return false;
    const struct stack *found = &packets->stacks.list[index];
    *stack_out = (struct packet_stack){packets->frame_ids.list + found->first, found->count};
    return true;
}

bool
sample_packets_frame(const struct sample_packets *packets, uint32_t generation, uint32_t frame,
                     struct packet_frame *frame_out)
{
    uint32_t index = interned(packets, FRAMES, generation, frame);
    if (index == MAP_NONE) return false;
    const struct frame *found = &packets->frames.list[index];
    uint32_t mapping = interned(packets, MAPPINGS, generation, found->mapping);
    *frame_out = (struct packet_frame){
        .name = found->name == 0 ? pool_intern(packets->pool, "", 0)
                                 : interned(packets, NAMES, generation, found->name),
        .mapping = mapping == MAP_NONE ? SAMPLE_NONE : interned(packets, MAPPING_PATHS, generation, mapping),
        .path = interned(packets, SOURCE_PATHS, generation, found->path),
        .line = found->line, .kind = found->kind, .pc = found->pc};
    return frame_out->name != MAP_NONE && (found->path == 0 || frame_out->path != MAP_NONE);
}

bool
sample_packets_context(const struct sample_packets *packets, uint32_t generation, uint32_t context,
                       struct packet_context *context_out)
{
    uint32_t index = interned(packets, CONTEXTS, generation, context);
    if (index == MAP_NONE) return false;
    *context_out = packets->contexts.list[index];
    return true;
}

struct sample_packets *
sample_packets_new(struct reader *reader, uint32_t source)
{
    struct sample_packets *packets = xcalloc(1, sizeof *packets);
    packets->reader = reader;
    packets->pool = reader_pool(reader);
    packets->source = source;
    return packets;
}

void
sample_packets_free(struct sample_packets *packets)
{
    if (packets == NULL) return;
    map_free(&packets->sequence_of_id);
    for (unsigned i = 0; i < TABLES; i++) map_free(&packets->tables[i]);
    free(packets->sequences.list);
    free(packets->counters.list);
    free(packets->contexts.list);
    free(packets->frames.list);
    free(packets->frame_ids.list);
    free(packets->stacks.list);
    free(packets->tasks.list);
    free(packets);
}
