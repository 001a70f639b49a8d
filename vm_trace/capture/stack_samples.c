/*
 * Perfetto's stack samples. See stack_samples.h.
 */
#include "vm_trace/capture/stack_samples.h"

static const char EXITS[] = "exits", LOST_TIME[] = "lost time", MIDDLE[] = HOST_LEFT_OUT;

/*
 * Of a stack without repetitions: so many outermost frames, then the middle that is left out where
 * it would be a block or more, then the innermost ones, all from a block's begin on. So stacks that
 * differ by a frame mostly keep the same ones. Each new stack is written whole.
 */
enum { BLOCK = 64, OUTER = HOST_SAMPLE_OUTER, INNER = 2000 - OUTER, MOST_FRAMES = OUTER + 1 + INNER };

/*
 * One sequence for all samples of a kind: Perfetto makes a session of each. Ractors that share a
 * chunk write into it in turns, each with ids of its own, and so need sequences of their own.
 */
static const struct {
    uint32_t sequence, first_shared;
    const char *source;
} kinds[] = {
    [VM_TRACE_SAMPLED_EXITS] = { 101, 1 << 20, "ruby.exits" },
    [VM_TRACE_SAMPLED_TIME] = { 102, 3 << 19, "ruby.samples" }
};
enum { SHARED_SEQUENCES = 1 << 19 }; /* perfetto_timed_word has room for 21 bits */

static const char *const states[VM_TRACE_SAMPLE_STATES] = {
#define X(name, text) [VM_TRACE_SAMPLE_##name] = (text),
    VM_TRACE_SAMPLE_STATES_OF(X)
#undef X
};

/* Mappings keep the kinds apart, also where the UI does not show them. */
enum { INTERPRETED = 1, JIT, C_FUNCTION, MAPPINGS = C_FUNCTION };
static const struct { const char *name; unsigned kind; } mappings[] = {
    [INTERPRETED] = { "interpreted", FRAME_KIND_INTERPRETED }, [JIT] = { "jit", FRAME_KIND_JIT },
    [C_FUNCTION] = { "c_function", FRAME_KIND_NATIVE }
};

/* Longer parts of labels are cut, so that a packet has room for two of them. */
enum { TEXT_BYTES = 1024 };

/* Repetitions of up to so many frames are left out. */
enum { MOST_REPEATED = 16 };

/* --- packets ------------------------------------------------------------------------------------ */

static size_t
begin_packet(struct proto *packet, const struct vm_trace_samples *samples, unsigned flags)
{
    packet->bytes = 0;
    size_t begin = proto_begin(packet, PERFETTO_PACKET);
    proto_number(packet, PACKET_SEQUENCE, samples->sequence);
    proto_number(packet, PACKET_SEQUENCE_FLAGS, flags);
    return begin;
}

/* False: the chunk is full. */
static bool
end_packet(struct proto *packet, size_t begin, struct rb_vm_trace_writer *writer)
{
    proto_end(packet, begin);
    size_t words = 1 + fxt_words(packet->bytes);
    uint64_t *record = writer_reserve(writer, words);
    if (!record) return false;
    fxt_put_text(record + 1, (const char *)packet->at, packet->bytes);
    writer_publish(writer, words, fxt_blob_header(packet->bytes));
    return true;
}

static void
put_interned_text(struct proto *packet, unsigned table, uint32_t iid, const char *text, size_t bytes)
{
    size_t entry = proto_begin(packet, table);
    proto_number(packet, INTERNED_IID, iid);
    proto_text(packet, STRING_TEXT, text, bytes);
    proto_end(packet, entry);
}

/* `iid` 0: it is referred to by its place only. */
static void
put_counter(struct proto *packet, unsigned field, uint32_t iid, const char *name, unsigned unit)
{
    size_t counter = proto_begin(packet, field);
    if (iid) proto_number(packet, INTERNED_IID, iid);
    proto_text(packet, COUNTER_NAME, name, strlen(name));
    proto_number(packet, COUNTER_UNIT, unit);
    proto_end(packet, counter);
}

static void
put_defaults(struct proto *packet, const struct vm_trace_samples *samples)
{
    const char *source = kinds[samples->kind].source;
    size_t defaults = proto_begin(packet, PACKET_DEFAULTS), sample = proto_begin(packet, DEFAULTS_STACK_SAMPLE);
    proto_text(packet, SAMPLE_DEFAULTS_SOURCE, source, strlen(source));
    if (samples->kind == VM_TRACE_SAMPLED_TIME) {
        put_counter(packet, SAMPLE_DEFAULTS_PRIMARY, 0, samples->time, COUNTER_UNIT_NS);
    }
    else {
        put_counter(packet, SAMPLE_DEFAULTS_PRIMARY, 0, EXITS, COUNTER_UNIT_COUNT);
        if (samples->lost_time) put_counter(packet, SAMPLE_DEFAULTS_FOLLOWER, 0, LOST_TIME, COUNTER_UNIT_NS);
    }
    proto_end(packet, sample);
    proto_end(packet, defaults);
}

