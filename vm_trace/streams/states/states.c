/*
 * Execution states: the hooks, and whose time it is. See levels.h.
 */
#include "vm_trace/streams/states/states.h"
#include "vm_trace/streams/states/c_methods.h"
#include "vm_trace/streams/states/call_times.h"
#include "vm_trace/streams/states/execution_slices.h"
#include "vm_trace/streams/code/sites.h"
#include "vm_trace/streams/states/thread_times.h"

#include <stdlib.h>
#include <string.h>

int rb_vm_trace_states_on;

enum { FIRST_LEVELS = 16, MOST_LEVELS = 1 << 20 };

/* Of calls that may be many, one in so many is timed. */
enum { ONE_IN = 16 };

/* --- levels ------------------------------------------------------------------------------------- */

static struct vm_trace_c_methods *
c_methods_of(const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(&rb_vm_trace_states, ractor);
}

static inline struct vm_trace_level *
innermost(struct rb_vm_trace_states *states)
{
    return &states->levels[states->depth];
}

/* What the exit lost before a reset counts no longer: it is not in the sum. */
static inline void
note_longest(struct vm_trace_lost *lost, const struct vm_trace_level *level)
{
    uint64_t ns = level->lost_ns < lost->ns ? level->lost_ns : lost->ns;
    if (ns > lost->longest_ns) __atomic_store_n(&lost->longest_ns, ns, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void
charge_site(struct rb_vm_trace_ractor *ractor, struct vm_trace_level *level, uint64_t ns)
{
    level->lost_ns += ns;
    const struct rb_vm_trace_site *site = level->exit.site;
    if (!site || site->serial != level->exit.serial) return; /* its code was freed meanwhile */
    struct vm_trace_lost *lost = &exits_of(ractor)->lost[site->index];
    __atomic_store_n(&lost->ns, lost->ns + ns, __ATOMIC_RELAXED);
    note_longest(lost, level); /* now, for a fiber may never get to the end of the frame */
}

/* Calls of methods in C that were not timed, in the innermost level. Returns their time. */
static __attribute__((noinline)) uint64_t
charge_short_c_calls(struct rb_vm_trace_states *states, uint64_t spent_ns)
{
    uint64_t ns = states->short_c_ns < spent_ns ? states->short_c_ns : spent_ns;
    states->short_c_ns = 0;
    states->ran_ns += ns;
    rb_vm_trace_thread_times_add(states->times, VM_TRACE_C_FUNCTION, ns);
    return ns;
}

/*
 * The time until `ns` was spent in the innermost level. Inline where states change often: programs
 * may enter compiled code millions of times in a second.
 */
static inline __attribute__((always_inline)) void
charge_inline(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, uint64_t ns)
{
    if (__builtin_expect(!states->since_ns, 0)) return;
    uint64_t since_ns = counted_from(states->times, states->since_ns);
    if (__builtin_expect(ns <= since_ns, 0)) return;
    struct vm_trace_level *level = innermost(states);
    uint64_t spent_ns = ns - since_ns;
    states->since_ns = ns;
    spent_ns -= thread_times_no_cpu(states->times, spent_ns, ns);
    if (__builtin_expect(states->short_c_ns > 0, 0)) spent_ns -= charge_short_c_calls(states, spent_ns);
    rb_vm_trace_thread_times_add(states->times, level->state, spent_ns);
    /* Compiling is done once, whatever a call takes; a timed call stands for many. */
    if (level->state != VM_TRACE_COMPILING) states->ran_ns += spent_ns;
    if (interpreted_p(level->state)) states->interpreted_ns += spent_ns;
    if (level->state == VM_TRACE_EXITED) charge_site(ractor, level, spent_ns);
}

static void
charge(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, uint64_t ns)
{
    charge_inline(ractor, states, ns);
}

static void
fill_in(const struct vm_trace_last_exit *exit, uint64_t lost_ns)
{
    __atomic_store_n(exit->lost_ns, lost_ns, __ATOMIC_RELAXED);
    if (!exit->sample_lost_ns) return;
    if (lost_ns > PROTO_WORD_MAX) lost_ns = PROTO_WORD_MAX;
    __atomic_store_n(exit->sample_lost_ns, proto_word(lost_ns, true), __ATOMIC_RELAXED);
}

/* What an exit lost is known now. */
static void
end_exit(struct rb_vm_trace_ractor *ractor, const struct vm_trace_level *level)
{
    const struct vm_trace_last_exit *exit = &level->exit;
    if (exit->chunk && exit->chunk == ractor->writer.chunk_serial && ractor->writer.chunk.words)
        fill_in(exit, level->lost_ns);
    if (!exit->site || exit->site->serial != exit->serial) return;
    note_longest(&exits_of(ractor)->lost[exit->site->index], level);
}

static __attribute__((noinline)) void
add_call_time(const struct rb_vm_trace_states *states, const struct vm_trace_level *level)
{
    const struct vm_trace_call call = { .state = level->call_state,
                                        .weight = level->weight,
                                        .begin_ns = level->call_ns,
                                        .ran_ns = states->ran_ns - level->ran_ns,
                                        .interpreted_ns = states->interpreted_ns - level->interpreted_ns };
    rb_vm_trace_call_times_add(level->call_times, &call);
}

/* The state of the innermost level ends at `ns`, which is charged. */
static inline __attribute__((always_inline)) void
end_state(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, uint64_t ns)
{
    struct vm_trace_level *level = innermost(states), *outer = level - 1;
    if (level->state == VM_TRACE_EXITED && !level->inherited) end_exit(ractor, level);
    else outer->lost_ns += level->lost_ns;
    if (level->begin_ns && !level->inherited) write_slice(ractor, states, level, ns);
}

/* The innermost level ends at `ns`, which is charged. Inline, as charge_inline. */
static inline __attribute__((always_inline)) void
pop_inline(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, uint64_t ns)
{
    const struct vm_trace_level *level = innermost(states);
    end_state(ractor, states, ns);
    if (level->call_times) add_call_time(states, level);
    if (level->c_method) c_method_took(c_methods_of(ractor), level->c_method, states->ran_ns - level->ran_ns);
    states->depth--;
}

static void
pop(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, uint64_t ns)
{
    pop_inline(ractor, states, ns);
}

/* Levels inside the one at `depth` end, and that one's frame goes on. */
static void
pop_to(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, size_t depth, uint64_t ns)
{
    while (states->depth > depth) pop(ractor, states, ns);
}

/* The depth that is left when levels end whose frames have ended. */
static size_t
depth_of(const struct rb_vm_trace_states *states, uintptr_t frame)
{
    size_t depth = states->depth;
    while (states->levels[depth].frame < frame) depth--;
    return depth;
}

static void
end_levels(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, size_t depth)
{
    if (depth == states->depth) return;
    uint64_t ns = clock_now_ns(&ractor->clock);
    charge(ractor, states, ns);
    pop_to(ractor, states, depth, ns);
    states_changed(states);
}

/* False: no memory, or too deep. */
static __attribute__((noinline)) bool
grow(struct rb_vm_trace_states *states)
{
    size_t capacity = states->capacity * 2;
    struct vm_trace_level *grown = capacity <= MOST_LEVELS ? realloc(states->levels, capacity * sizeof(*grown)) : NULL;
    if (!grown) return false;
    states->levels = grown;
    states->capacity = capacity;
    return true;
}

/* A level more, whose state is to be set. NULL: it can't grow; then the outer one stands for it. */
static inline struct vm_trace_level *
push(struct rb_vm_trace_states *states, uintptr_t frame)
{
    if (__builtin_expect(states->depth + 1 >= states->capacity, 0) && !grow(states)) return NULL;
    struct vm_trace_level *level = &states->levels[++states->depth];
    *level = (struct vm_trace_level){
        .frame = frame, .interpreted_ns = states->interpreted_ns, .ran_ns = states->ran_ns
    };
    return level;
}

/* The level is a call of its ISEQ, which stands for `weight` of them. */
static __attribute__((noinline)) void
time_call(struct vm_trace_level *level, unsigned weight, uint64_t ns)
{
    level->call_times = level->iseq ? rb_vm_trace_call_times_of(level->iseq) : NULL;
    level->call_state = level->state;
    level->call_ns = ns;
    level->weight = weight;
}

/* --- execution contexts ---------------------------------------------------------------------------- */

/* The trace is a forked child's, whose thread has run since it began, and is not known yet. */
static bool forked;

/* Since when the thread runs what it does, which is seen for the first time. */
static uint64_t
first_ns(struct rb_vm_trace_ractor *ractor, struct vm_trace_thread_times *times)
{
    uint64_t ns = forked ? rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 }) : times->left_ns;
    forked = false;
    times->left_ns = 0;
    return ns ? ns : clock_now_ns(&ractor->clock);
}

