/*
 * Exits and fallbacks: from machine code to an event.
 */
#include "vm_trace/streams/exits/exit_templates.h"
#include "vm_trace/streams/states/states.h"
#include "vm_trace/streams/exits/throws.h"

/*
 * What no template holds. Out of line, as notify_hooks_slow: most exits need neither, nor the room
 * on the stack that they take.
 */
static __attribute__((noinline)) bool
record_new(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
           const struct rb_vm_trace_site *site, uint64_t ns, uint64_t weight, enum known_string outcome, uint64_t seen,
           uint64_t flow)
{
    struct exit_event exit = { .site = site, .ns = ns, .weight = weight, .outcome = outcome,
                               .flow = { FXT_EVENT_FLOW_BEGIN, STRING_RECOMPILATION, flow } };
    return rb_vm_trace_exit_write(ractor, ec, &exit, seen);
}

/* There is no memory for its stack. */
static __attribute__((noinline)) void
lose(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site)
{
    ractor_notice_reset(ractor);
    hits_mark(ractor, site->index);
    ractor->lost++;
}

static __attribute__((noinline)) bool
record_throw(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
             const struct rb_vm_trace_site *site, uint64_t ns, uint64_t weight)
{
    struct vm_trace_throw *thrown = &exits_of(ractor)->thrown;
    struct exit_flow flow = rb_vm_trace_flow_of_throw(thrown, site->part, ec);
    thrown->flow = 0;
    if (!write_again(ractor, ec, site, ns, STRING_NONE, 0, flow.id ? &flow : NULL)) {
        struct exit_event exit = { .site = site, .ns = ns, .weight = weight, .outcome = STRING_NONE, .flow = flow };
        if (!rb_vm_trace_exit_write(ractor, ec, &exit, 0)) return false;
    }
    if (site->part == THROWS) thrown->flow = flow.id;
    return true;
}

/*
 * `outcome`: as in struct exit_event. `flow`: that a recompile exit began, or 0. Inline, for the many
 * exits that do not recompile.
 */
static inline __attribute__((always_inline)) void
record(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const struct rb_vm_trace_site *site,
       uint64_t ns, uint64_t weight, enum known_string outcome, uint64_t flow)
{
    if (ractor == rb_vm_trace_capture.overflow) { /* shared by ractors: nothing in it but the count */
        rb_vm_trace_hits_lose_overflow(site->index);
        return;
    }
    if (!stacks_capture(&ractor->stacks, ec, site->pc ? site->pc + HOST_PC_EXACT : 0)) {
        lose(ractor, site);
        return;
    }
    struct vm_trace_exit_state *exits = exits_of(ractor);
    if (__builtin_expect(site->part != NO_THROW, 0) && outcome == STRING_NONE) {
        if (!record_throw(ractor, ec, site, ns, weight)) return;
    }
    else {
        uint64_t seen = see(ractor, site, ec);
        exits->thrown.flow = 0;
        bool again = !flow && write_again(ractor, ec, site, ns, outcome, seen, NULL);
        if (!again && !record_new(ractor, ec, site, ns, weight, outcome, seen, flow)) return;
    }
    if (site->kind != RB_VM_TRACE_FALLBACK) exits->sampled++;
}

/* The same for all others. */
static __attribute__((noinline)) void
record_slow(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
            const struct rb_vm_trace_site *site, uint64_t ns, uint64_t weight, enum known_string outcome,
            uint64_t flow)
{
    record(ractor, ec, site, ns, weight, outcome, flow);
}

/* An exit is taken, recorded or not: the time until compiled code runs again is its. */
static inline void
note_exit(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site)
{
    exits_of(ractor)->last = (struct vm_trace_last_exit){ .site = site, .serial = site->serial };
}

static const enum known_string outcome_words[] = {
    [RB_VM_TRACE_PROFILING] = STRING_PROFILING,
    [RB_VM_TRACE_INVALIDATED] = STRING_INVALIDATED,
    [RB_VM_TRACE_ALREADY_INVALIDATED] = STRING_ALREADY_INVALIDATED,
    [RB_VM_TRACE_VERSION_LIMIT] = STRING_VERSION_LIMIT
};