/* What all chunks define: mappings, and for time a counter for each state. */
static void
put_constants(struct proto *packet, const struct vm_trace_samples *samples)
{
    size_t data = proto_begin(packet, PACKET_INTERNED_DATA);
    for (uint32_t i = 0; samples->kind == VM_TRACE_SAMPLED_TIME && i < VM_TRACE_SAMPLE_STATES; i++)
        put_counter(packet, INTERNED_COUNTERS, i + 1, states[i], COUNTER_UNIT_NS);
    for (uint32_t i = 1; i <= MAPPINGS; i++) {
        put_interned_text(packet, INTERNED_MAPPING_PATHS, i, mappings[i].name, strlen(mappings[i].name));
        size_t entry = proto_begin(packet, INTERNED_MAPPINGS);
        proto_number(packet, INTERNED_IID, i);
        proto_number(packet, MAPPING_PATH_IID, i);
        proto_end(packet, entry);
    }
    proto_end(packet, data);
}

/* The chunk's first packet: nothing before counts. */
static bool
begin_chunk(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples)
{
    struct proto packet;
    if (samples->chunk == ractor->writer.serial) return true;
    samples->sequence = ractor->writer.shared_serial ?
        kinds[samples->kind].first_shared + ractor->number % SHARED_SEQUENCES :
        kinds[samples->kind].sequence;
    size_t begin = begin_packet(&packet, samples, SEQUENCE_STATE_CLEARED);
    put_defaults(&packet, samples);
    put_constants(&packet, samples);
    if (!end_packet(&packet, begin, &ractor->writer)) return false;
    samples->texts = samples->frames = samples->stacks = samples->threads = samples->middle = 0;
    samples->chunk = ractor->writer.serial;
    samples->generation++;
    return true;
}

/* A packet that defines something for those that follow in its chunk. */
struct definition {
    struct proto packet;
    size_t begin, data;
};

static void
begin_definition(struct definition *definition, const struct vm_trace_samples *samples)
{
    definition->begin = begin_packet(&definition->packet, samples, SEQUENCE_NEEDS_STATE);
    definition->data = proto_begin(&definition->packet, PACKET_INTERNED_DATA);
}

/* False: the chunk is full. */
static bool
end_definition(struct definition *definition, struct rb_vm_trace_writer *writer)
{
    proto_end(&definition->packet, definition->data);
    return end_packet(&definition->packet, definition->begin, writer);
}

/* --- what a chunk defines ------------------------------------------------------------------------- */

