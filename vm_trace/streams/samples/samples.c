/*
 * Samples of time. See samples.h.
 *
 * A stack that the handler of a signal has copied is named by the thread itself, soon and before
 * anything of it can be freed. A thread that waits has the same stack all the time: what is charged to
 * its waiting is written when it runs on, or by another thread of its ractor, which has the GVL.
 */
#include "vm_trace/streams/samples/samples.h"
#include "vm_trace/base/code_region.h"
#include "vm_trace/base/numbers.h"
#include "vm_trace/streams/allocations/allocations.h"
#include "vm_trace/streams/frames.h"
#include "vm_trace/streams/samples/sample_ring.h"
#include "vm_trace/streams/samples/sampler.h"
#include "vm_trace/capture/stack_samples.h"
#include "vm_trace/streams/threads/thread_records.h"

#include <string.h>

#define LEAST_PERIOD_NS UINT64_C(100000)
#define MOST_PERIOD_NS UINT64_C(10000000000)

/* A long wait is written as several samples, one for so much of it, but not more than so many. */
#define PIECE_NS UINT64_C(100000000)
enum { MOST_PIECES = 1000 };

/* While others run, what a thread waits is written at least that often. */
#define STALE_NS UINT64_C(1000000000)

struct vm_trace_samples_state {
    struct vm_trace_samples samples;
    struct vm_trace_sample_rings rings;
    uint64_t ticks, records;   /* written */
};

/* Collections that have begun. */
static _Atomic uint32_t collections;

static struct vm_trace_samples_state *
state_of(const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(&rb_vm_trace_samples, ractor);
}

/* --- writing ------------------------------------------------------------------------------------- */

static bool
write_sample(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    return rb_vm_trace_event_name_thread(ractor, ec) &&
        rb_vm_trace_sample_write_time(ractor, &state_of(ractor)->samples, what);
}

/* Write one of the stack that was captured last. */
static void
put_sample(struct rb_vm_trace_ractor *ractor, const struct vm_trace_time_sample *sample, uint64_t ticks)
{
    struct vm_trace_samples_state *state = state_of(ractor);
    if (sample->ns < ractor->from_ns || !sample->weight_ns) return; /* of an earlier epoch */
    if (!rb_vm_trace_event_write_in_epoch(ractor, sample->task.ec, write_sample, sample)) return;
    state->records++;
    state->ticks += ticks;
}

/* Stacks begin with something, as flame graphs do. False: no memory. */
static bool
put_no_frames(struct rb_vm_trace_stacks *stacks)
{
    static const struct vm_trace_sampled_frame nobody = { HOST_PC_NO_FRAMES, 0, NULL };
    return rb_vm_trace_stacks_put(stacks, &nobody, 0, 1);
}

static struct vm_trace_sample_task
task_of(struct rb_execution_context_struct *ec)
{
    struct vm_trace_thread_id thread = rb_vm_trace_host_thread(ec), fiber = rb_vm_trace_host_fiber(ec);
    return (struct vm_trace_sample_task){
        .tid = thread.tid, .fiber = fiber.tid == thread.tid ? 0 : fiber.tid, .ec = ec
    };
}

struct naming {
    struct rb_vm_trace_ractor *ractor;
    struct vm_trace_sample_task task;
};

static void
name_stack(const struct vm_trace_sampled_stack *stack, const struct vm_trace_sampled_frame *frames, void *data)
{
    const struct naming *naming = data;
    struct rb_vm_trace_stacks *stacks = &naming->ractor->stacks;
    bool named = stack->count > 0 ? rb_vm_trace_stacks_put(stacks, frames, stack->from, stack->count) :
                                    put_no_frames(stacks);
    if (!named) {
        naming->ractor->lost++;
        return;
    }
    const struct vm_trace_time_sample sample = {
        naming->task, (enum vm_trace_sample_state)stack->state, stack->ns, stack->weight_ns
    };
    put_sample(naming->ractor, &sample, stack->ticks);
}

