/*
 * Frames to labels, stacks to nodes. See stack_table.h.
 */
#include "vm_trace/capture/stack_table.h"
#include "vm_trace/schema/fxt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_FRAMES 64
#define FIRST_LABELS 128 /* most ractors of many see few */
#define FIRST_NODES 128
/* Stacks are a cache: with more nodes than this the tree starts over, so its size is bounded. */
#define MAX_NODES (1u << 17)
/* More deaths than this between two captures, and all labels are forgotten instead. */
#define MAX_DEAD 1024
/* The log holds more, so that it can be copied while it is written to. A power of two. */
#define LOG_SIZE UINT64_C(2048)

/* A cache line of its own: all ractors read it at every event, and it seldom changes. */
uint64_t rb_vm_trace_changes __attribute__((aligned(64)));

pthread_mutex_t rb_vm_trace_deaths_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Freed ranges, oldest first; the i-th is at i % LOG_SIZE. Written under the lock, read without
 * it.
 */
static struct {
    uint64_t count;
    struct { uintptr_t from, to; } log[LOG_SIZE]; /* bit 0 of `from`, an address of words: of method entries */
} deaths;

bool
rb_vm_trace_stacks_init(struct rb_vm_trace_stacks *stacks)
{
    stacks->changes = trace_changes(); /* before the log is looked at, which it is stored after */
    stacks->deaths = __atomic_load_n(&deaths.count, __ATOMIC_ACQUIRE);
    stacks->walk.capacity = FIRST_FRAMES;
    stacks->walk.frames = calloc(stacks->walk.capacity, sizeof(*stacks->walk.frames));
    stacks->label_capacity = FIRST_LABELS;
    stacks->labels = calloc(stacks->label_capacity, sizeof(*stacks->labels));
    stacks->label_count = 1;
    stacks->label_index_size = FIRST_LABELS * 2;
    stacks->label_index = calloc(stacks->label_index_size, sizeof(*stacks->label_index));
    stacks->node_capacity = FIRST_NODES;
    stacks->nodes = calloc(stacks->node_capacity, sizeof(*stacks->nodes));
    stacks->node_count = 1;
    stacks->node_index_size = FIRST_NODES * 2;
    stacks->node_index = calloc(stacks->node_index_size, sizeof(*stacks->node_index));
    stacks->dead = malloc(MAX_DEAD * sizeof(*stacks->dead)); /* allocated when something is freed */
    return stacks->walk.frames && stacks->labels && stacks->label_index && stacks->nodes && stacks->node_index &&
        stacks->dead;
}

void
rb_vm_trace_stacks_free(struct rb_vm_trace_stacks *stacks)
{
    for (uint32_t id = 1; id < stacks->label_count && stacks->labels; id++) free(stacks->labels[id].text);
    free(stacks->walk.frames);
    free(stacks->labels);
    free(stacks->label_index);
    free(stacks->nodes);
    free(stacks->node_index);
    free(stacks->scratch);
    free(stacks->dead);
}

char *
rb_vm_trace_stacks_scratch(struct rb_vm_trace_stacks *stacks, size_t bytes)
{
    if (bytes > stacks->scratch_capacity) {
        size_t capacity = stacks->scratch_capacity ? stacks->scratch_capacity : 8192;
        while (capacity < bytes) capacity *= 2;
        char *grown = realloc(stacks->scratch, capacity);
        if (!grown) return NULL;
        stacks->scratch = grown;
        stacks->scratch_capacity = capacity;
    }
    return stacks->scratch;
}

/* Addresses differ in their middle bits: mix them down. */
static uint32_t
hash_pair(uintptr_t a, uintptr_t b)
{
    uint64_t hash = ((uint64_t)a ^ ((uint64_t)b << 21 | (uint64_t)b >> 43)) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32);
}

/* --- addresses --------------------------------------------------------------------------- */

/*
 * A bit for each 16 bytes, the least that malloc gives, of an address' low 16 MiB: memory only
 * where something was noted.
 */
#define NOTE_WORDS ((uintptr_t)1 << 14)
static uint64_t notes[NOTE_WORDS];

