/*
 * What ractors record with: made, counted over all, and freed. See ractor_state.h.
 */
#include "vm_trace/capture/ractor_state.h"
#include "vm_trace/streams/sites.h"

#include <string.h>
#include <sys/mman.h>

#ifndef MAP_NORESERVE
# define MAP_NORESERVE 0
#endif

#define trace rb_vm_trace_global

/* Whether the spare local may have hits: a ractor is gone, and left them to it, or has none of its own. */
static bool overflow_has_hits;

static size_t
ractor_bytes(void)
{
    return sizeof(struct rb_vm_trace_ractor) + VM_TRACE_MAX_SITES * sizeof(uint64_t);
}

/* Address space of zeros: pages of counters that are never touched cost nothing. */
uint64_t *
rb_vm_trace_ractor_zeros(void)
{
    void *at = mmap(NULL, ractor_bytes(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* False: no memory. */
static bool
make_marks(struct rb_vm_trace_ractor *ractor)
{
    if (ractor->marks) return true;
    void *at = mmap(NULL, sizeof(*ractor->marks), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return false;
    __atomic_store_n(&ractor->marks, (struct vm_trace_marks *)at, __ATOMIC_RELEASE);
    return true;
}

static void
free_ractor(struct rb_vm_trace_ractor *ractor)
{
    if (ractor->marks) munmap(ractor->marks, sizeof(*ractor->marks));
    munmap(ractor, ractor_bytes());
}

static void
begin_sampling(struct rb_vm_trace_ractor *ractor)
{
    ractor->unhooked_countdown = trace.config.exit_rate;
    ractor->countdown = trace.listeners ? 1 : trace.config.exit_rate;
    ractor->fallback_countdown = trace.config.fallback_rate;
}

static struct rb_vm_trace_ractor *
allocate_ractor(void)
{
    struct rb_vm_trace_ractor *ractor = (struct rb_vm_trace_ractor *)rb_vm_trace_ractor_zeros();
    if (!ractor) return NULL;
    begin_sampling(ractor);
    /* Now, for an exit should not wait for it. */
    if (trace.memory.bytes && !make_marks(ractor)) {
        free_ractor(ractor);
        return NULL;
    }
    return ractor;
}

static struct rb_vm_trace_ractor *
use_overflow(void)
{
    overflow_has_hits = true;
    return trace.overflow;
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
    rb_vm_trace_writer_init(&ractor->writer, &trace.sink, trace.pid);

    pthread_mutex_lock(&trace.lock);
    ractor->from_ns = rb_vm_trace_epoch_begin_ns(&ractor->epoch);
    ractor->number = trace.last_number++;
    ractor->next = trace.ractors;
    ractor->link = &trace.ractors;
    if (ractor->next) ractor->next->link = &ractor->next;
    trace.ractors = ractor;
    pthread_mutex_unlock(&trace.lock);
    return ractor;
}

struct rb_vm_trace_ractor *
rb_vm_trace_ractor_new(void)
{
    return trace_wanted() ? make_ractor() : NULL;
}

/*
 * What it counted before the last reset, which it has not noticed yet, does not count. trace.lock
 * held: so there is no other reset.
 */
static void
add_counts(struct vm_trace_totals *totals, const struct rb_vm_trace_ractor *ractor)
{
    if (__atomic_load_n(&ractor->epoch, __ATOMIC_ACQUIRE) != trace_epoch()) return;
    totals->sampled += ractor->sampled;
    totals->lost += ractor->lost;
    totals->late += ractor->late;
    totals->events += ractor->writer.events;
}

/* Whether the counters tell of exits that are not recorded, too: one in K is. */
static bool
sampling_p(void)
{
    return trace.config.exit_rate > 1 || trace.config.fallback_rate > 1;
}

static uint64_t
load_hits(const struct rb_vm_trace_ractor *ractor, uint32_t index)
{
    return __atomic_load_n(&ractor->hits[index], __ATOMIC_RELAXED);
}

/* Hits since the last reset. trace.lock held. */
static uint64_t
hits_since_reset(const struct rb_vm_trace_ractor *ractor, uint32_t index)
{
    uint32_t epoch = trace_epoch();
    if (epoch == trace.first_epoch) return load_hits(ractor, index);
    const struct vm_trace_marks *marks = __atomic_load_n(&ractor->marks, __ATOMIC_ACQUIRE);
    if (!marks) return sampling_p() ? load_hits(ractor, index) : 0;
    /* In this order: the owner stores it the other way round, when the first hit that counts is there. */
    if (!sampling_p() && __atomic_load_n(&marks->epochs[index], __ATOMIC_ACQUIRE) != epoch) return 0;
    uint64_t before = __atomic_load_n(&marks->hits[index], __ATOMIC_RELAXED);
    return load_hits(ractor, index) - before;
}

/*
 * Hits that the spare is about to have, or has one more of than `before`, are the first of this
 * epoch. trace.lock held.
 */
static void
mark_overflow(uint32_t index, uint64_t before)
{
    struct vm_trace_marks *marks = trace.overflow->marks;
    uint32_t epoch = trace_epoch();
    if (!marks || sampling_p() || epoch == trace.first_epoch || marks->epochs[index] == epoch) return;
    marks->hits[index] = before;
    marks->epochs[index] = epoch;
}

/* Add hits of this epoch to the spare. trace.lock held. */
static void
leave_hits(uint32_t index, uint64_t hits)
{
    if (!hits) return;
    mark_overflow(index, trace.overflow->hits[index]);
    ractor_moved(trace.overflow);
    trace.overflow->hits[index] += hits;
}

/* Take it off the list. trace.lock held, or all ractors stopped. */
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
    if (!ractor || ractor == trace.overflow) return;

    pthread_mutex_lock(&trace.lock);
    if (ractor->link) { /* else its trace has ended, with all that it counted */
        unlink_ractor(ractor);
        /* The spare keeps the hits of those that are gone. */
        overflow_has_hits = true;
        for (uint32_t i = 1; i < rb_vm_trace_site_limit(); i++) leave_hits(i, hits_since_reset(ractor, i));
        uint64_t told_ns = clock_latest_ns(&ractor->clock);
        if (told_ns > trace.dead_ns) trace.dead_ns = told_ns;
        rb_vm_trace_writer_leave(&ractor->writer, &trace.shared, told_ns);
        add_counts(&trace.dead, ractor);
    }
    pthread_mutex_unlock(&trace.lock);

    rb_vm_trace_writer_free(&ractor->writer);
    rb_vm_trace_stacks_free(&ractor->stacks);
    free_ractor(ractor);
}

struct rb_vm_trace_ractor *
rb_vm_trace_ractor_of(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(ec);
    if (ractor && (ractor == trace.overflow || ractor->link)) return ractor;
    /* Its ractor was being made when tracing was switched. */
    struct rb_vm_trace_ractor *made = make_ractor();
    if (made) rb_vm_trace_host_set_ractor(ec, made);
    rb_vm_trace_ractor_free(ractor);
    return made;
}

uint64_t
rb_vm_trace_ractor_hits(uint32_t index)
{
    uint64_t hits = hits_since_reset(trace.overflow, index);
    for (const struct rb_vm_trace_ractor *ractor = trace.ractors; ractor; ractor = ractor->next) {
        hits += hits_since_reset(ractor, index);
    }
    return hits;
}

void
rb_vm_trace_ractor_copy_hits(uint64_t *hits_out, uint32_t limit)
{
    /* One ractor's counters after the other's: there are many sites, and few ractors. The program waits for this. */
    const struct rb_vm_trace_ractor *ractor = trace.ractors, *first = overflow_has_hits || !ractor ? trace.overflow : ractor;
    bool reset = trace_epoch() != trace.first_epoch;
    if (!reset) memcpy(hits_out, first->hits, limit * sizeof(*hits_out));
    for (uint32_t i = 0; reset && i < limit; i++) hits_out[i] = hits_since_reset(first, i);
    for (ractor = first == trace.overflow ? ractor : ractor->next; ractor; ractor = ractor->next) {
        for (uint32_t i = 0; i < limit; i++) hits_out[i] += reset ? hits_since_reset(ractor, i) : ractor->hits[i];
    }
}

/* Only what is not 0 already, for a store would make memory of address space. */
static void
clear_hits(struct rb_vm_trace_ractor *ractor, uint32_t index)
{
    if (ractor->hits[index]) ractor->hits[index] = 0;
    if (!ractor->marks) return;
    if (ractor->marks->hits[index]) ractor->marks->hits[index] = 0;
    if (ractor->marks->epochs[index]) ractor->marks->epochs[index] = 0;
}

void
rb_vm_trace_ractor_clear_hits(uint32_t index)
{
    clear_hits(trace.overflow, index);
    for (struct rb_vm_trace_ractor *ractor = trace.ractors; ractor; ractor = ractor->next) clear_hits(ractor, index);
}

static void
clear_all_hits(struct rb_vm_trace_ractor *ractor)
{
    memset(ractor->hits, 0, rb_vm_trace_site_limit() * sizeof(*ractor->hits));
    ractor_moved(ractor);
    if (!ractor->marks) return;
    memset(ractor->marks->hits, 0, rb_vm_trace_site_limit() * sizeof(*ractor->marks->hits));
    memset(ractor->marks->epochs, 0, rb_vm_trace_site_limit() * sizeof(*ractor->marks->epochs));
}

static void
call_at_every_exit(struct rb_vm_trace_ractor *ractor, bool on)
{
    if (on) {
        ractor->unhooked_countdown = ractor->countdown;
        ractor->countdown = 1;
    }
    else {
        ractor->countdown = ractor->unhooked_countdown;
    }
}

void
rb_vm_trace_ractor_call_at_every_exit(bool on)
{
    if (trace.overflow) call_at_every_exit(trace.overflow, on);
    for (struct rb_vm_trace_ractor *ractor = trace.ractors; ractor; ractor = ractor->next) call_at_every_exit(ractor, on);
}

bool
rb_vm_trace_ractor_begin_overflow(void)
{
    if (!trace.overflow) trace.overflow = allocate_ractor();
    if (!trace.overflow || (trace.memory.bytes && !make_marks(trace.overflow))) return false;
    rb_vm_trace_next_epoch();
    trace.first_epoch = trace_epoch();
    trace.dead_base = (struct vm_trace_totals){ 0 };
    __atomic_store_n(&trace.since_ns[trace.first_epoch & 1], trace.begin_ns, __ATOMIC_RELEASE);
    clear_all_hits(trace.overflow);
    trace.overflow->lost = 0;
    begin_sampling(trace.overflow);
    return true;
}

void
rb_vm_trace_ractor_begin(struct rb_vm_trace_ractor *ractor)
{
    ractor->clock = (struct vm_trace_clock){ 0 }; /* no time of its is to be before begin_ns */
    ractor->from_ns = rb_vm_trace_epoch_begin_ns(&ractor->epoch);
    ractor->sampled = ractor->lost = ractor->late = ractor->rate_ns = ractor->rate_sampled = ractor->writer.events = 0;
    ractor->exiting.dropped = ractor->exiting.site != NULL;
    ractor->exiting.site = NULL;
    ractor->writer.pid = trace.pid;
    begin_sampling(ractor);
    clear_all_hits(ractor);
    rb_vm_trace_stacks_forget_all(&ractor->stacks);
}

/* What a ractor has is of a trace that ended while it was being made, or only of hooks: what was counted there is not this trace's. */
static struct rb_vm_trace_ractor *
another_ractor(struct rb_vm_trace_ractor *old)
{
    if (old && old != trace.overflow && old->link) unlink_ractor(old);
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
    /* Those of ractors that never began, or did not come into the child of a fork, are freed when they are collected. */
    while (trace.ractors) {
        struct rb_vm_trace_ractor *ractor = trace.ractors;
        rb_vm_trace_writer_close(&ractor->writer);
        unlink_ractor(ractor);
    }
    rb_vm_trace_host_each_ractor(no_ractor);
    if (trace.overflow) clear_all_hits(trace.overflow);
}

struct vm_trace_totals
rb_vm_trace_ractor_totals(void)
{
    const struct vm_trace_totals *dead = &trace.dead, *base = &trace.dead_base;
    struct vm_trace_totals totals = {
        .exits = dead->exits - base->exits, .fallbacks = dead->fallbacks - base->fallbacks, .sampled = dead->sampled - base->sampled,
        .events = dead->events - base->events, .lost = dead->lost - base->lost, .sites = dead->sites - base->sites
    };
    totals.lost += trace.overflow->lost;
    for (const struct rb_vm_trace_ractor *ractor = trace.ractors; ractor; ractor = ractor->next) {
        add_counts(&totals, ractor);
    }
    return totals;
}

uint64_t
rb_vm_trace_ractor_latest_ns(void)
{
    uint64_t latest = trace.dead_ns;
    for (const struct rb_vm_trace_ractor *ractor = trace.ractors; ractor; ractor = ractor->next) {
        uint64_t ns = clock_latest_ns(&ractor->clock);
        if (ns > latest) latest = ns;
    }
    return latest;
}

/* --- resets: see ractor_state.h ------------------------------------------------------------------------------ */

/* Clocks of ractors differ by less than that: about 1 us at the end of their 10 ms (clock.h). */
#define CLOCKS_APART_NS 5000
/* An epoch that has begun, and no time for it yet: with its number, for it may be long ago for who sets one. */
#define NO_TIME_YET (UINT64_C(1) << 63)

/*
 * The time is read after the epoch was seen, by whoever needs it first: then nobody can record
 * anything any more as before it, and all times that were told are earlier, give or take what
 * clocks differ by.
 */
uint64_t
rb_vm_trace_epoch_begin_ns(uint32_t *epoch_out)
{
    for (;;) {
        uint32_t epoch = *epoch_out = trace_epoch();
        uint64_t *at = &trace.since_ns[epoch & 1], ns = __atomic_load_n(at, __ATOMIC_ACQUIRE), none = NO_TIME_YET | epoch;
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
    ractor->rate_sampled -= ractor->sampled; /* what is less than that is of this epoch */
    ractor->sampled = ractor->lost = ractor->late = ractor->writer.events = 0;
    __atomic_store_n(&ractor->epoch, epoch, __ATOMIC_RELEASE);
}

/*
 * Where one exit in K is recorded the reset has copied the counters, while this one may have been
 * counted and was to be recorded: then its hit is there.
 */
static void
correct_mark(struct rb_vm_trace_ractor *ractor, uint32_t index, uint64_t before)
{
    pthread_mutex_lock(&trace.lock);
    if (trace_epoch() == ractor->epoch && ractor->marks->hits[index] > before) ractor->marks->hits[index] = before;
    pthread_mutex_unlock(&trace.lock);
}

bool
rb_vm_trace_ractor_mark_slow(struct rb_vm_trace_ractor *ractor, uint32_t index)
{
    if (!make_marks(ractor)) return false;
    if (ractor->marks->epochs[index] == ractor->epoch) return true;
    uint64_t before = ractor->hits[index] - (ractor->hits[index] > 0);
    if (sampling_p()) correct_mark(ractor, index, before);
    else __atomic_store_n(&ractor->marks->hits[index], before, __ATOMIC_RELAXED);
    __atomic_store_n(&ractor->marks->epochs[index], ractor->epoch, __ATOMIC_RELEASE);
    return true;
}

void
rb_vm_trace_ractor_lose_overflow(uint32_t index)
{
    pthread_mutex_lock(&trace.lock);
    mark_overflow(index, trace.overflow->hits[index] - (trace.overflow->hits[index] > 0));
    __atomic_fetch_add(&trace.overflow->lost, 1, __ATOMIC_RELAXED); /* rb_vm_trace_lost takes no lock */
    pthread_mutex_unlock(&trace.lock);
}

static bool
make_all_marks(void)
{
    for (struct rb_vm_trace_ractor *ractor = trace.ractors; ractor; ractor = ractor->next) {
        if (!make_marks(ractor)) return false;
    }
    return make_marks(trace.overflow);
}

/*
 * Whether anything may have been counted since its hits were copied last. Each hit moves a
 * countdown, but for exits of which all are recorded beside fallbacks of which one in K is. Machine
 * code counts the hit first: one that is seen by half is copied the next time.
 */
static bool
moved_p(struct rb_vm_trace_ractor *ractor)
{
    /* An exchange: what is read below must not be older. */
    bool moved = __atomic_load_n(&ractor->moved, __ATOMIC_ACQUIRE) && __atomic_exchange_n(&ractor->moved, false, __ATOMIC_SEQ_CST);
    uint64_t at[] = { __atomic_load_n(&ractor->countdown, __ATOMIC_ACQUIRE), __atomic_load_n(&ractor->fallback_countdown, __ATOMIC_ACQUIRE) };
    if (!moved && memcmp(at, ractor->marked_at, sizeof(at)) == 0 && trace.config.exit_rate != 1) return false;
    memcpy(ractor->marked_at, at, sizeof(at));
    return true;
}

/* Most counters of a ractor are what they were: of those nothing is written. */
static void
mark_all_sites(struct rb_vm_trace_ractor *ractor)
{
    enum { AT_ONCE = 64 };
    if (!moved_p(ractor)) return;
    uint64_t *marks = ractor->marks->hits;
    for (uint32_t from = 0, limit = rb_vm_trace_site_limit(); from < limit; from += AT_ONCE) { /* a multiple of it can live */
        bool same = true;
        for (uint32_t i = from; i < from + AT_ONCE; i++) same &= load_hits(ractor, i) == marks[i];
        for (uint32_t i = from; !same && i < from + AT_ONCE; i++) marks[i] = load_hits(ractor, i);
    }
}

bool
rb_vm_trace_ractor_reset(struct rb_vm_trace_ractor *caller)
{
    if (sampling_p() && !make_all_marks()) return false;
    uint32_t epoch = trace_epoch() + 1;
    __atomic_store_n(&trace.since_ns[epoch & 1], NO_TIME_YET | epoch, __ATOMIC_RELEASE);
    trace.dead_base = trace.dead;
    __atomic_store_n(&trace.overflow->lost, 0, __ATOMIC_RELAXED);
    rb_vm_trace_next_epoch();
    rb_vm_trace_epoch_begin_ns(&epoch);
    begin_sampling(caller);
    if (sampling_p()) {
        mark_all_sites(trace.overflow);
        for (struct rb_vm_trace_ractor *ractor = trace.ractors; ractor; ractor = ractor->next) mark_all_sites(ractor);
    }
    return true;
}