/* What is remembered of it in this trace; made where it is not there yet. NULL: no memory. */
static __attribute__((noinline)) struct rb_vm_trace_states *
make_states(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
            struct rb_vm_trace_states **slot)
{
    if (*slot) rb_vm_trace_states_ended_slow(slot);
    struct rb_vm_trace_states *states = calloc(1, sizeof(*states));
    if (!states) return NULL;
    states->levels = malloc(FIRST_LEVELS * sizeof(*states->levels));
    states->capacity = FIRST_LEVELS;
    states->trace = trace_id();
    states->ec = ec;
    if (states->levels) states->times = rb_vm_trace_thread_times_join(states, slot);
    if (!states->times) {
        free(states->levels);
        free(states);
        return NULL;
    }
    states->levels[0] = (struct vm_trace_level){ .frame = UINTPTR_MAX, .state = VM_TRACE_UNSEEN };
    states->since_ns = first_ns(ractor, states->times);
    return states;
}

/* NULL: nothing can be recorded. */
static inline struct rb_vm_trace_states *
find(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor **ractor_out)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_states_on ? recording_ractor(ec) : NULL;
    if (!ractor) return NULL;
    *ractor_out = ractor;
    struct rb_vm_trace_states **slot = rb_vm_trace_host_states(ec), *states = *slot;
    if (__builtin_expect(states != NULL, 1) && states->trace == trace_id()) return states;
    return make_states(ractor, ec, slot);
}

