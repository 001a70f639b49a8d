/*
 * Exits and fallbacks: from machine code to an event.
 */
#include "vm_trace/streams/sites.h"
#include "vm_trace/streams/versions.h"

struct exit_event {
    const struct rb_vm_trace_site *site;
    uint64_t ns;
    uint64_t weight;               /* exits that this one represents */
    enum vm_trace_word outcome;    /* W_NONE: not a recompile exit */
    uint64_t flow;                 /* that begins here, or 0 */
};

/* The whole stack at hand; 0: there is none. */
static inline uint32_t
node_of(const struct rb_vm_trace_ractor *ractor)
{
    const struct vm_trace_walk *walk = &ractor->stacks.walk;
    return walk->count ? walk->frames[walk->count - 1].node : 0;
}

/* Where the event of an exit with that stack is kept. */
static inline struct vm_trace_template *
template_of(struct rb_vm_trace_ractor *ractor, uint32_t node)
{
    return &exits_of(ractor)->templates[node % VM_TRACE_TEMPLATES];
}

/*
 * Copy `count` words. A record's words are few and their number is not known to the compiler: four
 * at a time, the last four once more where they are not a multiple, are a fraction of a loop's
 * instructions.
 */
static inline void
copy_words(uint64_t *to, const uint64_t *from, size_t count)
{
    enum { STEP = 4, STEP_BYTES = STEP * sizeof(uint64_t) };
    if (count < STEP) {
        for (size_t i = 0; i < count; i++) to[i] = from[i];
        return;
    }
    for (size_t i = 0; i + STEP < count; i += STEP) memcpy(to + i, from + i, STEP_BYTES);
    memcpy(to + count - STEP, from + count - STEP, STEP_BYTES);
}

/*
 * Write the event once more that a template holds, at another time. False: there is none, or no
 * room.
 */
static inline bool
write_again(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
            const struct rb_vm_trace_site *site, uint64_t ns, enum vm_trace_word outcome)
{
    struct rb_vm_trace_writer *writer = &ractor->writer;
    uint32_t node = node_of(ractor);
    const struct vm_trace_template *known = template_of(ractor, node);
    if (known->node != node || known->site != site->serial || known->outcome != (uint32_t)outcome ||
        known->chunk != writer->serial || known->tree != ractor->stacks.tree) {
        return false;
    }
    const struct vm_trace_thread_id *fiber = &ractor->stacks.walk.fiber;
    unsigned thread = writer_last_thread(writer, fiber->tid, fiber->name_id);
    if (!thread) thread = rb_vm_trace_writer_thread(writer, fiber->tid, fiber->name_id);
    if (!thread) return false;

    size_t words = known->words;
    uint64_t *to = writer_reserve(writer, words);
    if (!to) return false;
    to[1] = ns;
    copy_words(to + 2, known->record + 2, words - 2);
    writer_publish(writer, words, fxt_event_header_with_thread(known->record[0], thread));
    writer->events++;
    return true;
}

static bool
write_exit(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct exit_event *exit = what;
    const struct rb_vm_trace_site *site = exit->site;
    struct vm_trace_event event;
    unsigned reason;
    if (!rb_vm_trace_event_begin_in_fiber(&event, ractor, ec, exit->ns)) return false;
    if (!writer_interned(&ractor->writer, site->reason, &reason)) return false;
    if (!rb_vm_trace_event_backtrace(&event, &ractor->stacks, 0)) return false;
    if (!event_interned(&event, W_INSN, site->insn)) return false;
    event_uint32(&event, W_VERSION, site->version);
    if (exit->weight > 1) event_uint32(&event, W_WEIGHT, (uint32_t)exit->weight);
    if (exit->outcome != W_NONE) event_string(&event, W_OUTCOME, exit->outcome);
    if (site->callee && event.arguments < FXT_MAX_ARGUMENTS &&
        !event_interned_rarely(&event, rb_vm_trace_callee_name, site->callee)) {
        return false;
    }
    /*
     * A sampled exit that recompiles and has more than ten frames has as many arguments as there
     * can be: its site tells.
     */
    if (site->inlined && site->iseq && event.arguments < FXT_MAX_ARGUMENTS &&
        !event_interned(&event, W_ISEQ, site->iseq))
        return false;
    if (exit->flow && !event_room(&event, event.words + EVENT_FLOW_WORDS)) return false;
    if (!event_end(&event, FXT_INSTANT, site_category(site), reason)) return false;
    if (exit->flow) event_flow(&event, FXT_FLOW_BEGIN, exit->flow);

    uint32_t node = node_of(ractor);
    if (node) {
        struct vm_trace_template *keep = template_of(ractor, node);
        keep->chunk = ractor->writer.serial;
        keep->tree = ractor->stacks.tree;
        keep->node = node;
        keep->site = site->serial;
        keep->outcome = (uint32_t)exit->outcome;
        keep->words = event.words;
        memcpy(keep->record, event.record, event.words * sizeof(*keep->record));
    }
    return true;
}