static __attribute__((noinline)) void
notify_hooks_slow(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec,
                  enum known_string outcome)
{
    size_t bytes;
    struct rb_vm_trace_exit_info exit = {
        .jit = rb_vm_trace_capture.jit,
        .reason = site->reason->text, .reason_len = site->reason->bytes,
        .insn = site->insn->text, .insn_len = site->insn->bytes,
        .version = site->version, .outcome = outcome == STRING_NONE ? NULL : rb_vm_trace_known_text(outcome, &bytes)
    };
    const struct rb_vm_trace_ractor *before = rb_vm_trace_host_ractor(ec);
    uint64_t trace = trace_id();
    struct vm_trace_last_exit last = { .site = NULL };
    if (before) last = exits_of(before)->last;
    rb_vm_trace_host_notify_hooks(ec, &exit);
    /* The hooks may have taken exits of their own. */
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(ec);
    if (ractor && ractor == before && trace_id() == trace) exits_of(ractor)->last = last;
}

/*
 * Notify hooks, which may do anything, even stop the session. So nothing of it is
 * touched after this.
 */
static inline void
notify_hooks(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec, enum known_string outcome)
{
    if (__builtin_expect(rb_vm_trace_capture.subscribed, 0)) notify_hooks_slow(site, ec, outcome);
}

/*
 * An exit whose hit is counted already: how many exits it stands for when it is to be recorded,
 * else 0. Code that counts down calls with a countdown of 0, and code that doesn't (it was made to
 * record all exits, or hooks subscribe to them) with more. While hooks subscribe, code that counts
 * down gets 1 each time so that it calls at every exit, and the count to K goes on beside that.
 */
static inline uint64_t
count_down(struct vm_trace_exit_state *exits, uint64_t *countdown)
{
    uint64_t rate = rb_vm_trace_exits.rate;
    if (rate > 1) {
        if (*countdown > 0 && --*countdown > 0) return 0;
        exits_moved(exits);
    }
    __atomic_store_n(countdown, rate, __ATOMIC_RELAXED); /* a reset may look at it */
    return trace_on() ? rate : 0;
}

static __attribute__((noinline)) uint64_t
weight_of_every_exit(struct vm_trace_exit_state *exits)
{
    __atomic_store_n(&exits->countdown, 1, __ATOMIC_RELAXED);
    exits_moved(exits); /* the one that a reset looks at stays as it is */
    return count_down(exits, &exits->unhooked_countdown);
}

static inline uint64_t
weight_of(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_exit_state *exits = exits_of(ractor);
    if (__builtin_expect(every_exit_p(), 0)) return weight_of_every_exit(exits);
    return count_down(exits, &exits->countdown);
}

/*
 * Machine code calls these where the stack may be anywhere: at the exits of stubs there is no
 * frame.
 */
#if defined(__GNUC__) && defined(__x86_64__)
# define ANY_STACK __attribute__((force_align_arg_pointer))
#else
# define ANY_STACK
#endif

ANY_STACK void
rb_vm_trace_exit(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site,
                 struct rb_execution_context_struct *ec)
{
    uint64_t weight = weight_of(ractor);
    note_exit(ractor, site);
    if (weight) record(ractor, ec, site, clock_now_ns(&ractor->clock), weight, STRING_NONE, 0);
    notify_hooks(site, ec, STRING_NONE);
}

static uint64_t
recompile_begin(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site, uint64_t weight)
{
    uint64_t ns = clock_now_ns(&ractor->clock);
    struct vm_trace_version_state *versions = versions_of(ractor);
    versions->exiting.site = site;
    versions->exiting.start_ns = ns;
    versions->exiting.flow = 0;
    versions->exiting.weight = weight;
    versions->exiting.dropped = false;
    return ns;
}

uint64_t
rb_vm_trace_recompile_begin(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site, bool sampled)
{
    return recompile_begin(ractor, site, sampled ? weight_of(ractor) : 0);
}

/*
 * Compiling waits for other ractors. One of them may have ended the trace meanwhile, and freed what
 * code that flags had traced knows as its ractor.
 */
static bool
still_traced(const struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    return ec && rb_vm_trace_host_ractor(ec) == ractor;
}

void
rb_vm_trace_recompile_end(struct rb_vm_trace_ractor *ractor)
{
    if (still_traced(ractor, rb_vm_trace_host_current())) versions_of(ractor)->exiting.site = NULL;
}

