/*
 * Ractor states: made, counted over all, freed, and reset. See ractor_state.h.
 */
#include "vm_trace/capture/ractor_state.h"
#include "vm_trace/platform/platform.h"

#include <string.h>
#include <sys/mman.h>

struct vm_trace_capture rb_vm_trace_capture = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .jit = "vm_trace",
    .file = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 },
    .shared = { .lock = PTHREAD_MUTEX_INITIALIZER, .writer = { .shares = true } }
};

#define capture rb_vm_trace_capture

void
rb_vm_trace_capture_register(struct rb_vm_trace_stream *const *streams)
{
    size_t bytes = VM_TRACE_FIRST_STATE;
    unsigned counters = 0;
    for (struct rb_vm_trace_stream *const *at = streams; *at; at++) {
        struct rb_vm_trace_stream *stream = *at;
        bytes = (bytes + VM_TRACE_STATE_ALIGN - 1) / VM_TRACE_STATE_ALIGN * VM_TRACE_STATE_ALIGN;
        stream->offset = bytes;
        bytes += stream->ractor_bytes;
        stream->first_counter = counters;
        for (const char *const *name = stream->counters; name && *name; name++) counters++;
    }
    capture.ractor_bytes = bytes;
    capture.streams = streams;
}

/* Address space of zeros: pages that are never touched cost nothing. */
struct rb_vm_trace_ractor *
rb_vm_trace_ractor_zeros(void)
{
    return rb_vm_trace_platform_zeros(capture.ractor_bytes);
}

static void
free_ractor(struct rb_vm_trace_ractor *ractor)
{
    EACH_STREAM(stream, ractor_free) stream->ractor_free(ractor);
    munmap(ractor, capture.ractor_bytes);
}

static bool
init_streams(struct rb_vm_trace_ractor *ractor)
{
    bool ok = true;
    EACH_STREAM(stream, ractor_init) ok = ok && stream->ractor_init(ractor);
    return ok;
}

static struct rb_vm_trace_ractor *
allocate_ractor(void)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_zeros();
    if (!ractor || init_streams(ractor)) return ractor;
    free_ractor(ractor);
    return NULL;
}

static struct rb_vm_trace_ractor *
use_overflow(void)
{
    capture.overflow_used = true;
    return capture.overflow;
}

static struct rb_vm_trace_ractor *
make_ractor(void)
{
    struct rb_vm_trace_ractor *ractor = allocate_ractor();
    if (!ractor) return use_overflow();
    if (!rb_vm_trace_stacks_init(&ractor->stacks)) {
        rb_vm_trace_stacks_free(&ractor->stacks);
        free_ractor(ractor);
        return use_overflow();
    }
    rb_vm_trace_writer_init(&ractor->writer, &capture.file, capture.pid);

    pthread_mutex_lock(&capture.lock);
    ractor->from_ns = rb_vm_trace_epoch_begin_ns(&ractor->epoch);
    ractor->number = capture.last_number++;
    ractor->next = capture.ractors;
    ractor->link = &capture.ractors;
    if (ractor->next) ractor->next->link = &ractor->next;
    capture.ractors = ractor;
    pthread_mutex_unlock(&capture.lock);
    return ractor;
}

__thread struct rb_vm_trace_ractor *rb_vm_trace_own_ractor;

struct rb_vm_trace_ractor *
rb_vm_trace_ractor_own(void)
{
    struct rb_vm_trace_ractor *ractor = make_ractor();
    return ractor == capture.overflow ? NULL : ractor;
}

struct rb_vm_trace_ractor *
rb_vm_trace_ractor_new(void)
{
    return trace_wanted() ? make_ractor() : NULL;
}

/*
 * What it counted before the last reset, which it has not noticed yet, does not count. capture.lock
 * held: so there is no other reset.
 */
static void
add_counts(struct vm_trace_totals *totals, const struct rb_vm_trace_ractor *ractor)
{
    if (__atomic_load_n(&ractor->epoch, __ATOMIC_ACQUIRE) != trace_epoch()) return;
    totals->lost += ractor->lost;
    totals->late += ractor->late;
    totals->unread += ractor->unread;
    totals->events += __atomic_load_n(&ractor->writer.events, __ATOMIC_ACQUIRE); /* writer_count_events */
    EACH_STREAM(stream, ractor_count) stream->ractor_count(ractor, totals);
}

/* Take it off the list. capture.lock held, or world stopped. */
static void
unlink_ractor(struct rb_vm_trace_ractor *ractor)
{
    *ractor->link = ractor->next;
    if (ractor->next) ractor->next->link = ractor->link;
    ractor->link = NULL;
}