/* The frame of the first exit of a site has what was not known while compiling. */
static void
locate(const struct rb_vm_trace_site *site, const struct rb_vm_trace_stacks *stacks)
{
    if (__atomic_load_n(&site->located, __ATOMIC_RELAXED) || !stacks->walk.count) return;
    const struct vm_trace_label *label = &stacks->labels[stacks->walk.frames[stacks->walk.count - 1].id];
    rb_vm_trace_site_locate(site, label->text, label->bytes);
}

/*
 * What no template holds. Out of line, as notify_hooks_slow: most exits need neither, nor the room
 * on the stack that they take.
 */
static __attribute__((noinline)) bool
record_new(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
           const struct rb_vm_trace_site *site, uint64_t ns, uint64_t weight, enum vm_trace_word outcome, uint64_t flow)
{
    struct exit_event exit = { site, ns, weight, outcome, flow };
    ractor_notice_reset(ractor);
    if (!hits_mark(ractor, site->index)) {
        ractor->lost++;
        return false;
    }
    locate(site, &ractor->stacks);
    return rb_vm_trace_event_write_in_epoch(ractor, ec, write_exit, &exit);
}

/* There is no memory for its stack. */
static __attribute__((noinline)) void
lose(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site)
{
    ractor_notice_reset(ractor);
    hits_mark(ractor, site->index);
    ractor->lost++;
}

/* `outcome`, `flow`: as in struct exit_event. */
static inline void
record(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const struct rb_vm_trace_site *site,
       uint64_t ns, uint64_t weight, enum vm_trace_word outcome, uint64_t flow)
{
    if (ractor == rb_vm_trace_capture.overflow) { /* shared by ractors: nothing in it but the count */
        rb_vm_trace_hits_lose_overflow(site->index);
        return;
    }
    if (!stacks_capture(&ractor->stacks, ec, site->pc ? site->pc + HOST_PC_EXACT : 0)) {
        lose(ractor, site);
        return;
    }
    bool again = !flow && write_again(ractor, ec, site, ns, outcome);
    if (!again && !record_new(ractor, ec, site, ns, weight, outcome, flow)) return;
    if (site->kind != RB_VM_TRACE_FALLBACK) exits_of(ractor)->sampled++;
}

static const enum vm_trace_word outcome_words[] = {
    [RB_VM_TRACE_PROFILING] = W_PROFILING,
    [RB_VM_TRACE_INVALIDATED] = W_INVALIDATED,
    [RB_VM_TRACE_ALREADY_INVALIDATED] = W_ALREADY_INVALIDATED,
    [RB_VM_TRACE_VERSION_LIMIT] = W_VERSION_LIMIT
};

static __attribute__((noinline)) void
notify_hooks_slow(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec,
                  enum vm_trace_word outcome)
{
    size_t bytes;
    struct rb_vm_trace_exit_info exit = {
        .jit = rb_vm_trace_capture.jit,
        .reason = site->reason->text, .reason_len = site->reason->bytes,
        .insn = site->insn->text, .insn_len = site->insn->bytes,
        .version = site->version, .outcome = outcome == W_NONE ? NULL : rb_vm_trace_word_text(outcome, &bytes)
    };
    rb_vm_trace_host_notify_hooks(ec, &exit);
}

/*
 * Notify hooks, which may do anything, even stop the session. So nothing of it is
 * touched after this.
 */
static inline void
notify_hooks(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec, enum vm_trace_word outcome)
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
weight_while_hooked(struct vm_trace_exit_state *exits)
{
    __atomic_store_n(&exits->countdown, 1, __ATOMIC_RELAXED);
    exits_moved(exits); /* the one that a reset looks at stays as it is */
    return count_down(exits, &exits->unhooked_countdown);
}

static inline uint64_t
weight_of(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_exit_state *exits = exits_of(ractor);
    if (__builtin_expect(rb_vm_trace_capture.subscribed, 0)) return weight_while_hooked(exits);
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
    if (weight) record(ractor, ec, site, clock_now_ns(&ractor->clock), weight, W_NONE, 0);
    notify_hooks(site, ec, W_NONE);
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

void
rb_vm_trace_recompile_end(struct rb_vm_trace_ractor *ractor)
{
    versions_of(ractor)->exiting.site = NULL;
}

static void
recompile_exit(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site,
               struct rb_execution_context_struct *ec, uint64_t start_ns, uint64_t weight,
               enum rb_vm_trace_outcome outcome)
{
    struct vm_trace_version_state *versions = versions_of(ractor);
    uint64_t flow = versions->exiting.site ? versions->exiting.flow : 0;
    versions->exiting.site = NULL;
    if (weight && trace_on()) record(ractor, ec, site, start_ns, weight, outcome_words[outcome], flow);
    notify_hooks(site, ec, outcome_words[outcome]);
}

ANY_STACK void
rb_vm_trace_recompile_exit(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site,
                           struct rb_execution_context_struct *ec,
                           uint64_t start_ns, enum rb_vm_trace_outcome outcome)
{
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
    if (weight) record(ractor, ec, site, clock_now_ns(&ractor->clock), weight, W_NONE, 0);
}

ANY_STACK void
rb_vm_trace_first_hit(const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec)
{
    rb_vm_trace_hit(site, ec);
    notify_hooks(site, ec, W_NONE);
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
    if (ractor) rb_vm_trace_recompile_end(ractor);
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
