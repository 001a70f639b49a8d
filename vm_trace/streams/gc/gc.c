/*
 * Garbage collections. See gc.h.
 *
 * A pause begins before its name is known: the GC chooses between minor and major after it has
 * stopped other ractors. So the begins of the pause and of the wait are written a little later, with
 * their own times. The thread writes nothing else in between.
 *
 * Sessions start and stop between pauses: no Ruby code runs in a pause, and the world is stopped.
 */
#include "vm_trace/streams/gc/gc.h"
#include "vm_trace/streams/allocations/allocations.h"
#include "vm_trace/streams/samples/samples.h"
#include "vm_trace/streams/states/states.h"

#include <string.h>

int rb_vm_trace_gc_on;

/* Not among the known strings, because most traces have no collections. */
#define TEXTS(X) \
    X(CATEGORY, "gc") X(MINOR, "GC minor") X(MAJOR, "GC major") X(MARKING, "mark") X(SWEEPING, "sweep") \
    X(COMPACTING, "compact") X(STOPPING, "barrier") X(HEAP, "GC heap") \
    X(COUNT, "count") X(REASON, "reason") X(MAJOR_BY, "major_by") X(FREED_SLOTS, "freed_slots") \
    X(HEAP_BYTES, "heap_bytes") X(LIVE_SLOTS, "live_slots") X(MALLOC_BYTES, "malloc_bytes") \
    X(NOFREE, "nofree") X(OLDGEN, "oldgen") X(SHADY, "shady") X(FORCE, "force") X(OLDMALLOC, "oldmalloc") \
    X(NEWOBJ, "newobj") X(MALLOC, "malloc") X(METHOD, "method") X(CAPI, "capi") X(STRESS, "stress")

enum text {
    NO_TEXT,
#define X(name, text) name,
    TEXTS(X)
#undef X
    TEXT_COUNT
};

static const char *const spellings[TEXT_COUNT] = {
#define X(name, text) [name] = (text),
    TEXTS(X)
#undef X
};

static const struct vm_trace_string *texts[TEXT_COUNT];

/* What may be open, after the phases. */
enum { BARRIER = RB_VM_TRACE_GC_PHASES, PAUSE };

struct vm_trace_gc_state {
    uint64_t collections, pauses;  /* recorded */
    uint64_t last_ns;              /* of the last event: no two events begin at the same time */
    uint64_t enter_ns;             /* begin of a pause that is not written yet; 0: none */
    uint64_t stopped_ns;           /* when other ractors were stopped; 0: there were none */
    uint64_t malloc_bytes;
    uint64_t freed_slots;          /* by the open sweep */
    unsigned open;                 /* a bit for each duration whose begin is in the trace */
    unsigned depth[RB_VM_TRACE_GC_PHASES];
    enum text name;                /* of the pause */
    /* Of texts in this chunk. */
    uint32_t serial;               /* of the chunk, in the writer */
    uint16_t indexes[TEXT_COUNT];  /* 0: not known */
};

static struct vm_trace_gc_state *
gc_of(const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(&rb_vm_trace_gc, ractor);
}

/* --- events ------------------------------------------------------------------------------------------- */

struct gc_argument {
    enum text key, text;           /* text: the value; NO_TEXT: it is the number */
    uint64_t number;
};

struct gc_event {
    enum fxt_event_type type;
    enum text name;
    uint64_t ns;
    uint64_t number;               /* of a counter */
    const struct gc_argument *arguments;
    unsigned count;
};

/* Index of a text in the chunk; 0: the chunk is full. */
static unsigned
index_of(struct vm_trace_gc_state *state, struct rb_vm_trace_writer *writer, enum text text)
{
    unsigned index = state->indexes[text];
    if (index) return index;
    if (!writer_interned(writer, texts[text], &index)) return 0;
    state->indexes[text] = (uint16_t)index;
    return index;
}

/*
 * event.h would look up the texts for each event. A phase has two events and may cost 100 ns, so this
 * writes them itself. The thread is looked up: what a sweep frees may write events on other tracks, which
 * take over its index.
 */