static void
recompile_exit(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site,
               struct rb_execution_context_struct *ec, uint64_t start_ns, uint64_t weight,
               enum rb_vm_trace_outcome outcome)
{
    struct vm_trace_version_state *versions = versions_of(ractor);
    uint64_t flow = versions->exiting.site ? versions->exiting.flow : 0;
    versions->exiting.site = NULL;
    note_exit(ractor, site);
    if (weight && trace_on()) record_slow(ractor, ec, site, start_ns, weight, outcome_words[outcome], flow);
    notify_hooks(site, ec, outcome_words[outcome]);
}

ANY_STACK void
rb_vm_trace_recompile_exit(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site,
                           struct rb_execution_context_struct *ec,
                           uint64_t start_ns, enum rb_vm_trace_outcome outcome)
{
    if (!still_traced(ractor, ec)) return;
    struct vm_trace_version_state *versions = versions_of(ractor);
    bool begun = versions->exiting.site || versions->exiting.dropped;
    uint64_t weight = !begun ? weight_of(ractor) : versions->exiting.dropped ? 0 : versions->exiting.weight;
    versions->exiting.dropped = false;
    recompile_exit(ractor, site, ec, start_ns, weight, outcome);
}

/* Count it. Returns its weight if it is the one in K that is recorded, else 0. */
static uint64_t
count(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site)
{
    struct vm_trace_exit_state *exits = exits_of(ractor);
    exits->hits[site->index]++;
    if (site->kind != RB_VM_TRACE_FALLBACK) return weight_of(ractor);
    if (exits->fallback_countdown > 1) {
        --exits->fallback_countdown;
        return 0;
    }
    exits_moved(exits);
    exits->fallback_countdown = rb_vm_trace_fallbacks.rate;
    return trace_on() ? exits->fallback_countdown : 0;
}

void
rb_vm_trace_hit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_of(ec);
    if (!ractor) return;
    uint64_t weight = count(ractor, site);
    if (site->kind != RB_VM_TRACE_FALLBACK) note_exit(ractor, site);
    if (weight) record_slow(ractor, ec, site, clock_now_ns(&ractor->clock), weight, STRING_NONE, 0);
    if (site->kind == RB_VM_TRACE_FALLBACK) rb_vm_trace_states_fallback(ractor, ec);
}

void
rb_vm_trace_count(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_of(ec);
    if (ractor) exits_of(ractor)->hits[site->index]++;
}

ANY_STACK void
rb_vm_trace_first_hit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec)
{
    rb_vm_trace_hit(site, ec);
    notify_hooks(site, ec, STRING_NONE);
}

uint64_t
rb_vm_trace_recompile_taken(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec,
                            uint64_t *start_ns_out)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_of(ec);
    if (!ractor) return 0;
    uint64_t weight = count(ractor, site);
    if (ractor != rb_vm_trace_capture.overflow) *start_ns_out = recompile_begin(ractor, site, weight);
    return weight;
}

void
rb_vm_trace_recompile_done(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec,
                           uint64_t start_ns, uint64_t weight, enum rb_vm_trace_outcome outcome)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(ec);
    if (ractor) recompile_exit(ractor, site, ec, start_ns, weight, outcome);
    else notify_hooks(site, ec, outcome_words[outcome]);
}

void
rb_vm_trace_recompile_dropped(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(ec);
    if (ractor) versions_of(ractor)->exiting.site = NULL;
}

void
rb_vm_trace_lost(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_of(ec);
    if (!ractor) return;
    ractor_notice_reset(ractor);
    __atomic_fetch_add(&ractor->lost, 1, __ATOMIC_RELAXED); /* the overflow state is shared */
}

uint64_t
rb_vm_trace_now(struct rb_vm_trace_ractor *ractor)
{
    return clock_now_ns(&ractor->clock);
}

size_t
rb_vm_trace_thread_offset(void)
{
    return rb_vm_trace_host_thread_offset();
}

size_t
rb_vm_trace_ractor_offset(void)
{
    return rb_vm_trace_host_ractor_offset();
}

size_t
rb_vm_trace_countdown_offset(void)
{
    return VM_TRACE_FIRST_STATE + offsetof(struct vm_trace_exit_state, countdown);
}