static inline uint64_t *
note_of(uintptr_t address, uint64_t *bit_out)
{
    *bit_out = UINT64_C(1) << (address / 16 % 64);
    return &notes[address / 16 / 64 % NOTE_WORDS];
}

void
rb_vm_trace_note_address(uintptr_t address)
{
    uint64_t bit, *note = note_of(address, &bit);
    /* Most are noted already, and a store would take the line from other cores. */
    if (!(__atomic_load_n(note, __ATOMIC_RELAXED) & bit)) __atomic_fetch_or(note, bit, __ATOMIC_RELAXED);
}

bool
rb_vm_trace_address_noted_p(uintptr_t address)
{
    uint64_t bit, *note = note_of(address, &bit);
    return (__atomic_load_n(note, __ATOMIC_RELAXED) & bit) != 0;
}

/*
 * The label of a frame is kept under these. New labels are often other instructions of one method.
 */
static inline void
note_frame(struct rb_vm_trace_stacks *stacks, const struct vm_trace_frame *frame)
{
    if (stacks->noted_iseq == frame->iseq && stacks->noted_method == frame->method) return;
    stacks->noted_iseq = frame->iseq;
    stacks->noted_method = frame->method;
    if (frame->method) rb_vm_trace_note_address(frame->method);
    if (!frame->iseq) return;
    uintptr_t from, to;
    rb_vm_trace_host_iseq_range(frame->iseq, &from, &to);
    rb_vm_trace_note_address(from);
}

/* --- labels ---------------------------------------------------------------------------- */

static void
index_label(struct rb_vm_trace_stacks *stacks, uint32_t id)
{
    const struct vm_trace_label *label = &stacks->labels[id];
    uint32_t mask = stacks->label_index_size - 1;
    uint32_t at = hash_pair(label->pc, label->method) & mask;
    while (stacks->label_index[at]) at = (at + 1) & mask;
    stacks->label_index[at] = id;
}

/* Build the index again, after a change of size or a removal. */
static void
index_all_labels(struct rb_vm_trace_stacks *stacks)
{
    memset(stacks->label_index, 0, stacks->label_index_size * sizeof(*stacks->label_index));
    for (uint32_t id = 1; id < stacks->label_count; id++) {
        if (stacks->labels[id].pc) index_label(stacks, id);
    }
}

static bool
grow_labels(struct rb_vm_trace_stacks *stacks)
{
    uint32_t capacity = stacks->label_capacity * 2;
    struct vm_trace_label *labels = realloc(stacks->labels, capacity * sizeof(*labels));
    if (!labels) return false;
    stacks->labels = labels;
    uint32_t *index = calloc((size_t)capacity * 2, sizeof(*index));
    if (!index) return false;
    free(stacks->label_index);
    stacks->label_index = index;
    stacks->label_index_size = capacity * 2;
    stacks->label_capacity = capacity;
    index_all_labels(stacks);
    return true;
}

size_t
rb_vm_trace_make_label(const void *frame, char *buffer, size_t capacity)
{
    return rb_vm_trace_host_label(frame, buffer, capacity);
}

/* Ask the host and keep the text. 0: no memory. */
static uint32_t
make_label(struct rb_vm_trace_stacks *stacks, const struct vm_trace_frame *frame)
{
    uint32_t id = stacks->free_label;
    if (!id) {
        if (stacks->label_count == stacks->label_capacity && !grow_labels(stacks)) return 0;
        id = stacks->label_count;
    }
    char buffer[1024];
    size_t bytes;
    char *text = rb_vm_trace_text_whole(rb_vm_trace_make_label, frame, buffer, sizeof(buffer), &bytes);
    if (text == buffer) {
        text = malloc(bytes ? bytes : 1);
        if (!text) return 0;
        memcpy(text, buffer, bytes);
    }

    struct vm_trace_label *label = &stacks->labels[id];
    if (id == stacks->label_count) stacks->label_count++;
    else stacks->free_label = label->next_free;
    *label = (struct vm_trace_label){
        .pc = frame->pc, .method = frame->method, .text = text, .bytes = (uint32_t)bytes
    };
    stacks->labels_alive++;
    index_label(stacks, id);
    note_frame(stacks, frame);
    return id;
}

