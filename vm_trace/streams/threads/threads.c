/*
 * States of threads. See threads.h.
 *
 * A thread itself records that it gives up the GVL, right before, and later that it got it back: it has the
 * GVL at both moments, and no lock of the scheduler. Under that lock, for which all threads of the ractor
 * wait, only words are stored. Who wakes a thread, perhaps without a GVL or with that of another ractor,
 * stores that in the thread's memory, and the thread records it when it runs. That a thread has given up the
 * GVL without having said so before is recorded by the next one that has it.
 *
 * A thread that stops for another ractor's barrier keeps the GVL, and records both itself. Who made the
 * barrier stores its id in that thread's memory.
 */
#include "vm_trace/streams/threads/threads.h"
#include "vm_trace/streams/states/states.h"
#include "vm_trace/streams/threads/thread_records.h"

static bool ticks; /* what a stamp is */
/*
 * The least time with callers: of a blocked time, and of the run before a preemption. A stack costs
 * more than the rest of the event.
 */
static uint64_t callers_from_ns;
static enum vm_trace_stack_part part;

static struct vm_trace_threads_state *
threads_of(const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(&rb_vm_trace_threads, ractor);
}

/* --- hooks ------------------------------------------------------------------------------------- */

/* What it is about to block in. A barrier on the way there does not change that. */
static inline void
forget_place(struct rb_vm_trace_thread *thread)
{
    thread->stack = false;
    thread->function = NULL;
    thread->fd_and_1 = 0;
}

/* It gives up the GVL at `ns`, for `thread->why`. GVL held, no lock. */
static void
suspend(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
        uint64_t ns)
{
    struct vm_trace_threads_state *state = threads_of(ractor);
    enum rb_vm_trace_suspension why = thread->why;
    struct vm_trace_suspension suspension = { .state = state, .thread = thread, .why = why, .ns = ns };
    if (thread->trace != trace_id()) {
        /*
         * The first record of this thread: it has run since the trace began, or since another gave
         * up the GVL.
         */
        uint64_t begin_ns = rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 });
        suspension.runs_from_ns = state->suspended_ns >= begin_ns ? state->suspended_ns + 1 : begin_ns;
    }
    thread_have_cpu(state, ec, suspension.runs_from_ns ? suspension.runs_from_ns : ns);
    bool barrier = why == RB_VM_TRACE_BARRIER;
    if (why != RB_VM_TRACE_DEAD && !barrier && thread->label_changes == ractor->stacks.changes) {
        suspension.label = thread->label;
        if (thread->stack && thread->label)
            suspension.frames = part == VM_TRACE_STACK_TOP ? 1 : ractor->stacks.walk.count;
    }
    if (why == RB_VM_TRACE_PREEMPTED && !thread->stack && part != VM_TRACE_STACK_NONE) state->left_out++;
    thread->trace = trace_id();
    thread->suspended_ns = suspension.ns;
    thread->suspended = true;
    bool written = rb_vm_trace_thread_write_suspension(ractor, ec, &suspension);
    if (suspension.ns < ractor->from_ns) thread->suspended_ns = ractor->from_ns; /* a reset came between */
    thread->in_blocked = written && (why == RB_VM_TRACE_BLOCKED || barrier);
    if (suspension.ns > state->suspended_ns) state->suspended_ns = suspension.ns;
    state->suspensions += written;
    if (why != RB_VM_TRACE_DEAD) rb_vm_trace_states_pause(ractor, ec, suspension.ns);
}

/* Nobody has woken it yet. */
static void
begin_to_wait(struct rb_vm_trace_thread *thread, enum rb_vm_trace_suspension why)
{
    thread->ready_stamp = 0;
    thread->ready_runs = false;
    thread->waker = 0;
    thread->why = (uint8_t)why;
}