static bool
write_gc(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct gc_event *event = what;
    const struct gc_argument *argument = event->arguments, *last = argument + event->count;
    struct vm_trace_gc_state *state = gc_of(ractor);
    struct rb_vm_trace_writer *writer = &ractor->writer;
    if (state->serial != writer->serial) {
        state->serial = writer->serial;
        memset(state->indexes, 0, sizeof(state->indexes));
    }
    struct vm_trace_event begun;
    if (!rb_vm_trace_event_begin(&begun, ractor, ec, event->ns)) return false;

    bool counter = event->type == FXT_EVENT_COUNTER;
    unsigned category = index_of(state, writer, CATEGORY), name = index_of(state, writer, event->name);
    if (!category || !name) return false;
    size_t words = 2U + counter;
    for (; argument < last; argument++) {
        if (!index_of(state, writer, argument->key)) return false;
        if (argument->text && !index_of(state, writer, argument->text)) return false;
        words += argument->text ? 1 : 2;
    }

    uint64_t *to = writer_reserve(writer, words);
    if (!to) return false;
    *++to = begun.record[1];
    for (argument = event->arguments; argument < last; argument++) {
        unsigned key = state->indexes[argument->key];
        *++to = argument->text ? fxt_string_argument(key, state->indexes[argument->text]) : fxt_uint64_argument(key);
        if (!argument->text) *++to = argument->number;
    }
    if (counter) *++to = event->number;
    writer_publish(writer, words, fxt_event_header(event->type, words, event->count, begun.thread,
                                                   category, name));
    writer_count_events(writer, 1);
    return true;
}

/* The thread that collects. */
struct collector {
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor;
    struct vm_trace_gc_state *state;
};

/*
 * False: nothing can be recorded. A pause counts as a lost event when there was no memory for its
 * ractor's state.
 */
static bool
find_collector(struct collector *collector, bool enters)
{
    bool recorded = rb_vm_trace_gc_on & RB_VM_TRACE_COLLECTIONS_RECORDED && trace_on();
    collector->ec = recorded ? rb_vm_trace_host_current() : NULL;
    if (!collector->ec) return false;
    collector->ractor = rb_vm_trace_ractor_of(collector->ec);
    if (!collector->ractor) return false;
    if (collector->ractor == rb_vm_trace_capture.overflow) { /* ractors share it */
        if (enters) __atomic_fetch_add(&collector->ractor->lost, 1, __ATOMIC_RELAXED);
        return false;
    }
    ractor_notice_reset(collector->ractor);
    collector->state = gc_of(collector->ractor);
    return true;
}

static uint64_t
now_ns(const struct collector *collector)
{
    return clock_now_ns(&collector->ractor->clock);
}

/* Perfetto drops a duration that begins when another one does. */
static bool
put(const struct collector *collector, struct gc_event *event)
{
    struct vm_trace_gc_state *state = collector->state;
    if (event->ns <= state->last_ns) event->ns = state->last_ns + 1;
    state->last_ns = event->ns;
    return rb_vm_trace_event_write_in_epoch(collector->ractor, collector->ec, write_gc, event);
}

static void
begin(const struct collector *collector, unsigned what, enum text name, uint64_t ns,
      const struct gc_argument *arguments, unsigned count)
{
    struct gc_event event = { FXT_EVENT_DURATION_BEGIN, name, ns, 0, arguments, count };
    if (put(collector, &event)) collector->state->open |= 1U << what;
}

/* What was not begun has no end. */
static void
end(const struct collector *collector, unsigned what, enum text name, uint64_t ns,
    const struct gc_argument *arguments, unsigned count)
{
    struct gc_event event = { FXT_EVENT_DURATION_END, name, ns, 0, arguments, count };
    if (collector->state->open & 1U << what) put(collector, &event);
    collector->state->open &= ~(1U << what);
}

/* --- a pause --------------------------------------------------------------------------------------------- */

void
rb_vm_trace_gc_enter(size_t malloc_bytes)
{
    struct collector collector;
    if (rb_vm_trace_gc_on & RB_VM_TRACE_COLLECTIONS_SAMPLED) rb_vm_trace_samples_gc_enter();
    if (!find_collector(&collector, true)) return;
    struct vm_trace_gc_state *state = collector.state;
    state->enter_ns = now_ns(&collector);
    state->stopped_ns = 0;
    state->malloc_bytes = malloc_bytes;
    state->open = 0;
    memset(state->depth, 0, sizeof(state->depth));
}

void
rb_vm_trace_gc_stopped(void)
{
    struct collector collector;
    if (find_collector(&collector, false)) collector.state->stopped_ns = now_ns(&collector);
}

