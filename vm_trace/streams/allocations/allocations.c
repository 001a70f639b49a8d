/*
 * Allocations. See allocations.h.
 *
 * The sample points are a Poisson process over the allocated bytes: the distance to the next point
 * does not depend on earlier ones. So each heap counts on its own, and can start a new count at any
 * time.
 */
#include "vm_trace/streams/allocations/allocations.h"
#include "vm_trace/base/text_cache.h"
#include "vm_trace/streams/allocations/live_samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int rb_vm_trace_allocations_on;
unsigned rb_vm_trace_allocations_due;
size_t rb_vm_trace_buffers_from = SIZE_MAX;

struct vm_trace_allocations_state {
    uint64_t samples;             /* recorded */
    uint64_t bytes;               /* that these stand for */
    uint64_t last_ns;             /* of the last `freed` or `alive`: each has a time of its own */
    void *objspace;               /* of the sample that has no class yet */
    size_t slot_bytes;            /* of the same; 0: there is none */
    bool in_buffer;               /* a buffer is being recorded */
    struct vm_trace_text_cache names; /* of classes */
};

/* Not among the known strings, because most traces have no allocations. */

static uint64_t last_sample;          /* the number of the last one in this trace */
static uint64_t randomness;           /* see random_bits */
static unsigned sampling;             /* its number, from 1; a child of a fork begins another one */
static uint64_t buffers_left_out;     /* that were allocated without the GVL, or in a collection */
static void (*begin_gaps)(void);      /* NULL: the GC can't sample */
static bool (*slot_p)(void *objspace, uintptr_t word);

static struct vm_trace_allocations_state *
allocations_of(const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(&rb_vm_trace_allocations, ractor);
}

/* --- when ------------------------------------------------------------------------------------------ */

void
rb_vm_trace_allocations_supported(void (*gaps)(void), bool (*slot)(void *objspace, uintptr_t word))
{
    begin_gaps = gaps;
    slot_p = slot;
}

const char *
rb_vm_trace_why_no_collections(void)
{
    return begin_gaps ? NULL : "this GC does not tell of its collections; the default GC does";
}

