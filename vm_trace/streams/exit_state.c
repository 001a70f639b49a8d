/*
 * Hits and countdowns of exits, by ractor. See exit_state.h.
 */
#include "vm_trace/streams/exit_state.h"
#include "vm_trace/platform/platform.h"

#include <string.h>
#include <sys/mman.h>

#define capture rb_vm_trace_capture

uint32_t rb_vm_trace_hits_limit = 1;

/* A ractor has ended, and left its hits to the overflow state. */
static bool hits_left;

/* False: no memory. */
static bool
make_marks(struct vm_trace_exit_state *exits)
{
    if (exits->marks) return true;
    void *at = rb_vm_trace_platform_zeros(sizeof(*exits->marks));
    if (!at) return false;
    __atomic_store_n(&exits->marks, (struct vm_trace_marks *)at, __ATOMIC_RELEASE);
    return true;
}

static void
begin_sampling(struct vm_trace_exit_state *exits)
{
    exits->unhooked_countdown = rb_vm_trace_exits.rate;
    exits->countdown = every_exit_p() ? 1 : rb_vm_trace_exits.rate;
    exits->fallback_countdown = rb_vm_trace_fallbacks.rate;
}

bool
rb_vm_trace_exit_state_init(struct rb_vm_trace_ractor *ractor)
{
    begin_sampling(exits_of(ractor));
    /* Now, because an exit should not wait for it. */
    return !capture.in_memory || make_marks(exits_of(ractor));
}

void
rb_vm_trace_exit_state_free(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_exit_state *exits = exits_of(ractor);
    if (exits->marks) munmap(exits->marks, sizeof(*exits->marks));
    rb_vm_trace_text_cache_free(&exits->seen_texts);
}

static void
clear_all_lost(struct vm_trace_exit_state *exits)
{
    if (!rb_vm_trace_states.rate) return; /* a store would make memory of address space */
    memset(exits->lost, 0, rb_vm_trace_hits_limit * sizeof(*exits->lost));
}

static void
clear_all_hits(struct vm_trace_exit_state *exits)
{
    memset(exits->hits, 0, rb_vm_trace_hits_limit * sizeof(*exits->hits));
    clear_all_lost(exits);
    exits_moved(exits);
    if (!exits->marks) return;
    memset(exits->marks->hits, 0, rb_vm_trace_hits_limit * sizeof(*exits->marks->hits));
    memset(exits->marks->epochs, 0, rb_vm_trace_hits_limit * sizeof(*exits->marks->epochs));
}

void
rb_vm_trace_exit_state_begin(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_exit_state *exits = exits_of(ractor);
    exits->sampled = exits->rate_ns = exits->rate_sampled = 0;
    exits->thrown.flow = 0;
    begin_sampling(exits);
    clear_all_hits(exits);
}

void
rb_vm_trace_exit_state_epoch(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_exit_state *exits = exits_of(ractor);
    exits->rate_sampled -= exits->sampled; /* what is less than that belongs to this epoch */
    exits->sampled = 0;
    exits->thrown.flow = 0; /* its event may be dropped */
    clear_all_lost(exits);
}

void
rb_vm_trace_exit_state_count(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    totals->sampled += exits_of(ractor)->sampled;
}

/* Whether the counters tell of what is not recorded, too: of exits one in K is, of what the JIT counts nothing. */
static bool
sampling_p(void)
{
    return rb_vm_trace_exits.rate > 1 || rb_vm_trace_fallbacks.rate > 1 || rb_vm_trace_jit_counters.rate;
}

static uint64_t
load_hits(const struct vm_trace_exit_state *exits, uint32_t index)
{
    return __atomic_load_n(&exits->hits[index], __ATOMIC_RELAXED);
}

/* Hits since the last reset. capture.lock held. */
static uint64_t
hits_since_reset(const struct vm_trace_exit_state *exits, uint32_t index)
{
    uint32_t epoch = trace_epoch();
    if (epoch == capture.first_epoch) return load_hits(exits, index);
    const struct vm_trace_marks *marks = __atomic_load_n(&exits->marks, __ATOMIC_ACQUIRE);
    if (!marks) return sampling_p() ? load_hits(exits, index) : 0;
    /*
     * In this order: the owner stores it the other way round, when the first hit that counts is
     * there.
     */
    if (!sampling_p() && __atomic_load_n(&marks->epochs[index], __ATOMIC_ACQUIRE) != epoch) return 0;
    uint64_t before = __atomic_load_n(&marks->hits[index], __ATOMIC_RELAXED);
    return load_hits(exits, index) - before;
}