/*
 * Name and write the stacks that the handler has copied of a thread. GVL held, no lock of a scheduler or
 * of the VM.
 */
static void
empty_ring(struct rb_vm_trace_ractor *ractor, struct vm_trace_sampled *thread)
{
    struct vm_trace_sample_ring *ring = thread->ring;
    struct rb_execution_context_struct *ec = ring ? rb_vm_trace_sample_ring_owner(ring) : NULL;
    if (!ec) return;
    struct naming naming = { ractor, task_of(ec) };
    ractor_notice_reset(ractor);
    rb_vm_trace_sample_ring_take(ring, name_stack, &naming);
}

static bool
cpu_p(void)
{
    return rb_vm_trace_samples.only && strcmp(rb_vm_trace_samples.only, "cpu") == 0;
}

/* A stretch of time in which a thread had the same stack. */
struct stretch {
    struct rb_execution_context_struct *ec;
    uint64_t from_ns, to_ns;
};

/* Write what is charged to it, in pieces. */
static void
put_pieces(struct rb_vm_trace_ractor *ractor, const struct stretch *stretch, enum vm_trace_sample_state state,
           struct vm_trace_charged charged)
{
    struct rb_vm_trace_stacks *stacks = &ractor->stacks;
    if (!charged.ns) return;
    ractor_notice_reset(ractor);
    bool captured = stacks_capture(stacks, stretch->ec, 0);
    if (captured && stacks->walk.count == 0) captured = put_no_frames(stacks);
    if (!captured) {
        ractor->lost++;
        return;
    }
    uint64_t pieces = charged.ns / PIECE_NS + 1;
    uint64_t elapsed_ns = stretch->to_ns > stretch->from_ns ? stretch->to_ns - stretch->from_ns : 0;
    if (pieces > MOST_PIECES) pieces = MOST_PIECES;
    struct vm_trace_time_sample sample = { task_of(stretch->ec), state, 0, 0 };
    for (uint64_t i = 0, ns = 0, ticks = 0; i < pieces; i++) {
        uint64_t until_ns = charged.ns * (i + 1) / pieces, until_ticks = charged.ticks * (i + 1) / pieces;
        sample.ns = stretch->from_ns + (uint64_t)((double)elapsed_ns * ((double)i + 0.5) / (double)pieces);
        sample.weight_ns = until_ns - ns;
        put_sample(ractor, &sample, until_ticks - ticks);
        ns = until_ns;
        ticks = until_ticks;
    }
}

/*
 * Write what is charged to a thread whose stack is that of `ec` all the time, from `from_ns` to
 * `to_ns`.
 */
static void
put_charged(struct rb_vm_trace_ractor *ractor, struct vm_trace_sampled *thread, struct rb_execution_context_struct *ec,
            enum vm_trace_charge charge, uint64_t from_ns, uint64_t to_ns)
{
    static const enum vm_trace_sample_state states[VM_TRACE_CHARGES] = {
        [VM_TRACE_CHARGE_RUNNING] = VM_TRACE_SAMPLE_INTERPRETED, [VM_TRACE_CHARGE_NO_CPU] = VM_TRACE_SAMPLE_NO_CPU,
        [VM_TRACE_CHARGE_GC] = VM_TRACE_SAMPLE_GC, [VM_TRACE_CHARGE_BLOCKED] = VM_TRACE_SAMPLE_BLOCKED,
        [VM_TRACE_CHARGE_WAITING] = VM_TRACE_SAMPLE_WAITING
    };
    const struct stretch stretch = { ec, from_ns, to_ns };
    put_pieces(ractor, &stretch, states[charge], sampled_take(thread, charge));
}