/* The same for what is not worth to be made. */
static inline struct rb_vm_trace_states *
known(struct rb_execution_context_struct *ec, const struct rb_vm_trace_ractor *ractor)
{
    if (!rb_vm_trace_states_on || ractor == rb_vm_trace_capture.overflow) return NULL;
    struct rb_vm_trace_states *states = *rb_vm_trace_host_states(ec);
    return states && states->trace == trace_id() ? states : NULL;
}

/* An entry is the depth of its level, in this trace. */
static uint64_t
entry_number(size_t depth)
{
    return trace_id() << 32 | depth;
}

/*
 * Whether this entry into compiled code is timed: one in ONE_IN on average, after a random number of
 * others, for a loop may enter the same few methods in turn.
 */
static inline bool
timed_p(struct rb_vm_trace_states *states)
{
    if (states->untimed > 0) {
        states->untimed--;
        return false;
    }
    states->random = states->random * UINT32_C(1664525) + UINT32_C(1013904223);
    states->untimed = (states->random >> 16) % (2 * ONE_IN - 1);
    return true;
}

/* --- compiled code ------------------------------------------------------------------------------------ */

uint64_t
rb_vm_trace_states_enter(struct rb_execution_context_struct *ec, uintptr_t frame)
{
    struct rb_vm_trace_ractor *ractor;
    struct rb_vm_trace_states *states = find(ec, &ractor);
    if (!states) return RB_VM_TRACE_SAME_STATE;
    uint64_t ns = clock_now_ns(&ractor->clock);
    charge_inline(ractor, states, ns);
    struct vm_trace_level *level = innermost(states);
    if (level->frame == frame && interpreted_p(level->state)) {
        /* Its exception handler is compiled: the same call runs compiled code again. */
        end_state(ractor, states, ns);
        level->state = VM_TRACE_COMPILED;
        level->lost_ns = 0;
        level->inherited = false;
    }
    else {
        level = push(states, frame);
        if (!level) return RB_VM_TRACE_SAME_STATE;
        level->state = VM_TRACE_COMPILED;
        level->iseq = rb_vm_trace_host_watch_frame(frame);
        if (timed_p(states)) time_call(level, ONE_IN, ns);
    }
    level->begin_ns = ns;
    exits_of(ractor)->last.site = NULL;
    states_changed(states);
    return entry_number(states->depth);
}