static inline uint64_t
hash_more(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

static uint64_t
hash_text(const char *text, size_t bytes)
{
    uint64_t hash = bytes;
    for (size_t i = 0; i < bytes; i++) hash = hash_more(hash, (unsigned char)text[i]);
    return hash;
}

/* The slot of what has that hash. *known_out: it is defined. */
static struct vm_trace_sample_id *
look_up(const struct vm_trace_samples *samples, struct vm_trace_sample_id *ids, size_t count, uint64_t hash,
        bool *known_out)
{
    struct vm_trace_sample_id *id = &ids[hash % count];
    *known_out = id->hash == hash && id->slot.chunk == samples->generation;
    return id;
}

/* The number of a text in one of the tables; put into the packet when the chunk lacks it. */
static uint32_t
put_text_once(struct vm_trace_samples *samples, struct proto *packet, unsigned table, const char *text, size_t bytes)
{
    bytes = rb_vm_trace_text_fit(text, bytes, TEXT_BYTES);
    uint64_t hash = hash_more(hash_text(text, bytes), table);
    bool known;
    struct vm_trace_sample_id *id = look_up(samples, samples->text_ids, VM_TRACE_SAMPLE_TEXTS, hash, &known);
    if (known) return id->slot.index;
    *id = (struct vm_trace_sample_id){ hash, { samples->generation, ++samples->texts } };
    put_interned_text(packet, table, id->slot.index, text, bytes);
    return id->slot.index;
}

struct place {
    const char *path;
    size_t bytes;                /* 0: none */
    uint32_t line;
};

/* The "path:line" of "Owner#method (path:line)". */
static struct place
place_of(const struct vm_trace_label *label, uint32_t method_bytes)
{
    struct place place = { NULL, 0, 0 };
    uint32_t begin = method_bytes + 2, end = label->bytes - 1;
    if (begin >= label->bytes || begin >= end) return place;
    uint32_t colon = end, scale = 1;
    while (colon > begin && label->text[colon - 1] >= '0' && label->text[colon - 1] <= '9') {
        place.line += (uint32_t)(label->text[--colon] - '0') * scale;
        scale *= 10;
    }
    bool line = colon < end && colon > begin + 1 && label->text[colon - 1] == ':';
    if (!line) place.line = 0;
    place.path = label->text + begin;
    place.bytes = (line ? colon - 1 : end) - begin;
    return place;
}

/* The frame of the exit is the one that compiled code ran. */
static unsigned
mapping_of(const struct vm_trace_label *label)
{
    return label->pc & HOST_PC_EXACT ? JIT : label->pc & HOST_PC_CFUNC ? C_FUNCTION : INTERPRETED;
}

static void
put_frame(struct vm_trace_samples *samples, struct proto *packet, struct vm_trace_label *label, uint32_t iid)
{
    uint32_t method_bytes = rb_vm_trace_label_method(label);
    struct place place = place_of(label, method_bytes);
    unsigned mapping = mapping_of(label);
    uint32_t name = put_text_once(samples, packet, INTERNED_FUNCTION_NAMES, label->text, method_bytes), path = 0;
    if (place.bytes) path = put_text_once(samples, packet, INTERNED_SOURCE_PATHS, place.path, place.bytes);
    size_t frame = proto_begin(packet, INTERNED_FRAMES);
    proto_number(packet, INTERNED_IID, iid);
    proto_number(packet, FRAME_FUNCTION_NAME_IID, name);
    proto_number(packet, FRAME_MAPPING_IID, mapping);
    /*
     * Frames of all chunks that have the same name and address there are one, so the place is in
     * the address.
     */
    proto_number(packet, FRAME_REL_PC, (uint32_t)hash_text(label->text, label->bytes));
    if (path) proto_number(packet, FRAME_SOURCE_PATH_IID, path);
    if (place.line) proto_number(packet, FRAME_LINE, place.line);
    proto_number(packet, FRAME_KIND, mappings[mapping].kind);
    proto_end(packet, frame);
}

/* The number of a frame. 0: the chunk is full. */
static uint32_t
frame_id(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples, struct vm_trace_label *label)
{
    if (label->samples[samples->kind].chunk == samples->generation) return label->samples[samples->kind].index;
    struct definition definition;
    uint32_t texts = samples->texts;
    begin_definition(&definition, samples);
    put_frame(samples, &definition.packet, label, samples->frames + 1);
    if (!end_definition(&definition, &ractor->writer)) {
        if (samples->texts != texts) samples->chunk = 0; /* texts that count as known are not there */
        return 0;
    }
    label->samples[samples->kind] = (struct vm_trace_slot){ samples->generation, ++samples->frames };
    return label->samples[samples->kind].index;
}

static uint32_t
middle_id(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples)
{
    if (samples->middle) return samples->middle;
    struct vm_trace_label label = { .text = (char *)MIDDLE, .bytes = sizeof(MIDDLE) - 1 };
    label.method_bytes = label.bytes;
    return samples->middle = frame_id(ractor, samples, &label);
}

/* --- stacks --------------------------------------------------------------------------------------- */

/* Whether the last `length` frames repeat those before them. */
static bool
repeats(const uint32_t *labels, size_t count, size_t length)
{
    return count >= 2 * length &&
        memcmp(labels + count - length, labels + count - 2 * length, length * sizeof(*labels)) == 0;
}

/*
 * Labels of the stack, outermost first, without repetitions: what follows itself is there once. What
 * is left of a stack begins with what is left of its outer part, mostly, so the flame graph's
 * branches meet. Returns how many there are.
 */
static size_t
fold(const struct vm_trace_walk *walk, uint32_t *labels)
{
    size_t count = 0;
    for (size_t i = 0; i < walk->count; i++) {
        labels[count++] = walk->frames[i].id;
        for (size_t length = 1; length <= MOST_REPEATED; length++) {
            if (!repeats(labels, count, length)) continue;
            count -= length;
            break;
        }
    }
    return count;
}

/* Numbers of frames for that; returns how many. 0: the chunk is full. */
static size_t
stack_frames(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples, const uint32_t *labels, size_t count,
             uint32_t frames[MOST_FRAMES])
{
    struct rb_vm_trace_stacks *stacks = &ractor->stacks;
    size_t used = 0, skip = 0;
    if (count > OUTER + INNER) skip = (count - OUTER - INNER + BLOCK) / BLOCK * BLOCK;
    for (size_t i = 0; i < count; i++) {
        uint32_t id;
        if (skip && i == OUTER) {
            id = middle_id(ractor, samples);
            if (!id) return 0;
            frames[used++] = id;
            i += skip;
        }
        id = frame_id(ractor, samples, &stacks->labels[labels[i]]);
        if (!id) return 0;
        frames[used++] = id;
    }
    return used;
}

/* The number of a stack, which is defined if it is new. 0: the chunk is full. */
static uint32_t
define_stack(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples, const uint32_t *frames, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) hash = hash_more(hash, frames[i]);
    bool known;
    struct vm_trace_sample_id *id = look_up(samples, samples->stack_ids, VM_TRACE_SAMPLE_STACKS, hash, &known);
    if (known) return id->slot.index;

    struct definition definition;
    struct proto *packet = &definition.packet;
    begin_definition(&definition, samples);
    size_t stack = proto_begin(packet, INTERNED_CALLSTACKS);
    proto_number(packet, INTERNED_IID, samples->stacks + 1);
    for (size_t i = 0; i < count; i++) proto_number(packet, CALLSTACK_FRAME_IDS, frames[i]);
    proto_end(packet, stack);
    if (!end_definition(&definition, &ractor->writer)) return 0;
    *id = (struct vm_trace_sample_id){ hash, { samples->generation, ++samples->stacks } };
    return samples->stacks;
}