/* Write the time without the GVL: in which the thread had a CPU, and in which it was blocked. */
static void
put_blocked(struct rb_vm_trace_ractor *ractor, struct vm_trace_sampled *thread, const struct stretch *stretch)
{
    struct vm_trace_charged blocked = sampled_take(thread, VM_TRACE_CHARGE_BLOCKED), ran = blocked;
    if (!blocked.ns) return;
    if (!cpu_p()) {
        double share = rb_vm_trace_sampled_cpu_share(thread, stretch->to_ns);
        ran.ns = (uint64_t)(share * (double)blocked.ns);
        ran.ticks = (uint64_t)(share * (double)blocked.ticks);
        thread->computes = ran.ns > 0;
    }
    blocked.ns -= ran.ns;
    blocked.ticks -= ran.ticks;
    put_pieces(ractor, stretch, VM_TRACE_SAMPLE_WITHOUT_GVL, ran);
    put_pieces(ractor, stretch, VM_TRACE_SAMPLE_BLOCKED, blocked);
}

/* Of a thread that waits, or has waited until now. */
static void
put_wait(struct rb_vm_trace_ractor *ractor, struct vm_trace_sampled *thread, struct rb_execution_context_struct *ec)
{
    uint64_t now_ns = clock_now_ns(&ractor->clock);
    uint64_t waited_ns = atomic_load_explicit(&thread->charged[VM_TRACE_CHARGE_WAITING].ns, memory_order_relaxed);
    uint64_t ready_ns = now_ns - thread->since_ns > waited_ns ? now_ns - waited_ns : thread->since_ns;
    const struct stretch blocked = { ec, thread->since_ns, ready_ns };
    put_blocked(ractor, thread, &blocked);
    put_charged(ractor, thread, ec, VM_TRACE_CHARGE_WAITING, ready_ns, now_ns);
    thread->since_ns = now_ns;
}

static bool
waits_p(const struct vm_trace_sampled *thread)
{
    uint32_t phase = atomic_load_explicit(&thread->phase, memory_order_acquire);
    return thread->ec && (phase == VM_TRACE_BLOCKS || phase == VM_TRACE_WAITS);
}

/* Of a thread of the ractor, whose GVL the current thread has. */
static void
put_stale_wait(struct vm_trace_sampled *thread, void *data)
{
    struct rb_vm_trace_ractor *ractor = data;
    if (thread->ractor != ractor || !waits_p(thread)) return;
    uint64_t ns = atomic_load_explicit(&thread->charged[VM_TRACE_CHARGE_BLOCKED].ns, memory_order_relaxed) +
        atomic_load_explicit(&thread->charged[VM_TRACE_CHARGE_WAITING].ns, memory_order_relaxed);
    if (ns >= STALE_NS) put_wait(ractor, thread, thread->ec);
}

/* --- the handler --------------------------------------------------------------------------------- */

/* Of a thread that runs. After an exception, words that an earlier call has left on the stack may mislead. */
static enum vm_trace_sample_state
running_state(struct rb_execution_context_struct *ec, const void *context)
{
    enum { MOST_BYTES = 32 << 10 };
    const struct vm_trace_interrupted interrupted = rb_vm_trace_platform_interrupted(context);
    uintptr_t sp = interrupted.sp, end;
    if (rb_vm_trace_code_p(interrupted.pc) || rb_vm_trace_code_p(interrupted.return_address))
        return VM_TRACE_SAMPLE_COMPILED;
    switch (rb_vm_trace_host_compiled(ec, sp, &end)) {
      case HOST_COMPILED:
        return VM_TRACE_SAMPLE_COMPILED;
      case HOST_INTERPRETED:
        return VM_TRACE_SAMPLE_INTERPRETED;
      default:
        if (end - sp > MOST_BYTES) end = sp + MOST_BYTES;
        return rb_vm_trace_code_between_p(sp, end) ? VM_TRACE_SAMPLE_COMPILED : VM_TRACE_SAMPLE_INTERPRETED;
    }
}