void
rb_vm_trace_threads_suspended(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                  enum rb_vm_trace_suspension why)
{
    struct rb_vm_trace_ractor *ractor = recording_ractor(ec);
    if (!ractor || (thread->trace == trace_id() && thread->suspended)) return;
    struct vm_trace_threads_state *state = threads_of(ractor);
    begin_to_wait(thread, why);
    state->late.thread = thread;
    state->late.ec = ec;
    state->late.stamp = clock_stamp(ticks);
}

void
rb_vm_trace_threads_ready(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (!trace_on()) return;
    struct rb_execution_context_struct *waker = rb_vm_trace_host_current();
    bool itself = waker == ec;
    thread->ready_stamp = clock_stamp(ticks);
    thread->waker = waker && !itself ? rb_vm_trace_host_thread(waker).tid : 0;
    thread->ready_runs = itself && rb_vm_trace_host_gvl_free_p(ec);
}

/* The method that a thread blocked in, as the begin of `blocked` has it. */
static uint32_t
label_of(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
         const struct rb_vm_trace_thread *thread)
{
    if (!thread->label || thread->label_changes == ractor->stacks.changes) return thread->label;
    return rb_vm_trace_stacks_top(&ractor->stacks, ec); /* labels were freed meanwhile, and their ids reused */
}

/* When it was woken: before now, and after `least_ns`, if its suspension is known. 0: unknown. */
static uint64_t
ready_ns(const struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_thread *thread, bool known,
         uint64_t least_ns, uint64_t now_ns)
{
    if (!thread->ready_stamp) return 0;
    uint64_t ns = clock_stamp_ns(&ractor->clock, thread->ready_stamp, ticks);
    if (ns >= now_ns) ns = now_ns - 1;
    return ns > least_ns ? ns : known ? least_ns + 1 : 0;
}

/*
 * It gave up the GVL before a reset, and what it waited for lasted longer: after the reset it begins
 * with that.
 */
static void
begin_with_reset(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                 struct rb_vm_trace_thread *thread, uint32_t label)
{
    struct vm_trace_threads_state *state = threads_of(ractor);
    struct vm_trace_suspension suspension = {
        .state = state, .thread = thread, .why = thread->why, .ns = ractor->from_ns, .label = label
    };
    state->suspensions += rb_vm_trace_thread_write_suspension(ractor, ec, &suspension);
}

/*
 * The label of its innermost frame. The ractor's stacks hold the other frames to be recorded. 0: no
 * frame.
 */
static uint32_t
preempted_in(struct rb_vm_trace_stacks *stacks, struct rb_execution_context_struct *ec)
{
    if (part == VM_TRACE_STACK_TOP) return rb_vm_trace_stacks_top(stacks, ec);
    bool captured = stacks_capture(stacks, ec, 0) && stacks->walk.count > 0;
    return captured ? stacks->walk.frames[stacks->walk.count - 1].id : 0;
}

/* Notes where it gives up the GVL, for `thread->why`. */
static void
note_place(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    struct rb_vm_trace_stacks *stacks = &ractor->stacks;
    thread->stack = false;
    thread->label = 0;
    if (part == VM_TRACE_STACK_NONE || thread->why == RB_VM_TRACE_DEAD) return;
    if (thread->why == RB_VM_TRACE_PREEMPTED) {
        bool long_enough = clock_now_ns(&ractor->clock) - threads_of(ractor)->resumed_ns >= callers_from_ns;
        if (long_enough) thread->label = preempted_in(stacks, ec);
        thread->stack = thread->label != 0;
    }
    else {
        thread->label = rb_vm_trace_stacks_top(stacks, ec);
    }
    thread->label_changes = stacks->changes;
}

/* A thread of the ractor has given up the GVL, and nothing is written of that yet. Since then it has not run. */
static void
suspend_late(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_threads_state *state = threads_of(ractor);
    struct rb_vm_trace_thread *thread = state->late.thread;
    uint64_t from_ns = rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 });
    uint64_t ns = clock_stamp_ns(&ractor->clock, state->late.stamp, ticks);
    state->late.thread = NULL;
    note_place(ractor, state->late.ec, thread);
    suspend(ractor, state->late.ec, thread, ns > from_ns ? ns : from_ns + 1);
}