/* False: its begin is not in the trace. */
static bool
begin_pause(const struct collector *collector, bool major, const struct gc_argument *arguments, unsigned count)
{
    struct vm_trace_gc_state *state = collector->state;
    if (!state->enter_ns) return false;
    state->name = major ? MAJOR : MINOR;
    uint64_t enter_ns = state->enter_ns;
    begin(collector, PAUSE, state->name, enter_ns, arguments, count);
    state->enter_ns = 0;
    if (!state->open) return false;
    state->pauses++;
    rb_vm_trace_states_pause(collector->ractor, collector->ec, enter_ns);
    if (!state->stopped_ns) return true;
    begin(collector, BARRIER, STOPPING, 0, NULL, 0); /* at once */
    end(collector, BARRIER, STOPPING, state->stopped_ns, NULL, 0);
    return true;
}

/* The first that applies is the one that GC.latest_gc_info names. */
struct reason {
    unsigned bit;
    enum text text;
};

static enum text
text_of(const struct reason *list, unsigned bits)
{
    while (list->bit && !(list->bit & bits)) list++;
    return list->text;
}

static enum text
reason_of(unsigned bits)
{
    static const struct reason list[] = { { RB_VM_TRACE_GC_NEWOBJ, NEWOBJ }, { RB_VM_TRACE_GC_MALLOC, MALLOC },
                                          { RB_VM_TRACE_GC_METHOD, METHOD }, { RB_VM_TRACE_GC_CAPI, CAPI },
                                          { RB_VM_TRACE_GC_STRESS, STRESS }, { 0, NO_TEXT } };
    return text_of(list, bits);
}

static enum text
major_by(unsigned bits)
{
    static const struct reason list[] = { { RB_VM_TRACE_GC_NOFREE, NOFREE }, { RB_VM_TRACE_GC_OLDGEN, OLDGEN },
                                          { RB_VM_TRACE_GC_SHADY, SHADY }, { RB_VM_TRACE_GC_FORCE, FORCE },
                                          { RB_VM_TRACE_GC_OLDMALLOC, OLDMALLOC }, { 0, NO_TEXT } };
    return text_of(list, bits);
}

void
rb_vm_trace_gc_start(size_t count, bool major, unsigned int reason)
{
    struct collector collector;
    if (!find_collector(&collector, false)) return;
    struct gc_argument arguments[3] = { { COUNT, NO_TEXT, count } };
    unsigned given = 1;
    enum text text = reason_of(reason);
    if (text) arguments[given++] = (struct gc_argument){ REASON, text, 0 };
    text = major_by(reason);
    if (text) arguments[given++] = (struct gc_argument){ MAJOR_BY, text, 0 };
    if (begin_pause(&collector, major, arguments, given)) collector.state->collections++;
}

void
rb_vm_trace_gc_continue(size_t count, bool major)
{
    struct collector collector;
    if (!find_collector(&collector, false)) return;
    begin_pause(&collector, major, &(struct gc_argument){ COUNT, NO_TEXT, count }, 1);
}

static const enum text phase_names[RB_VM_TRACE_GC_PHASES] = {
    [RB_VM_TRACE_GC_MARK] = MARKING, [RB_VM_TRACE_GC_SWEEP] = SWEEPING, [RB_VM_TRACE_GC_COMPACT] = COMPACTING
};

/*
 * A GC of several heaps at once may begin the same phase of each before it ends the first. What a
 * sweep freed is the sum of the counts at its ends, less those at its begins.
 */
void
rb_vm_trace_gc_begin(enum rb_vm_trace_gc_phase phase, size_t freed_slots)
{
    struct collector collector;
    if (!find_collector(&collector, false)) return;
    struct vm_trace_gc_state *state = collector.state;
    if (!(state->open & 1U << PAUSE)) return;
    if (phase == RB_VM_TRACE_GC_SWEEP) {
        if (state->depth[phase] == 0) state->freed_slots = 0;
        state->freed_slots -= freed_slots;
    }
    if (state->depth[phase]++ == 0) begin(&collector, phase, phase_names[phase], now_ns(&collector), NULL, 0);
}