/* Async-signal-safe. */
static void
take(struct vm_trace_sampled *thread, void *context)
{
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct vm_trace_sample_ring *ring = thread->ring;
    if (!ec || !ring) return;
    uint64_t now_ns = rb_vm_trace_clock_system_ns();
    enum vm_trace_sample_state state = running_state(ec, context);
    bool cheap = state == VM_TRACE_SAMPLE_INTERPRETED;
    if (rb_vm_trace_sample_ring_due_p(ring, now_ns, cheap)) rb_vm_trace_host_interrupt(ec);
    if (!rb_vm_trace_sample_ring_walk(ring, ec)) return; /* the next sample has this one's time, too */
    struct vm_trace_charged running = sampled_take(thread, VM_TRACE_CHARGE_RUNNING);
    struct vm_trace_charged no_cpu = sampled_take(thread, VM_TRACE_CHARGE_NO_CPU);
    struct vm_trace_sampled_stack stack = { .ns = now_ns };
    /* Always one: what is added next differs from what was walked last. */
    if (running.ns || !no_cpu.ns) {
        stack.weight_ns = running.ns;
        stack.ticks = (uint32_t)running.ticks;
        stack.state = (uint16_t)state;
        rb_vm_trace_sample_ring_add(ring, &stack);
    }
    if (no_cpu.ns) {
        stack.weight_ns = no_cpu.ns;
        stack.ticks = (uint32_t)no_cpu.ticks;
        stack.state = VM_TRACE_SAMPLE_NO_CPU;
        rb_vm_trace_sample_ring_add(ring, &stack);
    }
}

/* --- hooks: threads -------------------------------------------------------------------------------- */

/* Their time goes to the next sample of the thread: their methods and ISEQs may be freed. */
static void
charge_again(const struct vm_trace_sampled_stack *stack, const struct vm_trace_sampled_frame *frames, void *data)
{
    struct vm_trace_sampled *thread = data;
    (void)frames;
    sampled_charge(thread, VM_TRACE_CHARGE_RUNNING, stack->weight_ns, stack->ticks);
}

/*
 * The thread's stack stays as it is from now on. What the handler has copied of it and is not named yet is
 * named when it runs on, unless there was a collection; a signal that is on its way does nothing.
 */
static void
stand_still(struct vm_trace_sampled *thread, struct rb_execution_context_struct *ec)
{
    thread->collections = atomic_load(&collections);
    thread->ec = ec;
    thread->since_ns = rb_vm_trace_clock_system_ns();
    bool shares = rb_vm_trace_host_thread(ec).tid >= HOST_SYNTHETIC_THREADS;
    atomic_store_explicit(&thread->shares_native, shares, memory_order_relaxed);
    atomic_fetch_add_explicit(&thread->waits, 1, memory_order_release);
    rb_vm_trace_sampled_charge_due(thread, thread->since_ns);
    atomic_store_explicit(&thread->ran_until_ns, thread->since_ns, memory_order_relaxed);
    rb_vm_trace_sampled_run(NULL);
}

/* It is not looked at until the scheduler's lock is taken. */
void
rb_vm_trace_samples_suspending(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *memory,
                                    enum rb_vm_trace_suspension why)
{
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_current();
    if (!thread) return;
    rb_vm_trace_sampled_settle(thread);
    struct rb_vm_trace_ractor *ractor = recording_ractor(ec);
    if (ractor) empty_ring(ractor, thread);
    bool unnamed = thread->ring && rb_vm_trace_sample_ring_owner(thread->ring);
    if (unnamed && why == RB_VM_TRACE_DEAD) rb_vm_trace_sample_ring_take(thread->ring, charge_again, thread);
    if (ractor && why == RB_VM_TRACE_DEAD) { /* no other sample has this time */
        uint64_t now_ns = rb_vm_trace_clock_system_ns();
        rb_vm_trace_sampled_charge_due(thread, now_ns);
        put_charged(ractor, thread, ec, VM_TRACE_CHARGE_RUNNING, now_ns, now_ns);
        put_charged(ractor, thread, ec, VM_TRACE_CHARGE_NO_CPU, now_ns, now_ns);
    }
    if (thread->ring && !rb_vm_trace_sample_ring_owner(thread->ring)) {
        rb_vm_trace_sample_ring_return(&state_of(thread->ractor)->rings, thread->ring);
        thread->ring = NULL;
    }
    stand_still(thread, ec);
    if (why == RB_VM_TRACE_BLOCKED && thread->computes) rb_vm_trace_sampled_see_wait(thread);
    if (why != RB_VM_TRACE_DEAD) return;
    memory->sampled.session = 0;
    rb_vm_trace_sampled_end(thread);
}