static uint32_t
find_label(struct rb_vm_trace_stacks *stacks, const struct vm_trace_frame *frame)
{
    uint32_t mask = stacks->label_index_size - 1;
    uint32_t at = hash_pair(frame->pc, frame->method) & mask;
    for (uint32_t id; (id = stacks->label_index[at]) != 0; at = (at + 1) & mask) {
        if (stacks->labels[id].pc == frame->pc && stacks->labels[id].method == frame->method) return id;
    }
    return make_label(stacks, frame);
}

/* --- nodes ----------------------------------------------------------------------------- */

/* Start the tree over. The nodes in the slots of the last walk become invalid. */
static void
forget_nodes(struct rb_vm_trace_stacks *stacks)
{
    stacks->node_count = 1;
    stacks->tree++;
    memset(stacks->node_index, 0, stacks->node_index_size * sizeof(*stacks->node_index));
}

static bool
grow_nodes(struct rb_vm_trace_stacks *stacks)
{
    uint32_t capacity = stacks->node_capacity * 2;
    struct vm_trace_node *nodes = realloc(stacks->nodes, capacity * sizeof(*nodes));
    if (!nodes) return false;
    stacks->nodes = nodes;
    uint32_t size = capacity * 2;
    uint32_t *index = calloc(size, sizeof(*index));
    if (!index) return false;
    for (uint32_t id = 1; id < stacks->node_count; id++) {
        uint32_t *head = &index[hash_pair(nodes[id].parent, nodes[id].label) & (size - 1)];
        nodes[id].next = *head;
        *head = id;
    }
    free(stacks->node_index);
    stacks->node_index = index;
    stacks->node_index_size = size;
    stacks->node_capacity = capacity;
    return true;
}

/* Whether `id`, which may be of a tree before, is the stack with `label` on top of `parent`. */
static inline bool
node_is(const struct rb_vm_trace_stacks *stacks, uint32_t id, uint32_t parent, uint32_t label)
{
    return id && id < stacks->node_count && stacks->nodes[id].parent == parent && stacks->nodes[id].label == label;
}

/* That stack. 0: no memory. */
static uint32_t
find_node(struct rb_vm_trace_stacks *stacks, uint32_t parent, uint32_t label)
{
    uint32_t hash = hash_pair(parent, label);
    uint32_t id = stacks->node_index[hash & (stacks->node_index_size - 1)];
    for (; id; id = stacks->nodes[id].next) {
        if (node_is(stacks, id, parent, label)) return id;
    }
    if (stacks->node_count == stacks->node_capacity && !grow_nodes(stacks)) return 0;

    id = stacks->node_count++;
    uint32_t *head = &stacks->node_index[hash & (stacks->node_index_size - 1)];
    /*
     * Node 0, the empty stack, is all zero, and no label is 0. GCC 14 compiles a test for "no parent"
     * here into a trap.
     */
    const struct vm_trace_node *below = &stacks->nodes[parent];
    bool same = below->label == label;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without nodes rb_vm_trace_stacks_init failed */
    stacks->nodes[id] = (struct vm_trace_node){
        .parent = parent, .label = label,
        .depth = below->depth + 1,
        .run = same ? below->run + 1 : 1,
        .beyond = same ? below->beyond : parent,
        .next = *head
    };
    *head = id;
    return id;
}

/* Nothing is known of any frame any more. */
static void
forget_frames(struct rb_vm_trace_stacks *stacks)
{
    stacks->walk.count = stacks->named = 0;
    memset(stacks->walk.frames, 0, stacks->walk.capacity * sizeof(*stacks->walk.frames));
}

/* --- freed ranges -------------------------------------------------------------------------- */