/*
 * Hits that the overflow state is about to have, or has one more of than `before`, are the first of
 * this epoch. capture.lock held.
 */
static void
mark_overflow(uint32_t index, uint64_t before)
{
    struct vm_trace_marks *marks = exits_of(capture.overflow)->marks;
    uint32_t epoch = trace_epoch();
    if (!marks || sampling_p() || epoch == capture.first_epoch || marks->epochs[index] == epoch) return;
    marks->hits[index] = before;
    marks->epochs[index] = epoch;
}

static void
add_lost(struct vm_trace_lost *sum, const struct vm_trace_lost *lost)
{
    uint64_t longest_ns = __atomic_load_n(&lost->longest_ns, __ATOMIC_RELAXED);
    sum->ns += __atomic_load_n(&lost->ns, __ATOMIC_RELAXED);
    if (longest_ns > sum->longest_ns) sum->longest_ns = longest_ns;
}

struct vm_trace_lost
rb_vm_trace_lost_time(uint32_t index)
{
    struct vm_trace_lost sum = exits_of(capture.overflow)->lost[index];
    for (const struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next)
        add_lost(&sum, &exits_of(ractor)->lost[index]);
    return sum;
}

/* The overflow state keeps the hits of ractors that have ended. */
void
rb_vm_trace_exit_state_end(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_exit_state *exits = exits_of(ractor), *overflow = exits_of(capture.overflow);
    hits_left = true;
    for (uint32_t i = 1; i < rb_vm_trace_hits_limit; i++) {
        uint64_t hits = hits_since_reset(exits, i);
        if (exits->lost[i].ns) add_lost(&overflow->lost[i], &exits->lost[i]);
        if (!hits) continue;
        mark_overflow(i, overflow->hits[i]);
        exits_moved(overflow);
        overflow->hits[i] += hits;
    }
}

uint64_t
rb_vm_trace_hits(uint32_t index)
{
    uint64_t hits = hits_since_reset(exits_of(capture.overflow), index);
    for (const struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next) {
        hits += hits_since_reset(exits_of(ractor), index);
    }
    return hits;
}

void
rb_vm_trace_hits_copy(uint64_t *hits_out, uint32_t limit)
{
    /*
     * One ractor's counters after the other's: there are many sites, and few ractors. The program
     * waits for this.
     */
    const struct rb_vm_trace_ractor *ractor = capture.ractors;
    const struct rb_vm_trace_ractor *first = hits_left || capture.overflow_used || !ractor ? capture.overflow : ractor;
    bool reset = trace_epoch() != capture.first_epoch;
    if (!reset) memcpy(hits_out, exits_of(first)->hits, limit * sizeof(*hits_out));
    for (uint32_t i = 0; reset && i < limit; i++) hits_out[i] = hits_since_reset(exits_of(first), i);
    for (ractor = first == capture.overflow ? ractor : ractor->next; ractor; ractor = ractor->next) {
        const struct vm_trace_exit_state *exits = exits_of(ractor);
        for (uint32_t i = 0; i < limit; i++) hits_out[i] += reset ? hits_since_reset(exits, i) : exits->hits[i];
    }
}

/* Only what is not 0 already, because a store would make memory of address space. */
static void
clear_hits(struct vm_trace_exit_state *exits, uint32_t index)
{
    if (exits->hits[index]) exits->hits[index] = 0;
    if (exits->lost[index].ns) exits->lost[index] = (struct vm_trace_lost){ 0 };
    if (!exits->marks) return;
    if (exits->marks->hits[index]) exits->marks->hits[index] = 0;
    if (exits->marks->epochs[index]) exits->marks->epochs[index] = 0;
}

void
rb_vm_trace_hits_clear(uint32_t index)
{
    clear_hits(exits_of(capture.overflow), index);
    for (struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next)
        clear_hits(exits_of(ractor), index);
}

static void
call_at_every_exit(struct vm_trace_exit_state *exits, bool on)
{
    if (on) {
        exits->unhooked_countdown = exits->countdown;
        exits->countdown = 1;
    }
    else {
        exits->countdown = exits->unhooked_countdown;
    }
}

void
rb_vm_trace_exits_call_at_every_one(bool on)
{
    if (capture.overflow) call_at_every_exit(exits_of(capture.overflow), on);
    for (struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next)
        call_at_every_exit(exits_of(ractor), on);
}

/* --- resets: see exit_state.h and ractor_state.h -------------------------------------------------------- */