/* SplitMix64 (Steele, Lea, Flood 2014): its state is a counter, so threads share it without a lock. */
static uint64_t
random_bits(void)
{
    uint64_t x = __atomic_add_fetch(&randomness, UINT64_C(0x9E3779B97F4A7C15), __ATOMIC_RELAXED);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* Children of a fork begin with the same counter, so the time is mixed in. */
static void
begin_random(void)
{
    randomness ^= rb_vm_trace_clock_system_ns() * UINT64_C(0x9E3779B97F4A7C15) + rb_vm_trace_capture.pid;
}

/* Bytes, exponentially distributed with the mean `rate`. */
static double
random_distance(void)
{
    double uniform = (double)((random_bits() >> 11) + 1) * 0x1p-53; /* in (0, 1] */
    return -log(uniform) * (double)rb_vm_trace_allocations.rate;
}

size_t
rb_vm_trace_allocation_gap(size_t slot_bytes)
{
    uint64_t rate = rb_vm_trace_allocations.rate;
    if (rate <= 1) return rate ? 1 : RB_VM_TRACE_MOST_OBJECTS;
    double objects = random_distance() / (double)slot_bytes;
    return 1 + (objects < (double)RB_VM_TRACE_MOST_OBJECTS ? (size_t)objects : RB_VM_TRACE_MOST_OBJECTS - 1);
}

/*
 * The bytes that a sample stands for: its size divided by the probability that such an object is
 * sampled.
 */
static uint32_t
weight_of(size_t slot_bytes)
{
    double bytes = (double)slot_bytes, rate = (double)rb_vm_trace_allocations.rate;
    double weight = rate <= 1 ? bytes : bytes / -expm1(-bytes / rate) + 0.5;
    return weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
}

/*
 * Whether a buffer is a sample. Each native thread counts on its own, without a lock: the sample points of all
 * together are a Poisson process, too.
 */
static bool
buffer_due_p(size_t bytes)
{
    static __thread double to_sample;
    static __thread unsigned of_sampling;
    if (rb_vm_trace_allocations.rate <= 1) return rb_vm_trace_allocations.rate == 1;
    if (of_sampling != sampling) {
        of_sampling = sampling;
        to_sample = random_distance();
    }
    to_sample -= (double)bytes;
    if (to_sample > 0) return false;
    to_sample = random_distance();
    return true;
}

/* --- samples --------------------------------------------------------------------------------------- */

/* NULL: nothing can be recorded; an event that should be is counted as lost. */
static struct rb_vm_trace_ractor *
current_ractor(struct rb_execution_context_struct **ec_out)
{
    *ec_out = trace_on() ? rb_vm_trace_host_current() : NULL;
    struct rb_vm_trace_ractor *ractor = *ec_out ? rb_vm_trace_ractor_of(*ec_out) : NULL;
    if (!ractor) return NULL;
    if (ractor == rb_vm_trace_capture.overflow) { /* ractors share it */
        __atomic_fetch_add(&ractor->lost, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    ractor_notice_reset(ractor);
    return ractor;
}

void
rb_vm_trace_allocation_due(void *objspace, size_t slot_bytes)
{
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = current_ractor(&ec);
    if (!ractor) return;
    struct vm_trace_allocations_state *state = allocations_of(ractor);
    if (!state->slot_bytes) __atomic_fetch_add(&rb_vm_trace_allocations_due, 1, __ATOMIC_RELAXED);
    state->objspace = objspace;
    state->slot_bytes = slot_bytes;
}

struct sample {
    uint64_t number, ns;
    uint32_t size, weight;
    const struct vm_trace_string *class_name;
    bool stack, untracked;
    void *objspace;
    uintptr_t object;   /* 0: a buffer */
    const void *buffer;
    size_t buffer_bytes;
};

static bool
key_index(struct vm_trace_event *event, const struct vm_trace_string *key, enum known_string *index_out)
{
    unsigned index;
    if (!writer_interned(event->writer, key, &index)) return false;
    *index_out = (enum known_string)index;
    return true;
}

/* What all events of a sample share: the KNOWN(ALLOCATION), a name, and the number as first argument. */
static bool
add_head(struct vm_trace_event *event, const struct vm_trace_string *name, uint64_t number,
         enum known_string *category_out, unsigned *name_out)
{
    enum known_string key;
    if (!key_index(event, KNOWN(ALLOCATION), category_out) || !writer_interned(event->writer, name, name_out) ||
        !key_index(event, KNOWN(SAMPLE), &key))
        return false;
    event_uint64(event, key, number);
    return true;
}

static bool
write_sample(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct sample *sample = what;
    struct vm_trace_event event;
    enum known_string in, key;
    unsigned name;
    if (!rb_vm_trace_event_begin_in_fiber(&event, ractor, ec, sample->ns)) return false;
    if (!add_head(&event, sample->class_name, sample->number, &in, &name)) return false;
    if (!key_index(&event, KNOWN(SIZE), &key)) return false;
    event_uint32(&event, key, sample->size);
    event_uint32(&event, STRING_WEIGHT, sample->weight);
    if (sample->untracked) {
        if (!key_index(&event, KNOWN(UNTRACKED), &key)) return false;
        event_uint32(&event, key, 1);
    }
    if (sample->stack && !rb_vm_trace_event_backtrace(&event, &ractor->stacks, 0)) return false;
    return event_end(&event, FXT_EVENT_INSTANT, in, name);
}

static size_t
make_class_name(const void *object, char *buffer, size_t capacity)
{
    return rb_vm_trace_host_class_name(*(const uintptr_t *)object, buffer, capacity);
}

/* NULL: no memory. */
static struct vm_trace_live_origin *
keep_origin(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const struct sample *sample)
{
    struct vm_trace_live_origin *origin = calloc(1, sizeof(*origin));
    if (!origin) return NULL;
    origin->refs = 1;
    if (!sample->object) {
        origin->buffer = sample->buffer;
        origin->buffer_bytes = sample->buffer_bytes;
        origin->word_count = rb_vm_trace_host_stack_words(ec, origin->words, LIVE_SAMPLES_WORDS);
    }
    if (!rb_vm_trace_capture.in_memory) return origin;
    origin->size = sample->size;
    origin->weight = sample->weight;
    origin->ns = sample->ns;
    origin->class_name = rb_vm_trace_string_intern(sample->class_name->text, sample->class_name->bytes);
    if (sample->stack) rb_vm_trace_backtrace_keep(&ractor->stacks, origin->frames);
    if (origin->class_name) return origin;
    rb_vm_trace_live_origin_release(origin);
    return NULL;
}

/* Writes a sample, and follows it from now on if there is room. */
static void
record(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, struct sample *sample)
{
    struct vm_trace_allocations_state *state = allocations_of(ractor);
    sample->weight = weight_of(sample->object ? sample->size : sample->buffer_bytes);
    sample->stack = stacks_capture(&ractor->stacks, ec, 0);
    sample->ns = clock_now_ns(&ractor->clock);
    sample->number = __atomic_add_fetch(&last_sample, 1, __ATOMIC_RELAXED);
    struct vm_trace_live_sample live = { .objspace = sample->objspace, .sample = sample->number,
                                         .malloc_bytes = HOST_BYTES_UNKNOWN, .epoch = ractor->epoch };
    if (rb_vm_trace_capture.in_memory || !sample->object) live.origin = keep_origin(ractor, ec, sample);
    size_t place = sample->object || live.origin ? rb_vm_trace_live_samples_take() : LIVE_SAMPLES_MOST;
    sample->untracked = place == LIVE_SAMPLES_MOST;
    bool written = rb_vm_trace_event_write_in_epoch(ractor, ec, write_sample, sample);
    if (written) {
        state->samples++;
        state->bytes += sample->weight;
    }
    if (!sample->untracked && written) {
        if (sample->object) rb_vm_trace_live_samples_put(place, sample->object, live);
        else rb_vm_trace_live_samples_put_buffer(place, live);
        return;
    }
    if (!sample->untracked) rb_vm_trace_live_samples_give_back(place);
    rb_vm_trace_live_origin_release(live.origin);
}

void
rb_vm_trace_allocated_slow(uintptr_t object)
{
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_current(&ec);
    if (!ractor || !allocations_of(ractor)->slot_bytes) return; /* another ractor's sample */
    struct vm_trace_allocations_state *state = allocations_of(ractor);
    struct sample sample = { .size = (uint32_t)state->slot_bytes, .objspace = state->objspace, .object = object };
    state->slot_bytes = 0;
    __atomic_fetch_sub(&rb_vm_trace_allocations_due, 1, __ATOMIC_RELAXED);
    if (!rb_vm_trace_allocations_on || !trace_on()) return;

    rb_vm_trace_host_clear_object(object);
    size_t in_cache;
    sample.class_name = rb_vm_trace_text_cache_find(&state->names, make_class_name, &object, &in_cache);
    if (!sample.class_name) {
        ractor->lost++;
        return;
    }
    record(ractor, ec, &sample);
}

/* The object that will own the buffer is not known yet, see live_samples.h. */
void
rb_vm_trace_buffer_allocated_slow(void *objspace, const void *buffer, size_t bytes)
{
    if (!buffer_due_p(bytes) || !trace_on()) return;
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    if (!ec || !rb_vm_trace_host_has_gvl_p(ec) || rb_vm_trace_host_collecting_p()) {
        __atomic_fetch_add(&buffers_left_out, 1, __ATOMIC_RELAXED);
        return;
    }
    struct rb_vm_trace_ractor *ractor = current_ractor(&ec);
    struct vm_trace_allocations_state *state = ractor ? allocations_of(ractor) : NULL;
    if (!ractor || state->in_buffer) return;
    state->in_buffer = true;
    struct sample sample = { .size = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX, .class_name = KNOWN(BUFFER),
                             .objspace = objspace, .buffer = buffer, .buffer_bytes = bytes };
    record(ractor, ec, &sample);
    state->in_buffer = false;
}

/* --- what became of them --------------------------------------------------------------------------- */

struct fate {
    const struct vm_trace_live_sample *sample;
    const struct vm_trace_string *name;
    uint64_t ns;
};

/* What the event of the sample says, which may be gone. False: the chunk is full. */
static bool
add_origin(struct vm_trace_event *event, const struct vm_trace_live_origin *origin, uint64_t ns)
{
    enum known_string key;
    if (!event_interned_rarely(event, KNOWN(CLASS), origin->class_name) || !key_index(event, KNOWN(SIZE), &key))
        return false;
    event_uint32(event, key, origin->size);
    event_uint32(event, STRING_WEIGHT, origin->weight);
    if (!event_uint64_rarely(event, KNOWN(AGE_NS), ns > origin->ns ? ns - origin->ns : 0)) return false;
    return rb_vm_trace_event_kept_backtrace(event, origin->frames);
}

static bool
write_fate(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct fate *fate = what;
    struct vm_trace_event event;
    enum known_string in, key;
    unsigned name;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, fate->ns)) return false;
    if (!add_head(&event, fate->name, fate->sample->sample, &in, &name)) return false;
    if (!key_index(&event, KNOWN(SURVIVED), &key)) return false;
    event_uint32(&event, key, fate->sample->survived);
    bool known = fate->sample->malloc_bytes != HOST_BYTES_UNKNOWN;
    if (known && !event_uint64_rarely(&event, KNOWN(MALLOC_BYTES), fate->sample->malloc_bytes)) return false;
    const struct vm_trace_live_origin *origin = fate->sample->origin;
    const struct vm_trace_string *holder = origin ? __atomic_load_n(&origin->holder, __ATOMIC_ACQUIRE) : NULL;
    if (holder && !event_interned_rarely(&event, KNOWN(HOLDER), holder)) return false;
    bool described = fate->name == KNOWN(ALIVE) && origin && origin->class_name;
    if (described && !add_origin(&event, origin, fate->ns)) return false;
    return event_end(&event, FXT_EVENT_INSTANT, in, name);
}

static bool
put_fate(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
         const struct vm_trace_live_sample *sample, const struct vm_trace_string *name)
{
    struct vm_trace_allocations_state *state = allocations_of(ractor);
    struct fate fate = { sample, name, clock_now_ns(&ractor->clock) };
    if (fate.ns <= state->last_ns) fate.ns = state->last_ns + 1;
    state->last_ns = fate.ns;
    return rb_vm_trace_event_write_in_epoch(ractor, ec, write_fate, &fate);
}

struct collector {
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor; /* NULL: not looked for yet, or nothing can be recorded */
};

static void
write_freed(void *data, const struct vm_trace_live_sample *sample)
{
    struct collector *collector = data;
    if (sample->epoch != trace_epoch()) return; /* its allocation is older than the last reset */
    if (!collector->ractor) collector->ractor = current_ractor(&collector->ec);
    if (collector->ractor) put_fate(collector->ractor, collector->ec, sample, KNOWN(FREED));
}

void
rb_vm_trace_allocations_marked(void *objspace, bool (*alive)(void *objspace, uintptr_t object))
{
    struct collector collector = { NULL, NULL };
    if (trace_on()) rb_vm_trace_live_samples_marked(objspace, alive, write_freed, &collector);
}

void
rb_vm_trace_allocations_absorbed(void *to, const void *from)
{
    if (trace_on()) rb_vm_trace_live_samples_absorbed(to, from);
}

static void
objects_moved(void)
{
    if (rb_vm_trace_allocations_on) rb_vm_trace_live_samples_moved(rb_vm_trace_host_moved_to);
}

/* --- those that are alive at the end, or when a snapshot is taken ------------------------------------- */

static struct {
    struct vm_trace_live_sample *samples; /* LIVE_SAMPLES_MOST; NULL: no room was made yet */
    size_t count, next;                   /* those from `next` on are still to be written */
} living;

static bool program_ended; /* objects are being finalized: what they hold may be freed */

static void
measure(void *ignored)
{
    (void)ignored;
    rb_vm_trace_live_samples_measure();
}

/*
 * Before a snapshot, or before the objects of a program that has ended are finalized. A thread of the
 * tracer has no GVL: then what the last collection read has to do.
 */
static void
measure_living(void)
{
    if (!rb_vm_trace_allocations_on || program_ended) return;
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    if (ec && rb_vm_trace_host_has_gvl_p(ec)) rb_vm_trace_host_with_world_stopped(measure, NULL);
}

/* Not before an exec, which writes what a file lacks. */
static void
measure_for_snapshot(void)
{
    if (rb_vm_trace_capture.in_memory) measure_living();
}

static void
program_has_ended(void)
{
    measure_living();
    program_ended = true;
}

static bool
make_room(void)
{
    if (!rb_vm_trace_allocations.rate) return true;
    if (!living.samples) living.samples = malloc(LIVE_SAMPLES_MOST * sizeof(*living.samples));
    return living.samples != NULL;
}

/* Write the next one. */
static void
put_living(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    const struct vm_trace_live_sample *sample = &living.samples[living.next++];
    if (ractor) put_fate(ractor, ec, sample, sample->ownerless ? KNOWN(FREED) : KNOWN(ALIVE));
    rb_vm_trace_live_origin_release(sample->origin);
}

static void
drop_living(void)
{
    while (living.next < living.count) put_living(NULL, NULL);
}

static void
note_living(void)
{
    drop_living(); /* of a snapshot that could not be written */
    living.next = 0;
    living.count = rb_vm_trace_allocations.rate ? rb_vm_trace_live_samples_copy(living.samples, trace_epoch()) : 0;
}

static bool
write_living(struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    (void)totals; /* what is written is counted with the ractor's events */
    enum { AT_ONCE = 64 };
    for (int i = 0; i < AT_ONCE && living.next < living.count; i++) put_living(ractor, NULL);
    return living.next < living.count;
}

enum { SAMPLES, BYTES, LEFT_OUT };
static const char *const counters[] = { [SAMPLES] = "allocation_samples", [BYTES] = "allocation_bytes",
                                        [LEFT_OUT] = "allocation_buffers_left_out", NULL };

/* Clears nothing: the next trace does, when it begins. */
static void
report_living(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, struct vm_trace_totals *totals)
{
    /* Events are counted with those of the ractor. */
    *stream_counter(&rb_vm_trace_allocations, totals, LEFT_OUT) += buffers_left_out;
    if (!ractor || !rb_vm_trace_allocations.rate || !make_room()) return;
    note_living();
    while (living.next < living.count) put_living(ractor, ec);
}

/* --- the stream ------------------------------------------------------------------------------------ */

/* Bytes per sample from "512K", "1M", "1"; 0: not a valid size. */
static uint64_t
parse_size(const char *text)
{
    char *unit;
    errno = 0;
    uint64_t bytes = *text >= '0' && *text <= '9' ? strtoull(text, &unit, 10) : 0;
    if (bytes == 0 || errno || bytes > ALLOCATIONS_MOST_BYTES) return 0;
    const char *units = "KMG", *found = *unit ? strchr(units, *unit) : NULL;
    if (found) {
        bytes <<= 10 * (found - units + 1);
        unit++;
    }
    if (*unit || bytes > ALLOCATIONS_MOST_BYTES || (bytes < ALLOCATIONS_LEAST_BYTES && bytes != 1)) return 0;
    return bytes;
}

static bool
request_allocations(const char *option, uint64_t *rate_out, const char **only_out)
{
    (void)only_out;
    uint64_t bytes = parse_size(option);
    if (bytes) *rate_out = bytes;
    return bytes > 0;
}

static const char *
refuse_allocations(uint64_t rate, const char *only)
{
    (void)only;
    return !rate || begin_gaps ? NULL : "this GC has no sampling of allocations; the default GC has";
}

static const char *
start_allocations(bool by_flags)
{
    (void)by_flags;
    if (!rb_vm_trace_allocations.rate) return NULL;
    if (!rb_vm_trace_known_init()) return "out of memory";
    if (!rb_vm_trace_live_samples_init(slot_p)) return "out of memory";
    rb_vm_trace_live_samples_clear(false);
    last_sample = 0;
    rb_vm_trace_allocations_due = 0;
    begin_random();
    sampling++;
    buffers_left_out = 0;
    rb_vm_trace_allocations_on = 1;
    rb_vm_trace_buffers_from = slot_p ? LIVE_SAMPLES_BUFFER : SIZE_MAX;
    if (begin_gaps) begin_gaps();
    return NULL;
}

static void
stop_allocations(void)
{
    if (!rb_vm_trace_allocations_on) return;
    if (!program_ended) rb_vm_trace_live_samples_measure();
    rb_vm_trace_allocations_on = 0;
    rb_vm_trace_buffers_from = SIZE_MAX;
    if (begin_gaps) begin_gaps();
}

/* Live samples belong to the parent's trace. */
static void
begin_child(void)
{
    rb_vm_trace_live_samples_clear(true);
    living.next = living.count = 0;
    last_sample = 0;
    buffers_left_out = 0;
    rb_vm_trace_allocations_due = 0;
    begin_random();
    sampling++;
}

static void
count_from_0(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_allocations_state *state = allocations_of(ractor);
    state->samples = state->bytes = 0;
}

static void
forget_sample(struct rb_vm_trace_ractor *ractor)
{
    allocations_of(ractor)->slot_bytes = 0;
    count_from_0(ractor);
}

static void
free_names(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_allocations_state *state = allocations_of(ractor);
    if (state->slot_bytes) __atomic_fetch_sub(&rb_vm_trace_allocations_due, 1, __ATOMIC_RELAXED);
    rb_vm_trace_text_cache_free(&state->names);
}

static void
free_room(void)
{
    drop_living();
    free(living.samples);
    living.samples = NULL;
    living.next = living.count = 0;
    rb_vm_trace_live_samples_clear(false);
}

static void
add_counts(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    const struct vm_trace_allocations_state *state = allocations_of(ractor);
    *stream_counter(&rb_vm_trace_allocations, totals, SAMPLES) += state->samples;
    *stream_counter(&rb_vm_trace_allocations, totals, BYTES) += state->bytes;
}

static bool
write_settings(struct vm_trace_event *event)
{
    const uint64_t rate = rb_vm_trace_allocations.rate;
    if (rate && !rb_vm_trace_event_setting(event, "allocations", rate)) return false;
    return !rate || rb_vm_trace_event_setting(event, "allocations_buffers_from", LIVE_SAMPLES_BUFFER);
}

struct rb_vm_trace_stream rb_vm_trace_allocations = {
    .name = "allocations",
    .options = "a size, the bytes for one sample: 1K to 1G, or 1 for each object",
    .counters = counters,
    .default_rate = ALLOCATIONS_DEFAULT_BYTES,
    .without_jit = true,
    .ractor_bytes = sizeof(struct vm_trace_allocations_state),
    .request = request_allocations,
    .refuse = refuse_allocations,
    .start = start_allocations,
    .stop = stop_allocations,
    .finalizing = program_has_ended,
    .forget = free_room,
    .ractor_begin = forget_sample,
    .ractor_epoch = count_from_0,
    .ractor_free = free_names,
    .ractor_count = add_counts,
    .flush = measure_for_snapshot,
    .snapshot_room = make_room,
    .snapshot_begin = note_living,
    .snapshot_write = write_living,
    .compacted = objects_moved,
    .after_fork = begin_child,
    .write_settings = write_settings,
    .report = report_living
};