/* NULL: none that is sampled. */
static struct vm_trace_sampled *
sampled_of(const struct rb_vm_trace_thread *memory)
{
    uint32_t session = memory->sampled.session;
    return session ? rb_vm_trace_sampled_find(session, memory->sampled.number) : NULL;
}

/* Only words are stored here. */
void
rb_vm_trace_samples_suspended(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *memory,
                                   enum rb_vm_trace_suspension why)
{
    uint32_t settles = VM_TRACE_SETTLES, waits = why == RB_VM_TRACE_PREEMPTED ? VM_TRACE_WAITS : VM_TRACE_BLOCKS;
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_current();
    if (thread) { /* it did not say so before */
        stand_still(thread, ec);
        sampled_phase(thread, waits);
        return;
    }
    thread = sampled_of(memory);
    if (thread) atomic_compare_exchange_strong(&thread->phase, &settles, waits);
}

void
rb_vm_trace_samples_ready(struct rb_vm_trace_thread *memory)
{
    uint32_t blocks = VM_TRACE_BLOCKS;
    struct vm_trace_sampled *thread = sampled_of(memory);
    if (!thread) return;
    rb_vm_trace_sampled_charge_due(thread, rb_vm_trace_clock_system_ns());
    atomic_compare_exchange_strong(&thread->phase, &blocks, VM_TRACE_WAITS);
}

/* A wait at a barrier, as a stack to be named later. */
static void
keep_wait(struct vm_trace_sampled *thread, struct rb_execution_context_struct *ec)
{
    struct vm_trace_charged charged = sampled_take(thread, VM_TRACE_CHARGE_BLOCKED);
    if (!charged.ns) return;
    if (!rb_vm_trace_sample_ring_walk(thread->ring, ec)) {
        sampled_charge(thread, VM_TRACE_CHARGE_BLOCKED, charged.ns, charged.ticks);
        return;
    }
    const struct vm_trace_sampled_stack stack = {
        .ns = rb_vm_trace_clock_system_ns(), .weight_ns = charged.ns, .ticks = (uint32_t)charged.ticks,
        .state = VM_TRACE_SAMPLE_BLOCKED
    };
    rb_vm_trace_sample_ring_add(thread->ring, &stack);
}

/* The thread has the GVL and runs on. */
static void
resume(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *memory, bool may_name)
{
    struct rb_vm_trace_ractor *ractor = recording_ractor(ec);
    if (!ractor || __atomic_load_n(&rb_vm_trace_capture.state, __ATOMIC_ACQUIRE) != VM_TRACE_ON) return;
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_of(&memory->sampled.session, &memory->sampled.number);
    if (thread && !thread->ring) thread->ring = rb_vm_trace_sample_ring_lend(&state_of(ractor)->rings);
    if (!thread || !thread->ring) {
        ractor->lost++;
        return;
    }
    uint32_t phase = atomic_load_explicit(&thread->phase, memory_order_relaxed);
    if (phase == VM_TRACE_RUNS || phase == VM_TRACE_SIGNALLED) return; /* it did not give up the GVL */
    thread->ractor = ractor;
    rb_vm_trace_sampled_charge_due(thread, rb_vm_trace_clock_system_ns());
    rb_vm_trace_sampled_charge_cpu(thread);
    if (thread->ec) { /* it has given up the GVL, or was about to */
        if (thread->collections != atomic_load(&collections))
            rb_vm_trace_sample_ring_take(thread->ring, charge_again, thread);
        if (may_name) empty_ring(ractor, thread);
        if (may_name) put_wait(ractor, thread, ec);
        else keep_wait(thread, ec);
    }
    thread->ec = NULL;
    rb_vm_trace_sampled_run(thread);
    sampled_phase(thread, VM_TRACE_RUNS);
}