/* The number of the stack that was captured. 0: the chunk is full, or there is no memory. */
static uint32_t
stack_id(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples)
{
    struct rb_vm_trace_stacks *stacks = &ractor->stacks;
    struct vm_trace_walk *walk = &stacks->walk;
    struct vm_trace_node *node = &stacks->nodes[walk->frames[walk->count - 1].node];
    if (node->samples[samples->kind].chunk == samples->generation) return node->samples[samples->kind].index;
    uint32_t *labels = (uint32_t *)rb_vm_trace_stacks_scratch(stacks, walk->count * sizeof(*labels));
    if (!labels) return 0;
    uint32_t frames[MOST_FRAMES];
    size_t count = stack_frames(ractor, samples, labels, fold(walk, labels), frames);
    uint32_t id = count ? define_stack(ractor, samples, frames, count) : 0;
    if (id) node->samples[samples->kind] = (struct vm_trace_slot){ samples->generation, id };
    return id;
}

/* An async context for a fiber, with the number of its track. */
static void
put_fiber(struct proto *packet, const struct vm_trace_sample_task *task)
{
    static const char FIBER[] = "fiber";
    char name[TEXT_BYTES];
    size_t bytes = rb_vm_trace_host_fiber_name(task->ec, name, sizeof(name));
    if (bytes > sizeof(name)) bytes = rb_vm_trace_text_fit(name, bytes, sizeof(name));
    size_t context = proto_begin(packet, INTERNED_ASYNC_CONTEXTS);
    proto_number(packet, INTERNED_IID, task->fiber);
    proto_text(packet, ASYNC_CONTEXT_NAME, name, bytes);
    proto_text(packet, ASYNC_CONTEXT_KIND, FIBER, sizeof(FIBER) - 1);
    proto_end(packet, context);
}

/* The number of a thread, or of a fiber in it. 0: the chunk is full. */
static uint32_t
task_id(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples, const struct vm_trace_sample_task *task)
{
    bool known;
    uint64_t hash = ((uint64_t)task->fiber << 32 | task->tid) ^ task->fiber; /* one for each pair of them */
    struct vm_trace_sample_id *id = look_up(samples, samples->thread_ids, VM_TRACE_SAMPLE_THREADS, hash, &known);
    if (known) return id->slot.index;
    struct definition definition;
    struct proto *packet = &definition.packet;
    begin_definition(&definition, samples);
    if (task->fiber) put_fiber(packet, task);
    size_t entry = proto_begin(packet, INTERNED_TASKS);
    proto_number(packet, INTERNED_IID, samples->threads + 1);
    proto_number(packet, TASK_PID, ractor->writer.pid);
    proto_number(packet, TASK_TID, task->tid);
    if (task->fiber) proto_number(packet, TASK_ASYNC_ID, task->fiber);
    proto_end(packet, entry);
    if (!end_definition(&definition, &ractor->writer)) return 0;
    *id = (struct vm_trace_sample_id){ hash, { samples->generation, ++samples->threads } };
    return samples->threads;
}