/* It has the GVL and runs on, at least as far as to a barrier. */
static void
resume(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    /* A forked child makes its file at its first event. A resumption alone is no reason to make one. */
    if (__atomic_load_n(&rb_vm_trace_capture.state, __ATOMIC_ACQUIRE) != VM_TRACE_ON) return;
    struct rb_vm_trace_ractor *ractor = recording_ractor_or_lost(ec);
    if (!ractor) return;
    if (__builtin_expect(threads_of(ractor)->late.thread != NULL, 0)) suspend_late(ractor);
    bool known = thread->trace == trace_id() && thread->suspended;
    if (!known && !thread->ready_stamp) return; /* it never stopped */
    struct vm_trace_threads_state *state = threads_of(ractor);
    bool preempted = known && thread->why == RB_VM_TRACE_PREEMPTED;
    bool barrier = known && thread->why == RB_VM_TRACE_BARRIER;
    struct vm_trace_resumption resumption = {
        .state = state, .thread = thread, .ends_blocked = known && thread->in_blocked, .barrier = barrier
    };
    uint64_t least_ns = known ? thread->suspended_ns : rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 });
    bool kept = barrier || (known && !preempted && !thread->ready_stamp); /* or need not wait after all */
    if (kept) { /* the GVL, so it runs at once */
        uint64_t now_ns = clock_now_ns(&ractor->clock);
        resumption.ready_ns = now_ns > least_ns ? now_ns : least_ns + 1;
        resumption.ns = resumption.ready_ns + 1;
        clock_not_before(&ractor->clock, resumption.ns); /* what follows is no earlier */
    }
    else if (thread->ready_runs && !preempted &&
             clock_stamp_now_p(&ractor->clock, thread->ready_stamp, &resumption.ready_ns) &&
             resumption.ready_ns > least_ns && resumption.ready_ns > state->suspended_ns) {
        /* Else the GVL was let go after the look at it: the thread that had it notes its time a little later. */
        resumption.ns = resumption.ready_ns + 1;
    }
    else {
        resumption.ns = clock_now_ns(&ractor->clock);
        resumption.ready_ns = preempted ? 0 : ready_ns(ractor, thread, known, least_ns, resumption.ns);
    }
    thread_have_cpu(state, ec, resumption.ns);
    if (resumption.ends_blocked && !barrier) {
        bool shorter = resumption.ns - thread->suspended_ns < callers_from_ns;
        if (part == VM_TRACE_STACK_ALL) {
            resumption.stack = !shorter && stacks_capture(&ractor->stacks, ec, 0);
            state->left_out += shorter;
        }
        resumption.label = label_of(ractor, ec, thread);
    }
    ractor_notice_reset(ractor);
    if (known && __builtin_expect(thread->suspended_ns < ractor->from_ns, 0))
        begin_with_reset(ractor, ec, thread, resumption.label);
    if (preempted) thread->waker = 0;
    if (!barrier) state->resumed_ns = resumption.ns; /* its time slice goes on */
    rb_vm_trace_states_resume(ractor, ec, preempted ? VM_TRACE_WAITING : VM_TRACE_BLOCKED, resumption.ready_ns,
                              resumption.ns);
    thread->trace = trace_id();
    thread->suspended = thread->in_blocked = false;
    rb_vm_trace_thread_write_resumption(ractor, ec, &resumption);
    thread->ready_stamp = 0;
    thread->ready_runs = false;
    if (!barrier) thread->label = 0;
}

void
rb_vm_trace_threads_resumed(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    resume(ec, thread);
    forget_place(thread);
}

void
rb_vm_trace_threads_blocks_in(struct rb_vm_trace_thread *thread, const void *function, int fd)
{
    thread->function = function;
    thread->fd_and_1 = fd + 1;
}