void
rb_vm_trace_samples_resumed(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *memory)
{
    resume(ec, memory, true);
}

/* The lock of the VM may be held, which names need. */
void
rb_vm_trace_samples_barrier_left(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *memory)
{
    if (rb_vm_trace_host_has_gvl_p(ec)) resume(ec, memory, false);
}

void
rb_vm_trace_samples_barrier_joined(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *memory)
{
    if (!rb_vm_trace_host_has_gvl_p(ec)) return;
    rb_vm_trace_samples_suspending(ec, memory, RB_VM_TRACE_BARRIER);
    rb_vm_trace_samples_suspended(ec, memory, RB_VM_TRACE_BARRIER);
}

void
rb_vm_trace_samples_switched(struct rb_execution_context_struct *from)
{
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_current();
    struct rb_vm_trace_ractor *ractor = thread ? recording_ractor(from) : NULL;
    if (ractor) empty_ring(ractor, thread);
}

void
rb_vm_trace_interrupted(struct rb_execution_context_struct *ec)
{
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_current();
    struct rb_vm_trace_ractor *ractor = thread ? recording_ractor(ec) : NULL;
    if (!ractor) return;
    empty_ring(ractor, thread);
    rb_vm_trace_sampled_each(put_stale_wait, ractor);
}

/* --- hooks: garbage collection ----------------------------------------------------------------------- */

void
rb_vm_trace_samples_gc_enter(void)
{
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_current();
    struct rb_execution_context_struct *ec = thread ? rb_vm_trace_host_current() : NULL;
    struct rb_vm_trace_ractor *ractor = recording_ractor(ec);
    if (!ractor) return;
    rb_vm_trace_sampled_charge_due(thread, rb_vm_trace_clock_system_ns());
    sampled_phase(thread, VM_TRACE_COLLECTS);
    thread->since_ns = clock_now_ns(&ractor->clock);
    atomic_fetch_add(&collections, 1);
    empty_ring(ractor, thread); /* nothing that a stack is of is freed before */
}

void
rb_vm_trace_samples_gc_exit(void)
{
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_current();
    struct rb_execution_context_struct *ec = thread ? rb_vm_trace_host_current() : NULL;
    struct rb_vm_trace_ractor *ractor = recording_ractor(ec);
    if (!ractor || atomic_load_explicit(&thread->phase, memory_order_relaxed) != VM_TRACE_COLLECTS) return;
    rb_vm_trace_sampled_charge_due(thread, rb_vm_trace_clock_system_ns());
    put_charged(ractor, thread, ec, VM_TRACE_CHARGE_GC, thread->since_ns, clock_now_ns(&ractor->clock));
    sampled_phase(thread, VM_TRACE_RUNS);
}

/* --- the stream -------------------------------------------------------------------------------------- */

static const char *
refuse(uint64_t rate, const char *only)
{
    (void)only;
    if (!rate) return NULL;
    const char *why = rb_vm_trace_platform_no_sampling();
    /* Code dies in a collection, which a sample must not be named across. */
    return why ? why : rb_vm_trace_why_no_collections();
}

/* "cpu", "wall", or the period. */
static bool
request(const char *option, uint64_t *rate_out, const char **only_out)
{
    if (strcmp(option, "cpu") == 0 || strcmp(option, "wall") == 0) {
        *only_out = option;
        return true;
    }
    uint64_t ns;
    if (!rb_vm_trace_duration(option, &ns) || ns < LEAST_PERIOD_NS || ns > MOST_PERIOD_NS) return false;
    *rate_out = ns;
    return true;
}