void
rb_vm_trace_ractor_free(struct rb_vm_trace_ractor *ractor)
{
    if (!ractor || ractor == capture.overflow) return;

    pthread_mutex_lock(&capture.lock);
    if (ractor->link) { /* else its trace has ended, with all that it counted */
        unlink_ractor(ractor);
        EACH_STREAM(stream, ractor_end) stream->ractor_end(ractor);
        uint64_t latest_ns = clock_latest_ns(&ractor->clock);
        if (latest_ns > capture.dead_ns) capture.dead_ns = latest_ns;
        rb_vm_trace_writer_leave(&ractor->writer, &capture.shared, latest_ns);
        add_counts(&capture.dead, ractor);
    }
    pthread_mutex_unlock(&capture.lock);

    rb_vm_trace_writer_free(&ractor->writer);
    rb_vm_trace_stacks_free(&ractor->stacks);
    free_ractor(ractor);
}

struct rb_vm_trace_ractor *
rb_vm_trace_ractor_of(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(ec);
    if (ractor && (ractor == capture.overflow || ractor->link)) return ractor;
    /* Its ractor was being made when a trace was started or stopped. */
    struct rb_vm_trace_ractor *made = make_ractor();
    if (made) rb_vm_trace_host_set_ractor(ec, made);
    rb_vm_trace_ractor_free(ractor);
    return made;
}

struct rb_vm_trace_ractor *
rb_vm_trace_ractor_current(struct rb_execution_context_struct **ec_out)
{
    struct rb_execution_context_struct *ec = *ec_out = rb_vm_trace_host_current();
    struct rb_vm_trace_ractor *ractor = ec ? rb_vm_trace_host_ractor(ec) : NULL;
    return ractor == capture.overflow ? NULL : ractor;
}

bool
rb_vm_trace_ractor_next_chunk(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    if (__atomic_load_n(&capture.state, __ATOMIC_ACQUIRE) == VM_TRACE_PENDING)
        return capture.begin_child_file(ractor, ec);
    /* A thread of the tracer's own writes later than things happen: its times may be before those of an orphan. */
    bool orphan = ec && rb_vm_trace_writer_take_orphan(&ractor->writer, &capture.shared, &ractor->clock);
    if (!orphan && !rb_vm_trace_writer_next_chunk(&ractor->writer)) return false;
    if (!ec) return true; /* of such a thread, or a chunk of a snapshot */
    EACH_STREAM(stream, chunk_begun) stream->chunk_begun(ractor, ec);
    return true;
}

bool
rb_vm_trace_ractor_begin_overflow(void)
{
    if (!capture.overflow) capture.overflow = allocate_ractor();
    else if (!init_streams(capture.overflow)) return false;
    if (!capture.overflow) return false;
    rb_vm_trace_next_epoch();
    capture.first_epoch = trace_epoch();
    capture.dead_base = (struct vm_trace_totals){ 0 };
    __atomic_store_n(&capture.since_ns[capture.first_epoch & 1], capture.begin_ns, __ATOMIC_RELEASE);
    capture.overflow->lost = 0;
    EACH_STREAM(stream, ractor_begin) stream->ractor_begin(capture.overflow);
    return true;
}

void
rb_vm_trace_ractor_begin(struct rb_vm_trace_ractor *ractor)
{
    ractor->clock = (struct vm_trace_clock){ 0 }; /* no time of its is to be before begin_ns */
    ractor->from_ns = rb_vm_trace_epoch_begin_ns(&ractor->epoch);
    ractor->lost = ractor->late = ractor->unread = ractor->writer.events = 0;
    ractor->writer.pid = capture.pid;
    EACH_STREAM(stream, ractor_begin) stream->ractor_begin(ractor);
    rb_vm_trace_stacks_forget_all(&ractor->stacks);
}

/*
 * What a ractor has belongs to a trace that ended while it was being made, or only to hooks: what
 * was counted there is not this trace's.
 */
static struct rb_vm_trace_ractor *
another_ractor(struct rb_vm_trace_ractor *old)
{
    if (old && old != capture.overflow && old->link) unlink_ractor(old);
    rb_vm_trace_ractor_free(old);
    return make_ractor();
}

void
rb_vm_trace_ractor_renew_all(void)
{
    rb_vm_trace_host_each_ractor(another_ractor);
}

static struct rb_vm_trace_ractor *
no_ractor(struct rb_vm_trace_ractor *old)
{
    rb_vm_trace_ractor_free(old);
    return NULL;
}