/* Compiled code of the innermost level returned to the interpreter. */
static void
exit_level(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, uint64_t ns)
{
    struct vm_trace_level *level = innermost(states);
    struct vm_trace_last_exit *last = &exits_of(ractor)->last;
    if (level->begin_ns) write_slice(ractor, states, level, ns);
    /* No exit: an exception has left its code, and there is none to go on with, or not yet. */
    level->state = last->site ? VM_TRACE_EXITED : VM_TRACE_UNCOMPILED;
    if (level->call_state == VM_TRACE_COMPILED) level->call_state = level->state; /* else only its handler exited */
    level->begin_ns = ns;
    level->lost_ns = 0;
    level->exit = *last;
    *last = (struct vm_trace_last_exit){ .site = NULL };
    states_changed(states);
}

/* Code exited that had been entered from compiled code, so that its frame has no level yet. */
static void
exit_frame(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, uintptr_t frame, uint64_t ns)
{
    struct vm_trace_level *level = push(states, frame);
    if (!level) return;
    level->iseq = rb_vm_trace_host_watch_frame(frame);
    exit_level(ractor, states, ns);
}

/* What is not a return from the innermost level. Out of line, because most are. */
static __attribute__((noinline)) void
return_slow(struct rb_execution_context_struct *ec, struct rb_vm_trace_ractor *ractor,
            struct rb_vm_trace_states *states, uintptr_t frame, uint64_t entry, bool exited)
{
    bool nested = entry == RB_VM_TRACE_SAME_STATE;
    size_t depth = (uint32_t)entry;
    if (!nested && (entry_number(depth) != entry || depth > states->depth)) return; /* another trace has begun */
    uintptr_t innermost_frame = rb_vm_trace_host_innermost(ec);
    /*
     * Code that an exception handler entered gives the interpreter its caller, when its own frame
     * has ended.
     */
    if (!exited || frame < innermost_frame) {
        end_levels(ractor, states, depth_of(states, innermost_frame));
        return;
    }
    uint64_t ns = clock_now_ns(&ractor->clock);
    charge(ractor, states, ns);
    pop_to(ractor, states, nested ? depth_of(states, frame + 1) : depth, ns);
    if (nested) exit_frame(ractor, states, frame, ns);
    else exit_level(ractor, states, ns);
}

void
rb_vm_trace_states_return(struct rb_execution_context_struct *ec, uintptr_t frame, uint64_t entry, bool exited)
{
    struct rb_vm_trace_ractor *ractor;
    struct rb_vm_trace_states *states = find(ec, &ractor);
    if (!states) return;
    if (exited || entry != entry_number(states->depth)) {
        return_slow(ec, ractor, states, frame, entry, exited);
        return;
    }
    uint64_t ns = clock_now_ns(&ractor->clock);
    charge_inline(ractor, states, ns);
    pop_inline(ractor, states, ns);
    states_changed(states);
}

void
rb_vm_trace_states_popped(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor;
    struct rb_vm_trace_states *states = find(ec, &ractor);
    if (states) end_levels(ractor, states, depth_of(states, rb_vm_trace_host_innermost(ec)));
}