/*
 * Where one exit in K is recorded the reset has copied the counters, while this one may have been
 * counted and was to be recorded: then its hit is there.
 */
static void
correct_mark(struct rb_vm_trace_ractor *ractor, uint32_t index, uint64_t before)
{
    struct vm_trace_marks *marks = exits_of(ractor)->marks;
    pthread_mutex_lock(&capture.lock);
    if (trace_epoch() == ractor->epoch && marks->hits[index] > before) marks->hits[index] = before;
    pthread_mutex_unlock(&capture.lock);
}

bool
rb_vm_trace_hits_mark_slow(struct rb_vm_trace_ractor *ractor, uint32_t index)
{
    struct vm_trace_exit_state *exits = exits_of(ractor);
    if (!make_marks(exits)) return false;
    if (exits->marks->epochs[index] == ractor->epoch) return true;
    uint64_t before = exits->hits[index] - (exits->hits[index] > 0);
    if (sampling_p()) correct_mark(ractor, index, before);
    else __atomic_store_n(&exits->marks->hits[index], before, __ATOMIC_RELAXED);
    __atomic_store_n(&exits->marks->epochs[index], ractor->epoch, __ATOMIC_RELEASE);
    return true;
}

void
rb_vm_trace_hits_lose_overflow(uint32_t index)
{
    pthread_mutex_lock(&capture.lock);
    const struct vm_trace_exit_state *exits = exits_of(capture.overflow);
    mark_overflow(index, exits->hits[index] - (exits->hits[index] > 0));
    __atomic_fetch_add(&capture.overflow->lost, 1, __ATOMIC_RELAXED); /* rb_vm_trace_lost takes no lock */
    pthread_mutex_unlock(&capture.lock);
}

bool
rb_vm_trace_exit_state_reset_prepare(void)
{
    if (!sampling_p()) return true;
    for (struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next) {
        if (!make_marks(exits_of(ractor))) return false;
    }
    return make_marks(exits_of(capture.overflow));
}

/*
 * Machine code stores the hit, then the countdown. Whoever saw a countdown is to see its hit, too. On
 * x86-64 that is so; elsewhere the threads that run pass a barrier, and exits need none. False: the
 * hit may come later.
 */
static bool
hits_seen_p(void)
{
#ifdef __x86_64__
    return true;
#else
    return rb_vm_trace_platform_barrier();
#endif
}

/*
 * Whether anything may have been counted since its hits were copied last. Each hit moves a
 * countdown, but for exits of which all are recorded beside fallbacks of which one in K is. Machine
 * code counts the hit first: one that is seen by half is copied the next time.
 */
static bool
moved_p(struct vm_trace_exit_state *exits)
{
    /* An exchange: what is read below must not be older. */
    bool moved =
        __atomic_load_n(&exits->moved, __ATOMIC_ACQUIRE) && __atomic_exchange_n(&exits->moved, false, __ATOMIC_SEQ_CST);
    uint64_t at[] = { __atomic_load_n(&exits->countdown, __ATOMIC_ACQUIRE),
                      __atomic_load_n(&exits->fallback_countdown, __ATOMIC_ACQUIRE) };
    bool by_countdown = rb_vm_trace_exits.rate != 1 && !rb_vm_trace_jit_counters.rate;
    if (!moved && by_countdown && memcmp(at, exits->marked_at, sizeof(at)) == 0) return false;
    memcpy(exits->marked_at, at, sizeof(at));
    if (!hits_seen_p()) __atomic_store_n(&exits->moved, true, __ATOMIC_RELAXED); /* copied the next time */
    return true;
}

/* Most counters of a ractor are what they were: of those nothing is written. */
static void
mark_all_sites(struct vm_trace_exit_state *exits)
{
    enum { AT_ONCE = 64 };
    if (!moved_p(exits)) return;
    uint64_t *marks = exits->marks->hits;
    for (uint32_t from = 0, limit = rb_vm_trace_hits_limit; from < limit; from += AT_ONCE) { /* a multiple of it can live */
        bool same = true;
        for (uint32_t i = from; i < from + AT_ONCE; i++) same &= load_hits(exits, i) == marks[i];
        for (uint32_t i = from; !same && i < from + AT_ONCE; i++) marks[i] = load_hits(exits, i);
    }
}

void
rb_vm_trace_exit_state_reset(struct rb_vm_trace_ractor *caller)
{
    if (caller) begin_sampling(exits_of(caller));
    if (!sampling_p()) return;
    mark_all_sites(exits_of(capture.overflow));
    for (struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next)
        mark_all_sites(exits_of(ractor));
}