/* One that runs when the session begins. World stopped. */
static void
add_thread(struct rb_execution_context_struct *ec, uint32_t tid, void *current)
{
    struct rb_vm_trace_ractor *ractor = recording_ractor(ec);
    struct rb_vm_trace_thread *memory = rb_vm_trace_host_thread_memory(ec);
    if (!rb_vm_trace_capture.before_program) rb_vm_trace_host_compiled_unknown(ec);
    if (!ractor || ec == current) return;
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_of(&memory->sampled.session, &memory->sampled.number);
    if (!thread) return; /* which counts as a loss when it runs */
    atomic_store(&thread->tid, tid);
    thread->ec = ec;
    thread->ractor = ractor;
    thread->since_ns = rb_vm_trace_clock_system_ns();
    atomic_store(&thread->shares_native, rb_vm_trace_host_thread(ec).tid != tid);
    sampled_phase(thread, VM_TRACE_BLOCKS);
}

static void
stop_hooks(void)
{
    rb_vm_trace_threads_on &= ~RB_VM_TRACE_THREADS_SAMPLES;
    rb_vm_trace_gc_on &= ~RB_VM_TRACE_COLLECTIONS_SAMPLED;
    rb_vm_trace_frames_report(RB_VM_TRACE_FRAMES_SAMPLES, false);
}

static void
start_hooks(void)
{
    rb_vm_trace_threads_on |= RB_VM_TRACE_THREADS_SAMPLES;
    rb_vm_trace_gc_on |= RB_VM_TRACE_COLLECTIONS_SAMPLED;
    rb_vm_trace_frames_report(RB_VM_TRACE_FRAMES_SAMPLES, true);
}

static const char *
start_samples(bool by_flags)
{
    (void)by_flags;
    if (!rb_vm_trace_samples.rate) return NULL;
    const struct vm_trace_sampling sampling = { rb_vm_trace_samples.rate, cpu_p(), take };
    const char *why = rb_vm_trace_sampler_start(&sampling);
    if (why) return why;
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    start_hooks();
    rb_vm_trace_host_each_thread(add_thread, ec);
    if (ec) rb_vm_trace_samples_resumed(ec, rb_vm_trace_host_thread_memory(ec));
    return NULL;
}

static void
end_threads(void)
{
    if (rb_vm_trace_samples.rate) rb_vm_trace_sampler_stop();
}

static void
stop_samples(void)
{
    end_threads();
    stop_hooks();
}

static void
after_fork(void)
{
    if (!rb_vm_trace_samples.rate) return;
    stop_hooks();
    rb_vm_trace_sampler_after_fork();
}

static void
flush(void)
{
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    if (ec && rb_vm_trace_samples.rate) rb_vm_trace_interrupted(ec);
}

/* Flags of the JIT started the trace before there was an entry to watch. */
static const char *
watch_entries(void)
{
    if (rb_vm_trace_entries_on & RB_VM_TRACE_FRAMES_SAMPLES)
        rb_vm_trace_frames_report(RB_VM_TRACE_FRAMES_SAMPLES, true);
    return NULL;
}

struct ending {
    struct rb_vm_trace_ractor *ractor;
    struct rb_execution_context_struct *ec;
};

/* What is charged to a thread when the session ends. World stopped. */
static void
put_rest(struct vm_trace_sampled *thread, void *data)
{
    const struct ending *ending = data;
    struct rb_execution_context_struct *ec = waits_p(thread) ? thread->ec : NULL;
    if (thread == rb_vm_trace_sampled_current()) ec = ending->ec;
    if (!ec) return;
    uint64_t now_ns = clock_now_ns(&ending->ractor->clock);
    rb_vm_trace_sampled_charge_due(thread, now_ns);
    put_charged(ending->ractor, thread, ec, VM_TRACE_CHARGE_RUNNING, now_ns, now_ns);
    put_charged(ending->ractor, thread, ec, VM_TRACE_CHARGE_NO_CPU, now_ns, now_ns);
    put_wait(ending->ractor, thread, ec);
}

enum { SAMPLES, RECORDS, LATE, UNHANDLED };
static const char *const counters[] = {
    [SAMPLES] = "samples", [RECORDS] = "sample_records", [LATE] = "samples_late",
    [UNHANDLED] = "samples_unhandled", NULL
};