static int
compare_ranges(const void *a, const void *b)
{
    const struct vm_trace_range *x = a, *y = b;
    if (x->methods != y->methods) return x->methods ? 1 : -1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/*
 * Sort the ranges and join what overlaps: freed memory may have been used again, in other
 * pieces, and freed again. Returns how many ranges are left.
 */
static size_t
sort_ranges(struct vm_trace_range *ranges, size_t count)
{
    qsort(ranges, count, sizeof(*ranges), compare_ranges);
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        struct vm_trace_range *last = left ? &ranges[left - 1] : NULL;
        if (last && last->methods == ranges[i].methods && ranges[i].from <= last->to) {
            if (ranges[i].to > last->to) last->to = ranges[i].to;
        }
        else {
            ranges[left++] = ranges[i];
        }
    }
    return left;
}

/* Is there a range of that sort around the address? The ranges are sorted and apart. */
static bool
in_ranges(const struct vm_trace_range *ranges, size_t count, bool methods, uintptr_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct vm_trace_range *range = &ranges[middle];
        if (range->methods != methods) {
            if (range->methods) high = middle;
            else low = middle + 1;
        }
        else if (address < range->from) high = middle;
        else if (address >= range->to) low = middle + 1;
        else return true;
    }
    return false;
}

/* One more freed range; or too many to list. The lock is held. */
static void
publish(uint64_t count)
{
    __atomic_store_n(&deaths.count, count, __ATOMIC_RELEASE);
    uint64_t old = trace_changes();
    while (!__atomic_compare_exchange_n(&rb_vm_trace_changes, &old, old + (UINT64_C(1) << 32), false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
        continue;
}

void
rb_vm_trace_next_epoch(void)
{
    uint64_t old = trace_changes(), next;
    do next = (old & ~(uint64_t)UINT32_MAX) | (uint32_t)(old + 1);
    while (!__atomic_compare_exchange_n(&rb_vm_trace_changes, &old, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

void
rb_vm_trace_died(struct vm_trace_range range)
{
    pthread_mutex_lock(&rb_vm_trace_deaths_lock);
    uint64_t count = deaths.count;
    /* Release: whoever reads one of these also sees the count that came before it (copy_deaths). */
    __atomic_store_n(&deaths.log[count % LOG_SIZE].from, range.from | range.methods, __ATOMIC_RELEASE);
    __atomic_store_n(&deaths.log[count % LOG_SIZE].to, range.to, __ATOMIC_RELEASE);
    publish(count + 1);
    pthread_mutex_unlock(&rb_vm_trace_deaths_lock);
}

void
rb_vm_trace_all_died(void)
{
    pthread_mutex_lock(&rb_vm_trace_deaths_lock);
    publish(deaths.count + LOG_SIZE);
    pthread_mutex_unlock(&rb_vm_trace_deaths_lock);
}

void
rb_vm_trace_stacks_forget_all(struct rb_vm_trace_stacks *stacks)
{
    stacks->deaths = __atomic_load_n(&deaths.count, __ATOMIC_ACQUIRE) - LOG_SIZE;
    stacks->changes = ~trace_changes();
}

/*
 * Copy the deaths since the last time into stacks->dead. False: they are too many, or were written
 * over meanwhile.
 */
static bool
copy_deaths(struct rb_vm_trace_stacks *stacks, size_t *count_out)
{
    uint64_t from = stacks->deaths, to = __atomic_load_n(&deaths.count, __ATOMIC_ACQUIRE);
    stacks->deaths = to;
    if (to - from > MAX_DEAD) return false;
    for (uint64_t i = from; i < to; i++) {
        uintptr_t start = __atomic_load_n(&deaths.log[i % LOG_SIZE].from, __ATOMIC_ACQUIRE);
        uintptr_t end = __atomic_load_n(&deaths.log[i % LOG_SIZE].to, __ATOMIC_ACQUIRE);
        stacks->dead[i - from] = (struct vm_trace_range){ start & ~(uintptr_t)1, end, start & 1 };
    }
    *count_out = (size_t)(to - from);
    /* Where the first of them stood another is written while so many are counted. */
    return __atomic_load_n(&deaths.count, __ATOMIC_ACQUIRE) - from < LOG_SIZE;
}

/* Whether a label may be one of the dead, which are sorted. */
static bool
label_died(const struct rb_vm_trace_stacks *stacks, size_t dead_count, const struct vm_trace_label *label)
{
    return in_ranges(stacks->dead, dead_count, false, label->pc & HOST_PC_MASK) ||
        (label->method && in_ranges(stacks->dead, dead_count, true, label->method));
}

static void
forget_dead(struct rb_vm_trace_stacks *stacks)
{
    size_t dead_count = 0;
    bool all = !copy_deaths(stacks, &dead_count), any = false;
    if (!all) dead_count = sort_ranges(stacks->dead, dead_count);
    for (uint32_t id = 1; id < stacks->label_count; id++) {
        struct vm_trace_label *label = &stacks->labels[id];
        if (!label->pc || !(all || label_died(stacks, dead_count, label))) continue;
        free(label->text);
        label->text = NULL;
        label->pc = 0;
        label->next_free = stacks->free_label;
        stacks->free_label = id;
        stacks->labels_alive--;
        any = true;
    }
    /* The slots of the last walk may hold an address that is used again, known label or not. */
    forget_frames(stacks);
    stacks->noted_iseq = NULL;
    stacks->noted_method = 0;
    if (any) {
        index_all_labels(stacks);
        forget_nodes(stacks); /* ids of labels will be used again */
    }
}

void
rb_vm_trace_stacks_catch_up(struct rb_vm_trace_stacks *stacks)
{
    stacks->changes = trace_changes(); /* before the log is looked at, which it is stored after */
    if (stacks->deaths != __atomic_load_n(&deaths.count, __ATOMIC_ACQUIRE)) forget_dead(stacks);
    stacks->tree++; /* after a reset no event is written once more without being marked (ractor_state.h) */
}

/* --- capture ------------------------------------------------------------------------------ */

static bool
grow_frames(struct vm_trace_walk *walk, size_t needed)
{
    size_t capacity = walk->capacity;
    while (capacity < needed) capacity *= 2;
    struct vm_trace_frame *frames = realloc(walk->frames, capacity * sizeof(*frames));
    if (!frames) return false;
    memset(frames + walk->capacity, 0, (capacity - walk->capacity) * sizeof(*frames));
    walk->frames = frames;
    walk->capacity = capacity;
    return true;
}

/*
 * Ids and nodes of the frames that have none. A slot past the named ones may hold the frame of an
 * older walk. Its label still counts, being the frame's own; its node only if what is under it is
 * the same again. Called in one place, so that it is inlined there with what it calls: calls would be
 * 4 % of an exit at another place than the last one.
 */
static bool
name_frames(struct rb_vm_trace_stacks *stacks)
{
    size_t count = stacks->walk.count;
    if (stacks->node_count + (count - stacks->named) > MAX_NODES) {
        forget_nodes(stacks);
        stacks->named = 0;
    }
    struct vm_trace_frame *frames = stacks->walk.frames;
    uint32_t node = stacks->named > 0 ? frames[stacks->named - 1].node : 0;
    for (size_t i = stacks->named; i < count; i++) {
        if (!frames[i].id) frames[i].id = find_label(stacks, &frames[i]);
        if (!frames[i].id) return false;
        if (!node_is(stacks, frames[i].node, node, frames[i].id)) {
            frames[i].node = find_node(stacks, node, frames[i].id);
            if (!frames[i].node) return false;
        }
        node = frames[i].node;
    }
    stacks->named = count;
    return true;
}

bool
rb_vm_trace_stacks_capture_rest(struct rb_vm_trace_stacks *stacks, struct rb_execution_context_struct *ec,
                                uintptr_t top_pc, bool walked)
{
    struct vm_trace_walk *walk = &stacks->walk;
    if (!walked) walked = grow_frames(walk, walk->count) && rb_vm_trace_host_walk(walk, ec, top_pc);
    if (walked) {
        if (walk->changed < stacks->named) stacks->named = walk->changed;
        if (stacks->named >= walk->count || name_frames(stacks)) return true;
    }
    forget_frames(stacks);
    return false;
}

bool
rb_vm_trace_stacks_put(struct rb_vm_trace_stacks *stacks, const struct vm_trace_sampled_frame *frames, size_t from,
                       size_t count)
{
    struct vm_trace_walk *walk = &stacks->walk;
    if (trace_changes() != stacks->changes) rb_vm_trace_stacks_catch_up(stacks);
    if (count > walk->capacity && !grow_frames(walk, count)) {
        forget_frames(stacks);
        return false;
    }
    walk->changed = SIZE_MAX;
    if (from > walk->count) from = 0; /* they were forgotten: all of them */
    for (size_t i = from; i < count; i++) {
        struct vm_trace_frame *frame = &walk->frames[i];
        const struct vm_trace_sampled_frame *given = &frames[i];
        if (frame->pc == given->pc && frame->method == given->method && frame->id) continue;
        /* Its kind is not known, so that a walk looks into it. */
        *frame = (struct vm_trace_frame){ .pc = given->pc, .method = given->method, .iseq = given->iseq };
        if (walk->changed > i) walk->changed = i;
    }
    walk->count = count;
    return rb_vm_trace_stacks_capture_rest(stacks, NULL, 0, true);
}

uint32_t
rb_vm_trace_stacks_top(struct rb_vm_trace_stacks *stacks, struct rb_execution_context_struct *ec)
{
    struct vm_trace_frame frame;
    if (trace_changes() != stacks->changes) rb_vm_trace_stacks_catch_up(stacks);
    return rb_vm_trace_host_top(ec, &frame) ? find_label(stacks, &frame) : 0;
}

uint32_t
rb_vm_trace_label_method(struct vm_trace_label *label)
{
    static const char REQUIRED[] = "required)"; /* "<top (required)>", and "block (2 levels) in foo" */
    if (label->method_bytes) return label->method_bytes;
    label->method_bytes = label->bytes;
    for (uint32_t at = 1; at + 2 < label->bytes; at++) {
        const char *text = label->text + at;
        if (text[0] != ' ' || text[1] != '(' || (text[2] >= '0' && text[2] <= '9')) continue;
        size_t left = label->bytes - at - 2;
        if (left >= sizeof(REQUIRED) - 1 && memcmp(text + 2, REQUIRED, sizeof(REQUIRED) - 1) == 0) continue;
        label->method_bytes = at;
        break;
    }
    return label->method_bytes;
}

/* --- the tail ------------------------------------------------------------------------------ */

const char *
rb_vm_trace_stacks_tail(struct rb_vm_trace_stacks *stacks, uint32_t node, size_t kept, size_t *bytes_out)
{
    /* Room is kept for " < 4294967295 more frames", so that the note always fits. */
    enum { NOTE_BYTES = 32, COUNT_BYTES = 16 };
    static const char SEPARATOR[] = " < ";
    char *text = rb_vm_trace_stacks_scratch(stacks, STACKS_TAIL_BYTES);
    if (!text) {
        *bytes_out = 0;
        return "";
    }
    size_t bytes = 0;
    uint32_t left = stacks->nodes[node].depth;
    while (left > 0) {
        const struct vm_trace_node *top = &stacks->nodes[node];
        const struct vm_trace_label *label = &stacks->labels[top->label];
        size_t separator = bytes ? sizeof(SEPARATOR) - 1 : 0;
        if (kept == 0 || bytes + separator + label->bytes + COUNT_BYTES + NOTE_BYTES > STACKS_TAIL_BYTES) {
            bytes += (size_t)snprintf(text + bytes, NOTE_BYTES, "%s%u more frame%s", bytes ? SEPARATOR : "", left,
                                      left == 1 ? "" : "s");
            break;
        }
        uint32_t run = top->run < kept ? top->run : (uint32_t)kept;
        memcpy(text + bytes, SEPARATOR, separator);
        bytes += separator;
        memcpy(text + bytes, label->text, label->bytes);
        bytes += label->bytes;
        if (run > 1) bytes += (size_t)snprintf(text + bytes, COUNT_BYTES, " x%u", run);
        left -= run;
        kept -= run; /* 0 where the run goes on: then only `left` counts */
        node = top->beyond;
    }
    *bytes_out = bytes;
    return text;
}