void
rb_vm_trace_threads_suspending(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread,
                                   enum rb_vm_trace_suspension why)
{
    struct rb_vm_trace_ractor *ractor = recording_ractor_or_lost(ec);
    if (!ractor) return;
    if (thread->trace == trace_id() && thread->suspended) resume(ec, thread); /* it did not wait */
    begin_to_wait(thread, why);
    note_place(ractor, ec, thread);
    suspend(ractor, ec, thread, clock_now_ns(&ractor->clock));
}

/* --- barriers --------------------------------------------------------------------------------- */

static bool
at_barrier_p(const struct rb_vm_trace_thread *thread)
{
    return thread->trace == trace_id() && thread->suspended && thread->why == RB_VM_TRACE_BARRIER;
}

void
rb_vm_trace_threads_barrier_joined(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (!rb_vm_trace_host_has_gvl_p(ec)) return; /* it does not count as running, and may not write */
    struct rb_vm_trace_ractor *ractor = recording_ractor_or_lost(ec);
    if (!ractor) return;
    if (threads_of(ractor)->late.thread) suspend_late(ractor);
    bool known = thread->trace == trace_id();
    if (known ? thread->suspended : thread->ready_stamp != 0) /* it has just got the GVL */
        resume(ec, thread);
    begin_to_wait(thread, RB_VM_TRACE_BARRIER);
    suspend(ractor, ec, thread, clock_now_ns(&ractor->clock));
}

void
rb_vm_trace_threads_barrier_complete(struct rb_vm_trace_thread *thread)
{
    if (trace_on() && at_barrier_p(thread)) thread->waker = rb_vm_trace_host_thread(rb_vm_trace_host_current()).tid;
}

void
rb_vm_trace_threads_barrier_left(struct rb_execution_context_struct *ec, struct rb_vm_trace_thread *thread)
{
    if (at_barrier_p(thread)) resume(ec, thread);
}

/* --- the stream -------------------------------------------------------------------------------- */

static const char *
start_threads(bool by_flags)
{
    (void)by_flags;
    if (!rb_vm_trace_threads.rate) return NULL;
    if (!rb_vm_trace_known_init()) return "out of memory";
    ticks = rb_vm_trace_clock_ticks_p();
    callers_from_ns = rb_vm_trace_threads.min_ns;
    part = rb_vm_trace_threads.stack_part;
    rb_vm_trace_threads_on |= RB_VM_TRACE_THREADS_STATES;
    return NULL;
}

static void
stop_threads(void)
{
    rb_vm_trace_threads_on &= ~RB_VM_TRACE_THREADS_STATES;
}

static void
free_state(struct rb_vm_trace_ractor *ractor)
{
    rb_vm_trace_thread_records_free(threads_of(ractor));
}

static void
count_from_0(struct rb_vm_trace_ractor *ractor)
{
    threads_of(ractor)->suspensions = threads_of(ractor)->left_out = 0;
}

static void
begin(struct rb_vm_trace_ractor *ractor)
{
    count_from_0(ractor);
    threads_of(ractor)->late.thread = NULL; /* that was in another trace, or is the parent's */
}

enum { SUSPENSIONS, LEFT_OUT };

static void
add_count(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    *stream_counter(&rb_vm_trace_threads, totals, SUSPENSIONS) += threads_of(ractor)->suspensions;
    *stream_counter(&rb_vm_trace_threads, totals, LEFT_OUT) += threads_of(ractor)->left_out;
}

static const char *const counters[] = {
    [SUSPENSIONS] = "suspensions", [LEFT_OUT] = "suspensions_without_callers", NULL
};

struct rb_vm_trace_stream rb_vm_trace_threads = {
    .name = "threads",
    .options = "min=DURATION (such as 5ms), stack=all|top|none",
    .takes_min = true,
    .takes_stack = true,
    .default_min_ns = 1000000,
    .counters = counters,
    .without_jit = true,
    .ractor_bytes = sizeof(struct vm_trace_threads_state),
    .start = start_threads,
    .stop = stop_threads,
    .ractor_begin = begin,
    .ractor_epoch = count_from_0,
    .ractor_free = free_state,
    .ractor_count = add_count
};