void
rb_vm_trace_states_unwound(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor;
    struct rb_vm_trace_states *states = find(ec, &ractor);
    if (!states) return;
    end_levels(ractor, states, depth_of(states, rb_vm_trace_host_innermost(ec)));
    enum vm_trace_execution state = innermost(states)->state;
    if (state != VM_TRACE_COMPILED && state != VM_TRACE_FALLBACK) return;
    /* The jump has left compiled code: that of the level, or what it entered by way of C. */
    uint64_t ns = clock_now_ns(&ractor->clock);
    uintptr_t first = rb_vm_trace_host_first_frame(ec);
    charge(ractor, states, ns);
    if (innermost(states)->frame <= first) exit_level(ractor, states, ns);
    else exit_frame(ractor, states, first, ns);
}

/* --- the interpreter ------------------------------------------------------------------------------------ */

void
rb_vm_trace_states_uncompiled(struct rb_execution_context_struct *ec, uint64_t calls, uint64_t threshold)
{
    /* After the one that should have compiled it, calls may be many. */
    struct rb_vm_trace_ractor *ractor;
    struct rb_vm_trace_states *states = find(ec, &ractor);
    if (!states) return;
    bool given_up = calls > threshold, begins = !interpreted_p(innermost(states)->state);
    if (given_up && !begins && calls % ONE_IN) return;

    uint64_t ns = clock_now_ns(&ractor->clock);
    charge(ractor, states, ns);
    uintptr_t frame = rb_vm_trace_host_innermost(ec);
    struct vm_trace_level *level = push(states, frame);
    if (!level) return;
    level->begin_ns = ns;
    level->iseq = rb_vm_trace_host_watch_frame(frame);
    unsigned weight = given_up && !begins ? ONE_IN : 1;
    time_call(level, weight, ns);
    level->state = level->call_state = rb_vm_trace_call_times_state(level->call_times, given_up);
    const struct vm_trace_level *outer = level - 1;
    if (outer->state == VM_TRACE_C_FUNCTION) outer--; /* a block that it calls */
    if (outer->state == VM_TRACE_EXITED) {
        level->state = VM_TRACE_EXITED;
        level->exit = outer->exit;
        level->inherited = true;
    }
    if (begins || !level->inherited) states_changed(states);
}

/* --- C ---------------------------------------------------------------------------------------------------- */

