/*
 * What ractors record with: made, counted over all, and freed. See local.h.
 */
#include "local.h"
#include "sites.h"

#include <string.h>
#include <sys/mman.h>

#ifndef MAP_NORESERVE
# define MAP_NORESERVE 0
#endif

#define trace rb_vm_trace_global

/* Whether the spare local may have hits: a ractor is gone, and left them to it, or has none of its own. */
static bool spare_has_hits;

static size_t
local_bytes(void)
{
    return sizeof(struct rb_vm_trace_local) + VM_TRACE_MAX_SITES * sizeof(uint64_t);
}

/* Address space of zeros: pages of counters that are never touched cost nothing. */
uint64_t *
rb_vm_trace_local_zeros(void)
{
    void *at = mmap(NULL, local_bytes(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* False: no memory. */
static bool
make_marks(struct rb_vm_trace_local *local)
{
    if (local->marks) return true;
    void *at = mmap(NULL, sizeof(*local->marks), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return false;
    __atomic_store_n(&local->marks, (struct vm_trace_marks *)at, __ATOMIC_RELEASE);
    return true;
}

static void
free_local(struct rb_vm_trace_local *local)
{
    if (local->marks) munmap(local->marks, sizeof(*local->marks));
    munmap(local, local_bytes());
}

static void
begin_sampling(struct rb_vm_trace_local *local)
{
    local->unhooked_countdown = trace.config.exit_rate;
    local->countdown = trace.listeners ? 1 : trace.config.exit_rate;
    local->fallback_countdown = trace.config.fallback_rate;
}

static struct rb_vm_trace_local *
allocate_local(void)
{
    struct rb_vm_trace_local *local = (struct rb_vm_trace_local *)rb_vm_trace_local_zeros();
    if (!local) return NULL;
    begin_sampling(local);
    /* Now, for an exit should not wait for it. */
    if (trace.memory.bytes && !make_marks(local)) {
        free_local(local);
        return NULL;
    }
    return local;
}

static struct rb_vm_trace_local *
use_spare(void)
{
    spare_has_hits = true;
    return trace.spare;
}

static struct rb_vm_trace_local *
make_local(void)
{
    struct rb_vm_trace_local *local = allocate_local();
    if (!local) return use_spare();
    if (!rb_vm_trace_stacks_init(&local->stacks)) {
        rb_vm_trace_stacks_free(&local->stacks);
        free_local(local);
        return use_spare();
    }
    rb_vm_trace_writer_init(&local->writer, &trace.sink, trace.pid);

    pthread_mutex_lock(&trace.lock);
    local->from_ns = rb_vm_trace_epoch_begin_ns(&local->epoch);
    local->number = trace.last_number++;
    local->next = trace.locals;
    local->link = &trace.locals;
    if (local->next) local->next->link = &local->next;
    trace.locals = local;
    pthread_mutex_unlock(&trace.lock);
    return local;
}

struct rb_vm_trace_local *
rb_vm_trace_ractor_new(void)
{
    return trace_wanted() ? make_local() : NULL;
}

/*
 * What it counted before the last reset, which it has not noticed yet, does not count. trace.lock
 * held: so there is no other reset.
 */
static void
add_counts(struct vm_trace_totals *totals, const struct rb_vm_trace_local *local)
{
    if (__atomic_load_n(&local->epoch, __ATOMIC_ACQUIRE) != trace_epoch()) return;
    totals->sampled += local->sampled;
    totals->lost += local->lost;
    totals->late += local->late;
    totals->events += local->writer.events;
}

/* Whether the counters tell of exits that are not recorded, too: one in K is. */
static bool
sampling_p(void)
{
    return trace.config.exit_rate > 1 || trace.config.fallback_rate > 1;
}

static uint64_t
load_hits(const struct rb_vm_trace_local *local, uint32_t index)
{
    return __atomic_load_n(&local->hits[index], __ATOMIC_RELAXED);
}

/* Hits since the last reset. trace.lock held. */
static uint64_t
hits_since_reset(const struct rb_vm_trace_local *local, uint32_t index)
{
    uint32_t epoch = trace_epoch();
    if (epoch == trace.first_epoch) return load_hits(local, index);
    const struct vm_trace_marks *marks = __atomic_load_n(&local->marks, __ATOMIC_ACQUIRE);
    if (!marks) return sampling_p() ? load_hits(local, index) : 0;
    /* In this order: the owner stores it the other way round, when the first hit that counts is there. */
    if (!sampling_p() && __atomic_load_n(&marks->epochs[index], __ATOMIC_ACQUIRE) != epoch) return 0;
    uint64_t before = __atomic_load_n(&marks->hits[index], __ATOMIC_RELAXED);
    return load_hits(local, index) - before;
}

/*
 * Hits that the spare is about to have, or has one more of than `before`, are the first of this
 * epoch. trace.lock held.
 */
static void
mark_spare(uint32_t index, uint64_t before)
{
    struct vm_trace_marks *marks = trace.spare->marks;
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
    mark_spare(index, trace.spare->hits[index]);
    local_moved(trace.spare);
    trace.spare->hits[index] += hits;
}

/* Take it off the list. trace.lock held, or all ractors stopped. */
static void
unlink_local(struct rb_vm_trace_local *local)
{
    *local->link = local->next;
    if (local->next) local->next->link = local->link;
    local->link = NULL;
}

void
rb_vm_trace_ractor_free(struct rb_vm_trace_local *local)
{
    if (!local || local == trace.spare) return;

    pthread_mutex_lock(&trace.lock);
    if (local->link) { /* else its trace has ended, with all that it counted */
        unlink_local(local);
        /* The spare keeps the hits of those that are gone. */
        spare_has_hits = true;
        for (uint32_t i = 1; i < rb_vm_trace_site_limit(); i++) leave_hits(i, hits_since_reset(local, i));
        uint64_t told_ns = clock_latest_ns(&local->clock);
        if (told_ns > trace.dead_ns) trace.dead_ns = told_ns;
        rb_vm_trace_writer_leave(&local->writer, &trace.shared, told_ns);
        add_counts(&trace.dead, local);
    }
    pthread_mutex_unlock(&trace.lock);

    rb_vm_trace_writer_free(&local->writer);
    rb_vm_trace_stacks_free(&local->stacks);
    free_local(local);
}

struct rb_vm_trace_local *
rb_vm_trace_local_of(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_local *local = rb_vm_trace_host_local(ec);
    if (local && (local == trace.spare || local->link)) return local;
    /* Its ractor was being made when tracing was switched. */
    struct rb_vm_trace_local *made = make_local();
    if (made) rb_vm_trace_host_set_local(ec, made);
    rb_vm_trace_ractor_free(local);
    return made;
}

uint64_t
rb_vm_trace_local_hits(uint32_t index)
{
    uint64_t hits = hits_since_reset(trace.spare, index);
    for (const struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        hits += hits_since_reset(local, index);
    }
    return hits;
}

void
rb_vm_trace_local_copy_hits(uint64_t *hits_out, uint32_t limit)
{
    /* One ractor's counters after the other's: there are many sites, and few ractors. The program waits for this. */
    const struct rb_vm_trace_local *local = trace.locals, *first = spare_has_hits || !local ? trace.spare : local;
    bool reset = trace_epoch() != trace.first_epoch;
    if (!reset) memcpy(hits_out, first->hits, limit * sizeof(*hits_out));
    for (uint32_t i = 0; reset && i < limit; i++) hits_out[i] = hits_since_reset(first, i);
    for (local = first == trace.spare ? local : local->next; local; local = local->next) {
        for (uint32_t i = 0; i < limit; i++) hits_out[i] += reset ? hits_since_reset(local, i) : local->hits[i];
    }
}

/* Only what is not 0 already, for a store would make memory of address space. */
static void
clear_hits(struct rb_vm_trace_local *local, uint32_t index)
{
    if (local->hits[index]) local->hits[index] = 0;
    if (!local->marks) return;
    if (local->marks->hits[index]) local->marks->hits[index] = 0;
    if (local->marks->epochs[index]) local->marks->epochs[index] = 0;
}

void
rb_vm_trace_local_clear_hits(uint32_t index)
{
    clear_hits(trace.spare, index);
    for (struct rb_vm_trace_local *local = trace.locals; local; local = local->next) clear_hits(local, index);
}

static void
clear_all_hits(struct rb_vm_trace_local *local)
{
    memset(local->hits, 0, rb_vm_trace_site_limit() * sizeof(*local->hits));
    local_moved(local);
    if (!local->marks) return;
    memset(local->marks->hits, 0, rb_vm_trace_site_limit() * sizeof(*local->marks->hits));
    memset(local->marks->epochs, 0, rb_vm_trace_site_limit() * sizeof(*local->marks->epochs));
}

static void
call_at_every_exit(struct rb_vm_trace_local *local, bool on)
{
    if (on) {
        local->unhooked_countdown = local->countdown;
        local->countdown = 1;
    }
    else {
        local->countdown = local->unhooked_countdown;
    }
}

void
rb_vm_trace_local_call_at_every_exit(bool on)
{
    if (trace.spare) call_at_every_exit(trace.spare, on);
    for (struct rb_vm_trace_local *local = trace.locals; local; local = local->next) call_at_every_exit(local, on);
}

bool
rb_vm_trace_local_begin_spare(void)
{
    if (!trace.spare) trace.spare = allocate_local();
    if (!trace.spare || (trace.memory.bytes && !make_marks(trace.spare))) return false;
    rb_vm_trace_next_epoch();
    trace.first_epoch = trace_epoch();
    trace.dead_base = (struct vm_trace_totals){ 0 };
    __atomic_store_n(&trace.since_ns[trace.first_epoch & 1], trace.begin_ns, __ATOMIC_RELEASE);
    clear_all_hits(trace.spare);
    trace.spare->lost = 0;
    begin_sampling(trace.spare);
    return true;
}

void
rb_vm_trace_local_begin(struct rb_vm_trace_local *local)
{
    local->clock = (struct vm_trace_clock){ 0 }; /* no time of its is to be before begin_ns */
    local->from_ns = rb_vm_trace_epoch_begin_ns(&local->epoch);
    local->sampled = local->lost = local->late = local->rate_ns = local->rate_sampled = local->writer.events = 0;
    local->exiting.dropped = local->exiting.site != NULL;
    local->exiting.site = NULL;
    local->writer.pid = trace.pid;
    begin_sampling(local);
    clear_all_hits(local);
    rb_vm_trace_stacks_forget_all(&local->stacks);
}

/* What a ractor has is of a trace that ended while it was being made, or only of hooks: what was counted there is not this trace's. */
static struct rb_vm_trace_local *
another_local(struct rb_vm_trace_local *old)
{
    if (old && old != trace.spare && old->link) unlink_local(old);
    rb_vm_trace_ractor_free(old);
    return make_local();
}

void
rb_vm_trace_local_renew_all(void)
{
    rb_vm_trace_host_each_ractor(another_local);
}

static struct rb_vm_trace_local *
no_local(struct rb_vm_trace_local *old)
{
    rb_vm_trace_ractor_free(old);
    return NULL;
}

void
rb_vm_trace_local_free_all(void)
{
    /* Those of ractors that never began, or did not come into the child of a fork, are freed when they are collected. */
    while (trace.locals) {
        struct rb_vm_trace_local *local = trace.locals;
        rb_vm_trace_writer_close(&local->writer);
        unlink_local(local);
    }
    rb_vm_trace_host_each_ractor(no_local);
    if (trace.spare) clear_all_hits(trace.spare);
}

struct vm_trace_totals
rb_vm_trace_local_totals(void)
{
    const struct vm_trace_totals *dead = &trace.dead, *base = &trace.dead_base;
    struct vm_trace_totals totals = {
        .exits = dead->exits - base->exits, .fallbacks = dead->fallbacks - base->fallbacks, .sampled = dead->sampled - base->sampled,
        .events = dead->events - base->events, .lost = dead->lost - base->lost, .sites = dead->sites - base->sites
    };
    totals.lost += trace.spare->lost;
    for (const struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        add_counts(&totals, local);
    }
    return totals;
}

uint64_t
rb_vm_trace_local_latest_ns(void)
{
    uint64_t latest = trace.dead_ns;
    for (const struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        uint64_t ns = clock_latest_ns(&local->clock);
        if (ns > latest) latest = ns;
    }
    return latest;
}

/* --- resets: see local.h ------------------------------------------------------------------------------ */

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
rb_vm_trace_local_begin_epoch(struct rb_vm_trace_local *local)
{
    uint32_t epoch;
    local->from_ns = rb_vm_trace_epoch_begin_ns(&epoch);
    clock_not_before(&local->clock, local->from_ns);
    local->rate_sampled -= local->sampled; /* what is less than that is of this epoch */
    local->sampled = local->lost = local->late = local->writer.events = 0;
    __atomic_store_n(&local->epoch, epoch, __ATOMIC_RELEASE);
}

/*
 * Where one exit in K is recorded the reset has copied the counters, while this one may have been
 * counted and was to be recorded: then its hit is there.
 */
static void
correct_mark(struct rb_vm_trace_local *local, uint32_t index, uint64_t before)
{
    pthread_mutex_lock(&trace.lock);
    if (trace_epoch() == local->epoch && local->marks->hits[index] > before) local->marks->hits[index] = before;
    pthread_mutex_unlock(&trace.lock);
}

bool
rb_vm_trace_local_mark_slow(struct rb_vm_trace_local *local, uint32_t index)
{
    if (!make_marks(local)) return false;
    if (local->marks->epochs[index] == local->epoch) return true;
    uint64_t before = local->hits[index] - (local->hits[index] > 0);
    if (sampling_p()) correct_mark(local, index, before);
    else __atomic_store_n(&local->marks->hits[index], before, __ATOMIC_RELAXED);
    __atomic_store_n(&local->marks->epochs[index], local->epoch, __ATOMIC_RELEASE);
    return true;
}

void
rb_vm_trace_local_lose_spare(uint32_t index)
{
    pthread_mutex_lock(&trace.lock);
    mark_spare(index, trace.spare->hits[index] - (trace.spare->hits[index] > 0));
    __atomic_fetch_add(&trace.spare->lost, 1, __ATOMIC_RELAXED); /* rb_vm_trace_lost takes no lock */
    pthread_mutex_unlock(&trace.lock);
}

static bool
make_all_marks(void)
{
    for (struct rb_vm_trace_local *local = trace.locals; local; local = local->next) {
        if (!make_marks(local)) return false;
    }
    return make_marks(trace.spare);
}

/*
 * Whether anything may have been counted since its hits were copied last. Each hit moves a
 * countdown, but for exits of which all are recorded beside fallbacks of which one in K is. Machine
 * code counts the hit first: one that is seen by half is copied the next time.
 */
static bool
moved_p(struct rb_vm_trace_local *local)
{
    /* An exchange: what is read below must not be older. */
    bool moved = __atomic_load_n(&local->moved, __ATOMIC_ACQUIRE) && __atomic_exchange_n(&local->moved, false, __ATOMIC_SEQ_CST);
    uint64_t at[] = { __atomic_load_n(&local->countdown, __ATOMIC_ACQUIRE), __atomic_load_n(&local->fallback_countdown, __ATOMIC_ACQUIRE) };
    if (!moved && memcmp(at, local->marked_at, sizeof(at)) == 0 && trace.config.exit_rate != 1) return false;
    memcpy(local->marked_at, at, sizeof(at));
    return true;
}

/* Most counters of a ractor are what they were: of those nothing is written. */
static void
mark_all_sites(struct rb_vm_trace_local *local)
{
    enum { AT_ONCE = 64 };
    if (!moved_p(local)) return;
    uint64_t *marks = local->marks->hits;
    for (uint32_t from = 0, limit = rb_vm_trace_site_limit(); from < limit; from += AT_ONCE) { /* a multiple of it can live */
        bool same = true;
        for (uint32_t i = from; i < from + AT_ONCE; i++) same &= load_hits(local, i) == marks[i];
        for (uint32_t i = from; !same && i < from + AT_ONCE; i++) marks[i] = load_hits(local, i);
    }
}

bool
rb_vm_trace_local_reset(struct rb_vm_trace_local *caller)
{
    if (sampling_p() && !make_all_marks()) return false;
    uint32_t epoch = trace_epoch() + 1;
    __atomic_store_n(&trace.since_ns[epoch & 1], NO_TIME_YET | epoch, __ATOMIC_RELEASE);
    trace.dead_base = trace.dead;
    __atomic_store_n(&trace.spare->lost, 0, __ATOMIC_RELAXED);
    rb_vm_trace_next_epoch();
    rb_vm_trace_epoch_begin_ns(&epoch);
    begin_sampling(caller);
    if (sampling_p()) {
        mark_all_sites(trace.spare);
        for (struct rb_vm_trace_local *local = trace.locals; local; local = local->next) mark_all_sites(local);
    }
    return true;
}