/* Of the sampler itself, not of a ractor. */
static void
count(struct vm_trace_totals *totals)
{
    if (!rb_vm_trace_samples.rate) return;
    *stream_counter(&rb_vm_trace_samples, totals, LATE) += rb_vm_trace_sampler_late();
    *stream_counter(&rb_vm_trace_samples, totals, UNHANDLED) += rb_vm_trace_sampler_unhandled();
}

static void
report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, struct vm_trace_totals *totals)
{
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_current();
    if (totals) count(totals);
    if (!rb_vm_trace_samples.rate || !ractor || !ec) return;
    if (thread) empty_ring(ractor, thread);
    struct ending ending = { ractor, ec };
    rb_vm_trace_sampled_each(put_rest, &ending);
}

/* Of an earlier trace, of a parent, or of an earlier epoch. */
static void
leave_out(const struct vm_trace_sampled_stack *stack, const struct vm_trace_sampled_frame *frames, void *ignored)
{
    (void)stack, (void)frames, (void)ignored;
}

static void
count_from_0(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_samples_state *state = state_of(ractor);
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_current();
    if (thread && thread->ractor == ractor && thread->ring)
        rb_vm_trace_sample_ring_take(thread->ring, leave_out, NULL);
    state->samples.kind = VM_TRACE_SAMPLED_TIME;
    state->samples.time = cpu_p() ? "CPU time" : "wall time";
    state->ticks = state->records = 0;
}

static void
finalizing(void)
{
    struct rb_execution_context_struct *ec = rb_vm_trace_host_current();
    struct rb_vm_trace_ractor *ractor = recording_ractor(ec);
    if (!rb_vm_trace_samples.rate || !ractor) return;
    stop_samples();
    report(ractor, ec, NULL);
}

static bool
init_state(struct rb_vm_trace_ractor *ractor)
{
    count_from_0(ractor);
    return true;
}

static void
free_state(struct rb_vm_trace_ractor *ractor)
{
    rb_vm_trace_sample_rings_free(&state_of(ractor)->rings);
}

static bool
write_settings(struct vm_trace_event *event)
{
    if (!rb_vm_trace_samples.rate) return true;
    struct vm_trace_slot name, clock;
    const char *text = cpu_p() ? "cpu" : "wall";
    if (!rb_vm_trace_event_setting(event, "samples_ns", rb_vm_trace_samples.rate) ||
        !rb_vm_trace_writer_define(event->writer, &name, "samples_clock", strlen("samples_clock")) ||
        !rb_vm_trace_writer_define(event->writer, &clock, text, strlen(text)))
        return false;
    event_string(event, (enum known_string)name.index, clock.index);
    return true;
}

static void
add_counts(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    *stream_counter(&rb_vm_trace_samples, totals, SAMPLES) += state_of(ractor)->ticks;
    *stream_counter(&rb_vm_trace_samples, totals, RECORDS) += state_of(ractor)->records;
}

struct rb_vm_trace_stream rb_vm_trace_samples = {
    .name = "samples",
    .options = "cpu (else wall-clock time), a period from 100us to 10s (such as 1ms)",
    .counters = counters,
    .default_rate = 1000000,
    .without_jit = true,
    .starts_in_children = true,
    .ractor_bytes = sizeof(struct vm_trace_samples_state),
    .request = request,
    .refuse = refuse,
    .start = start_samples,
    .stop = stop_samples,
    .end_threads = end_threads,
    .finalizing = finalizing,
    .forget = rb_vm_trace_sampler_forget,
    .ractor_init = init_state,
    .ractor_begin = count_from_0,
    .ractor_epoch = count_from_0,
    .ractor_free = free_state,
    .ractor_count = add_counts,
    .flush = flush,
    .after_fork = after_fork,
    .jit_ready = watch_entries,
    .write_settings = write_settings,
    .report = report,
    .count = count
};