static int
compare_times(const void *a, const void *b)
{
    const uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

/* What timing takes of the time of an empty call, from when its state begins until its end is read: the median, for the
 * clock may be set right meanwhile, and the system may stop the thread. */
static __attribute__((noinline)) uint32_t
measure_timing_ns(struct rb_vm_trace_ractor *ractor)
{
    enum { TRIALS = 63 };
    uint64_t took_ns[TRIALS];
    struct vm_trace_level levels[3] = { { .state = VM_TRACE_UNCOMPILED } };
    struct vm_trace_thread_times times = { .epoch = trace_epoch(), .look = { .due_ns = UINT64_MAX } };
    struct rb_vm_trace_states states = { .times = &times, .levels = levels, .capacity = 3 };
    for (int i = 0; i < TRIALS; i++) {
        uint64_t begin_ns = clock_now_ns(&ractor->clock);
        charge(ractor, &states, begin_ns);
        push(&states, 0)->state = VM_TRACE_C_FUNCTION;
        states_changed(&states);
        uint64_t end_ns = clock_now_ns(&ractor->clock);
        charge(ractor, &states, end_ns);
        pop(ractor, &states, end_ns);
        took_ns[i] = end_ns - begin_ns;
    }
    qsort(took_ns, TRIALS, sizeof(*took_ns), compare_times);
    uint64_t median_ns = took_ns[TRIALS / 2];
    return median_ns == 0 ? 1 : median_ns < C_METHOD_SHORT_NS ? (uint32_t)median_ns : C_METHOD_SHORT_NS;
}

void
rb_vm_trace_states_c_called(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor;
    struct rb_vm_trace_states *states = find(ec, &ractor);
    if (!states) return;
    enum vm_trace_execution caller = innermost(states)->state;
    if (!interpreted_p(caller) && caller != VM_TRACE_FALLBACK) return;
    uintptr_t method = rb_vm_trace_host_innermost_method(ec);
    struct vm_trace_c_methods *methods = c_methods_of(ractor);
    if (!c_method_timed_p(methods, method, &states->short_c_ns)) return;
    if (__builtin_expect(!methods->timing_ns, 0)) methods->timing_ns = measure_timing_ns(ractor);
    uintptr_t frame = rb_vm_trace_host_innermost(ec);
    rb_vm_trace_host_watch_frame(frame);
    uint64_t ns = clock_now_ns(&ractor->clock); /* as late as can be */
    charge(ractor, states, ns);
    struct vm_trace_level *level = push(states, frame);
    if (!level) return;
    level->state = VM_TRACE_C_FUNCTION;
    level->c_method = method;
    level->call_ns = ns;
    states_changed(states);
}

void
rb_vm_trace_states_fallback(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_states *states = known(ec, ractor);
    if (!states || innermost(states)->state != VM_TRACE_COMPILED) return;
    charge(ractor, states, clock_now_ns(&ractor->clock));
    innermost(states)->state = VM_TRACE_FALLBACK;
    states_changed(states);
}

void
rb_vm_trace_fallback_end(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(ec);
    struct rb_vm_trace_states *states = ractor ? known(ec, ractor) : NULL;
    if (!states || innermost(states)->state != VM_TRACE_FALLBACK) return;
    charge(ractor, states, clock_now_ns(&ractor->clock));
    innermost(states)->state = VM_TRACE_COMPILED;
    states_changed(states);
}

/* --- compilations --------------------------------------------------------------------------------------- */

void
rb_vm_trace_states_compile_begin(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                 uint64_t ns)
{
    struct rb_vm_trace_states *states = known(ec, ractor);
    if (!states) return;
    charge(ractor, states, ns);
    struct vm_trace_level *level = push(states, rb_vm_trace_host_innermost(ec));
    if (!level) return;
    level->state = VM_TRACE_COMPILING;
    states_changed(states);
}

void
rb_vm_trace_states_compile_end(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, uint64_t ns)
{
    struct rb_vm_trace_states *states = known(ec, ractor);
    if (!states || innermost(states)->state != VM_TRACE_COMPILING) return;
    charge(ractor, states, ns);
    pop(ractor, states, ns);
    states_changed(states);
}

/* --- what is not running --------------------------------------------------------------------------------- */

void
rb_vm_trace_states_pause(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, uint64_t ns)
{
    struct rb_vm_trace_states *states = known(ec, ractor);
    if (!states || !states->since_ns) return;
    charge(ractor, states, ns);
    states->paused_ns = states->since_ns;
    states->since_ns = 0;
    states_changed(states);
}

/* A thread runs for the first time; it waited for the GVL since `ready_ns`, if that is not 0. */
static void
begin_thread(struct rb_execution_context_struct *ec, uint64_t ready_ns)
{
    struct rb_vm_trace_ractor *ractor;
    struct rb_vm_trace_states *states = find(ec, &ractor);
    if (!states || !ready_ns || ready_ns >= states->since_ns) return;
    rb_vm_trace_thread_times_add(states->times, VM_TRACE_WAITING, states->since_ns - ready_ns);
}

void
rb_vm_trace_states_resume(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                          enum vm_trace_execution state, uint64_t ready_ns, uint64_t ns)
{
    struct rb_vm_trace_states *states = known(ec, ractor);
    if (!states) begin_thread(ec, ready_ns);
    if (!states || states->since_ns) return;
    uint64_t paused_ns = counted_from(states->times, states->paused_ns);
    if (ns < paused_ns) ns = paused_ns;
    if (ready_ns < paused_ns) ready_ns = paused_ns;
    if (ready_ns > ns || state == VM_TRACE_GC) ready_ns = ns;
    uint64_t spent_ns = ready_ns - paused_ns;
    if (state == VM_TRACE_GC) spent_ns -= thread_times_no_cpu(states->times, spent_ns, ns);
    rb_vm_trace_thread_times_add(states->times, state, spent_ns);
    rb_vm_trace_thread_times_add(states->times, VM_TRACE_WAITING, ns - ready_ns);
    states->since_ns = ns;
    states_changed(states);
}

void
rb_vm_trace_states_switched(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to,
                            struct rb_vm_trace_ractor *ractor)
{
    struct rb_vm_trace_states *left = known(from, ractor), *next = known(to, ractor);
    if (!left && !next) return;
    uint64_t ns = clock_now_ns(&ractor->clock);
    if (left) {
        charge(ractor, left, ns);
        left->since_ns = 0;
        left->times->left_ns = ns;
    }
    if (!next) return; /* it is made when it runs something, and counts from then on */
    uint64_t left_ns = next->times->left_ns ? counted_from(next->times, next->times->left_ns) : 0;
    if (!left && left_ns && left_ns < ns)
        rb_vm_trace_thread_times_add(next->times, VM_TRACE_UNSEEN, ns - left_ns); /* it ran only C */
    next->since_ns = ns;
    next->times->left_ns = 0;
    next->times->running = next;
    states_changed(next);
}

/* The thread that starts the trace is in it from the first moment. */
void
rb_vm_trace_states_begin(void)
{
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_ractor *ractor;
    struct rb_vm_trace_states *states = ec ? find(ec, &ractor) : NULL;
    if (states) states->since_ns = rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 });
}