/* --- samples ---------------------------------------------------------------------------------------- */

struct sample {
    uint32_t thread, stack;
    uint64_t weight;
    bool lost;
};

/* The packet, behind its timed part; the flags are so many bytes longer than they need be. */
static void
put_sample(struct proto *packet, const struct sample *sample, unsigned longer)
{
    packet->bytes = PERFETTO_TIMED_BYTES;
    proto_number(packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
    for (; longer > 0; longer--) {
        packet->at[packet->bytes - 1] |= 0x80;
        packet->at[packet->bytes++] = 0;
    }
    size_t begin = proto_begin(packet, PACKET_STACK_SAMPLE);
    proto_number(packet, SAMPLE_TASK_IID, sample->thread);
    proto_number(packet, SAMPLE_CALLSTACK_IID, sample->stack);
    proto_number(packet, SAMPLE_PRIMARY_WEIGHT, sample->weight);
    uint64_t unknown = proto_word(0, true);
    if (sample->lost) proto_text(packet, SAMPLE_FOLLOWER_WEIGHTS, (const char *)&unknown, sizeof(unknown));
    proto_end(packet, begin);
}

bool
rb_vm_trace_sample_compose(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples, uint64_t weight,
                           bool lost, struct vm_trace_sample *sample_out)
{
    const struct vm_trace_walk *walk = &ractor->stacks.walk;
    sample_out->words = 0;
    if (!walk->count) return true;
    if (!begin_chunk(ractor, samples)) return false;
    const struct vm_trace_sample_task task = { .tid = walk->fiber.tid };
    uint32_t thread = task_id(ractor, samples, &task);
    uint32_t stack = thread ? stack_id(ractor, samples) : 0;
    if (!stack) return false;

    struct proto packet;
    memset(packet.at, 0, sizeof(sample_out->record));
    const struct sample sample = { thread, stack, weight, lost };
    put_sample(&packet, &sample, 0);
    /* The time that it lost, which is not known yet, is the last word, to be filled in by one store. */
    if (lost) put_sample(&packet, &sample, (unsigned)(-packet.bytes % FXT_WORD_BYTES));
    uint64_t word = perfetto_timed_word(packet.bytes, samples->sequence);
    memcpy(packet.at, &word, sizeof(word));
    memcpy(sample_out->record + 1, packet.at, sizeof(sample_out->record) - sizeof(word));
    sample_out->record[0] = fxt_blob_header(packet.bytes);
    sample_out->words = (uint32_t)(1 + fxt_words(packet.bytes));
    sample_out->tid = walk->fiber.tid;
    return true;
}

bool
rb_vm_trace_sample_write_time(struct rb_vm_trace_ractor *ractor, struct vm_trace_samples *samples,
                              const struct vm_trace_time_sample *sample)
{
    if (!begin_chunk(ractor, samples)) return false;
    uint32_t task = task_id(ractor, samples, &sample->task);
    uint32_t stack = task ? stack_id(ractor, samples) : 0;
    if (!stack) return false;

    struct proto packet;
    packet.bytes = PERFETTO_TIMED_BYTES;
    proto_number(&packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
    size_t begin = proto_begin(&packet, PACKET_STACK_SAMPLE);
    proto_number(&packet, SAMPLE_TASK_IID, task);
    proto_number(&packet, SAMPLE_CALLSTACK_IID, stack);
    proto_number(&packet, SAMPLE_PRIMARY_WEIGHT, sample->weight_ns);
    const char state = (char)(sample->state + 1);
    proto_text(&packet, SAMPLE_FOLLOWER_IIDS, &state, 1);
    size_t weight = proto_begin(&packet, SAMPLE_FOLLOWER_WEIGHTS);
    proto_varint(&packet, sample->weight_ns);
    proto_end(&packet, weight);
    proto_end(&packet, begin);

    size_t words = 1 + fxt_words(packet.bytes);
    uint64_t *record = writer_reserve(&ractor->writer, words);
    if (!record) return false;
    uint64_t first = perfetto_timed_word(packet.bytes, samples->sequence);
    memcpy(packet.at, &first, sizeof(first));
    memset(packet.at + packet.bytes, 0, FXT_WORD_BYTES); /* what the last word has more */
    memcpy(record + 1, packet.at, (words - 1) * sizeof(*record));
    perfetto_put_time(record + 1, sample->ns);
    writer_publish(&ractor->writer, words, fxt_blob_header(packet.bytes));
    return true;
}