void
rb_vm_trace_ractor_free_all(void)
{
    /*
     * Those of ractors that never began, or did not come into the child of a fork, are freed when
     * they are collected.
     */
    while (capture.ractors) {
        struct rb_vm_trace_ractor *ractor = capture.ractors;
        rb_vm_trace_writer_close(&ractor->writer);
        unlink_ractor(ractor);
    }
    rb_vm_trace_host_each_ractor(no_ractor);
    if (!capture.overflow) return;
    EACH_STREAM(stream, ractor_begin) stream->ractor_begin(capture.overflow);
}

struct vm_trace_totals
rb_vm_trace_ractor_totals(void)
{
    struct vm_trace_totals totals = capture.dead;
    const struct vm_trace_totals *base = &capture.dead_base;
    totals.events -= base->events;
    totals.sampled -= base->sampled;
    totals.lost -= base->lost;
    totals.late -= base->late;
    totals.unread -= base->unread;
    for (int i = 0; i < VM_TRACE_MAX_COUNTERS; i++) totals.counters[i] -= base->counters[i];
    if (capture.overflow) totals.lost += capture.overflow->lost;
    for (const struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next)
        add_counts(&totals, ractor);
    return totals;
}

uint64_t
rb_vm_trace_ractor_latest_ns(void)
{
    /* A clock that does not scale ticks yet reports the system's time. */
    uint64_t system_ns = rb_vm_trace_clock_system_ns();
    uint64_t latest = capture.dead_ns > system_ns ? capture.dead_ns : system_ns;
    for (const struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next) {
        uint64_t ns = clock_latest_ns(&ractor->clock);
        if (ns > latest) latest = ns;
    }
    return latest;
}

/* --- resets: see ractor_state.h ------------------------------------------------------------------------ */

/* Clocks of ractors mostly differ by less than that: about 1 us at the end of their 10 ms (clock.h). */
#define CLOCKS_APART_NS 5000
/*
 * An epoch that has begun and has no time yet: with its number, because whoever sets one may be
 * late.
 */
#define NO_TIME_YET (UINT64_C(1) << 63)

/*
 * The time is read after the epoch was seen, by whoever needs it first: then all times that were
 * recorded are earlier, give or take what clocks differ by.
 */
uint64_t
rb_vm_trace_epoch_begin_ns(uint32_t *epoch_out)
{
    for (;;) {
        uint32_t epoch = *epoch_out = trace_epoch();
        uint64_t *at = &capture.since_ns[epoch & 1], ns = __atomic_load_n(at, __ATOMIC_ACQUIRE),
                 none = NO_TIME_YET | epoch;
        if (ns == none) {
            ns = rb_vm_trace_clock_system_ns() + CLOCKS_APART_NS;
            if (!__atomic_compare_exchange_n(at, &none, ns, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) ns = none;
        }
        if (trace_epoch() == epoch && !(ns & NO_TIME_YET)) return ns; /* else that was the time of another one */
    }
}

void
rb_vm_trace_ractor_begin_epoch(struct rb_vm_trace_ractor *ractor)
{
    uint32_t epoch;
    ractor->from_ns = rb_vm_trace_epoch_begin_ns(&epoch);
    clock_not_before(&ractor->clock, ractor->from_ns);
    EACH_STREAM(stream, ractor_epoch) stream->ractor_epoch(ractor);
    ractor->lost = ractor->late = ractor->unread = ractor->writer.events = 0;
    __atomic_store_n(&ractor->epoch, epoch, __ATOMIC_RELEASE);
    /* Now: the fast ways to write an event look at no epoch. */
    if (ractor->writer.chunk.words) ractor_note_epoch(ractor);
}

bool
rb_vm_trace_ractor_reset(struct rb_vm_trace_ractor *caller)
{
    bool ok = true;
    EACH_STREAM(stream, reset_prepare) ok = ok && stream->reset_prepare();
    if (!ok) return false;
    uint32_t epoch = trace_epoch() + 1;
    __atomic_store_n(&capture.since_ns[epoch & 1], NO_TIME_YET | epoch, __ATOMIC_RELEASE);
    capture.dead_base = capture.dead;
    __atomic_store_n(&capture.overflow->lost, 0, __ATOMIC_RELAXED);
    rb_vm_trace_next_epoch();
    rb_vm_trace_epoch_begin_ns(&epoch);
    EACH_STREAM(stream, reset) stream->reset(caller);
    return true;
}