/* --- the end ---------------------------------------------------------------------------------------------- */

/* All levels end. */
static void
end_all(struct rb_vm_trace_ractor *ractor, struct rb_vm_trace_states *states, uint64_t ns)
{
    charge(ractor, states, ns);
    pop_to(ractor, states, 0, ns);
    states_changed(states);
}

static bool
own_context_p(struct rb_execution_context_struct *ec)
{
    return rb_vm_trace_host_fiber(ec).tid == rb_vm_trace_host_thread(ec).tid;
}

void
rb_vm_trace_states_ended_slow(struct rb_vm_trace_states **slot)
{
    struct rb_vm_trace_states *states = *slot;
    struct rb_vm_trace_ractor *ractor;
    struct rb_execution_context_struct *current = rb_vm_trace_host_current();
    if (current == states->ec && known(current, rb_vm_trace_host_ractor(current)) && find(current, &ractor)) {
        uint64_t ns = clock_now_ns(&ractor->clock);
        end_all(ractor, states, ns);
        states->times->left_ns = ns;
        if (own_context_p(current)) rb_vm_trace_thread_times_end(states->times, ractor, current);
    }
    rb_vm_trace_thread_times_leave(states);
    free(states->levels);
    free(states);
}

/* What is on counts until now, also of a thread that is paused. World stopped. */
static void
close_context(struct rb_vm_trace_states *states)
{
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_ractor(states->ec);
    states->head.compiled = false;
    if (!ractor || states->times->running != states) return; /* another fiber runs */
    uint64_t ns = clock_now_ns(&ractor->clock), paused_ns = counted_from(states->times, states->paused_ns);
    if (states->since_ns) end_all(ractor, states, ns);
    else if (ns > paused_ns) rb_vm_trace_thread_times_add(states->times, VM_TRACE_BLOCKED, ns - paused_ns);
    states->since_ns = states->paused_ns = 0;
}

void
rb_vm_trace_states_finish(void)
{
    rb_vm_trace_thread_times_each_context(close_context);
}

static void
update_iseqs(struct rb_vm_trace_states *states)
{
    for (size_t depth = 0; depth <= states->depth; depth++) {
        const struct rb_iseq_struct **iseq = &states->levels[depth].iseq;
        uintptr_t now = *iseq ? rb_vm_trace_host_moved_to((uintptr_t)*iseq) : 0;
        memcpy(iseq, &now, sizeof(now)); /* the host knows objects as numbers */
    }
}

void
rb_vm_trace_states_compacted(void)
{
    rb_vm_trace_thread_times_each_context(update_iseqs);
}

void
rb_vm_trace_states_after_fork(void)
{
    forked = true;
    rb_vm_trace_thread_times_after_fork();
}