void
rb_vm_trace_gc_end(enum rb_vm_trace_gc_phase phase, size_t freed_slots)
{
    struct collector collector;
    if (!find_collector(&collector, false)) return;
    struct vm_trace_gc_state *state = collector.state;
    if (!state->depth[phase]) return;
    if (phase == RB_VM_TRACE_GC_SWEEP) state->freed_slots += freed_slots;
    if (--state->depth[phase]) return;
    struct gc_argument freed = { FREED_SLOTS, NO_TEXT, state->freed_slots };
    end(&collector, phase, phase_names[phase], now_ns(&collector), &freed, phase == RB_VM_TRACE_GC_SWEEP);
}

static void
end_pause(size_t heap_bytes, size_t live_slots, bool ractor_heap)
{
    struct collector collector;
    if (!find_collector(&collector, false)) return;
    struct vm_trace_gc_state *state = collector.state;
    state->enter_ns = 0; /* it belongs to no collection */
    if (!(state->open & 1U << PAUSE)) return;
    uint64_t ns = now_ns(&collector);
    /* Without memory, the GC gives up in the middle. */
    for (unsigned phase = RB_VM_TRACE_GC_PHASES; phase-- > 0;) {
        end(&collector, phase, phase_names[phase], ns, NULL, 0);
    }
    memset(state->depth, 0, sizeof(state->depth));
    end(&collector, PAUSE, state->name, ns, NULL, 0);
    rb_vm_trace_states_resume(collector.ractor, collector.ec, VM_TRACE_GC, 0, ns);

    const struct gc_argument heap[] = { { HEAP_BYTES, NO_TEXT, heap_bytes },
                                        { LIVE_SLOTS, NO_TEXT, live_slots },
                                        { MALLOC_BYTES, NO_TEXT, state->malloc_bytes } };
    struct gc_event event = { FXT_EVENT_COUNTER, HEAP, ns, ractor_heap ? collector.ractor->number : 0,
                              heap, sizeof(heap) / sizeof(heap[0]) };
    put(&collector, &event);
}

void
rb_vm_trace_gc_exit(size_t heap_bytes, size_t live_slots, bool ractor_heap)
{
    end_pause(heap_bytes, live_slots, ractor_heap);
    if (rb_vm_trace_gc_on & RB_VM_TRACE_COLLECTIONS_SAMPLED) rb_vm_trace_samples_gc_exit();
}

/* --- the stream --------------------------------------------------------------------------------------- */

static const char *
start_gc(bool by_flags)
{
    (void)by_flags;
    if (!rb_vm_trace_gc.rate) return NULL;
    for (int i = NO_TEXT + 1; i < TEXT_COUNT; i++) {
        texts[i] = rb_vm_trace_string_permanent(spellings[i], strlen(spellings[i]));
        if (!texts[i]) return "out of memory";
    }
    rb_vm_trace_gc_on |= RB_VM_TRACE_COLLECTIONS_RECORDED;
    return NULL;
}

static void
stop_gc(void)
{
    rb_vm_trace_gc_on &= ~RB_VM_TRACE_COLLECTIONS_RECORDED;
}

/* A pause that is open belongs to what was recorded before: its end is left out. */
static void
forget_pause(struct rb_vm_trace_ractor *ractor)
{
    *gc_of(ractor) = (struct vm_trace_gc_state){ 0 };
}

enum { GC_COLLECTIONS, GC_PAUSES };
static const char *const counters[] = { [GC_COLLECTIONS] = "gc_collections", [GC_PAUSES] = "gc_pauses", NULL };

static void
add_counts(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    const struct vm_trace_gc_state *state = gc_of(ractor);
    *stream_counter(&rb_vm_trace_gc, totals, GC_COLLECTIONS) += state->collections;
    *stream_counter(&rb_vm_trace_gc, totals, GC_PAUSES) += state->pauses;
}

static const char *
refuse_gc(uint64_t rate, const char *only)
{
    (void)only;
    return rate ? rb_vm_trace_why_no_collections() : NULL;
}

struct rb_vm_trace_stream rb_vm_trace_gc = {
    .name = "gc",
    .counters = counters,
    .without_jit = true,
    .ractor_bytes = sizeof(struct vm_trace_gc_state),
    .refuse = refuse_gc,
    .start = start_gc,
    .stop = stop_gc,
    .ractor_begin = forget_pause,
    .ractor_epoch = forget_pause,
    .ractor_count = add_counts
};
