/*
 * The stream of calls: how it starts and stops, and what it reports. open_calls.h has what it
 * records.
 */
#include "vm_trace/streams/calls/open_calls.h"
#include "vm_trace/streams/frames.h"
#include "vm_trace/base/messages.h"

/* Calls of methods in C that compiled code has replaced by its own. Machine code adds to `count`. */
static struct {
    uint64_t count, base; /* base: what was there when the trace, or its epoch, began */
    bool on;              /* code that is compiled now counts */
} replaced;

uint64_t *
rb_vm_trace_replaced_calls(void)
{
    return replaced.on ? &replaced.count : NULL;
}

static uint64_t
replaced_so_far(void)
{
    return __atomic_load_n(&replaced.count, __ATOMIC_RELAXED);
}

static void
forget_replaced(void)
{
    replaced.base = replaced_so_far();
}

/* Compiled code reports the frames that it pushes and pops. */
static const char *
patch_code(void)
{
    const struct rb_vm_trace_jit *jit = rb_vm_trace_registered_jit();
    return jit && jit->calls_on ? jit->calls_on() : NULL;
}

static bool
prepare_calls(uint64_t rate, const char *only, uint64_t ns)
{
    (void)rate, (void)only;
    const struct rb_vm_trace_jit *jit = rb_vm_trace_registered_jit();
    return jit && jit->prepare_calls && jit->prepare_calls(ns);
}

static bool
restore_calls(uint64_t ns)
{
    const struct rb_vm_trace_jit *jit = rb_vm_trace_registered_jit();
    if (rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_CALLS) return false;
    return jit && jit->restore_calls && jit->restore_calls(ns);
}

static const char *
refuse_calls(uint64_t rate, const char *only)
{
    (void)only;
    const struct rb_vm_trace_jit *jit = rb_vm_trace_registered_jit();
    if (!rate || !jit || jit->calls_on) return NULL;
    return "calls of this JIT's code cannot be recorded; run the program without a JIT";
}

/* Where the time-stamp counter can't be used, most of the cost of a call is that of the system's clock. */
static void
warn_of_slow_clock(void)
{
    enum { READS = 64, READS_OF_A_CALL = 2 };
    if (rb_vm_trace_clock_ticks_p()) return;
    uint64_t begin_ns = rb_vm_trace_clock_system_ns(), end_ns = begin_ns;
    for (int i = 0; i < READS; i++) end_ns = rb_vm_trace_clock_system_ns();
    rb_vm_trace_warn("the system does not use the processor's time-stamp counter: to record a call takes %llu ns for "
                     "its clock alone; calls:min=DURATION does not change that",
                     (unsigned long long)((end_ns - begin_ns) * READS_OF_A_CALL / READS));
}

static const char *
start_calls(bool by_flags)
{
    (void)by_flags;
    if (!rb_vm_trace_calls.rate) return NULL;
    if (!rb_vm_trace_known_init()) return "out of memory";
    const char *why = patch_code();
    if (why) return why;
    forget_replaced();
    replaced.on = rb_vm_trace_capture.before_program;
    warn_of_slow_clock();
    rb_vm_trace_frames_report(RB_VM_TRACE_FRAMES_CALLS, true);
    return NULL;
}

/* The trace has begun before there was compiled code to patch. */
static const char *
jit_ready(void)
{
    if (!(rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_CALLS)) return NULL;
    const char *why = patch_code(); /* else only its callees in the interpreter are recorded */
    replaced.on = true;
    rb_vm_trace_frames_report(RB_VM_TRACE_FRAMES_CALLS, true);
    return why;
}

static void
stop_calls(void)
{
    if (!(rb_vm_trace_frames_on & RB_VM_TRACE_FRAMES_CALLS)) return;
    replaced.on = false;
    rb_vm_trace_frames_report(RB_VM_TRACE_FRAMES_CALLS, false);
}

/* Texts stay; in the child of a fork their lock is held. */
static void
ractor_begin(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_ractor_calls *calls = calls_of(ractor);
    calls->written = calls->left_out = 0;
    rb_vm_trace_call_names_forget(calls); /* chunks are numbered from 1 on again */
}

static void
count_from_0(struct rb_vm_trace_ractor *ractor)
{
    calls_of(ractor)->written = calls_of(ractor)->left_out = 0;
}

static void
ractor_free(struct rb_vm_trace_ractor *ractor)
{
    rb_vm_trace_call_names_release(calls_of(ractor));
}

enum { CALLS_WRITTEN, CALLS_LEFT_OUT, CALLS_REPLACED };
static const char *const counters[] = {
    [CALLS_WRITTEN] = "calls", [CALLS_LEFT_OUT] = "calls_left_out", [CALLS_REPLACED] = "calls_replaced", NULL
};

static void
add_count(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    *stream_counter(&rb_vm_trace_calls, totals, CALLS_WRITTEN) += calls_of(ractor)->written;
    *stream_counter(&rb_vm_trace_calls, totals, CALLS_LEFT_OUT) += calls_of(ractor)->left_out;
}

static void
add_replaced(struct vm_trace_totals *totals)
{
    if (!rb_vm_trace_calls.rate) return;
    *stream_counter(&rb_vm_trace_calls, totals, CALLS_REPLACED) += replaced_so_far() - replaced.base;
}

static void
reset(struct rb_vm_trace_ractor *caller)
{
    (void)caller;
    forget_replaced();
}

static void
after_fork(void)
{
    forget_replaced();
    rb_vm_trace_open_calls_after_fork();
}

static bool
write_settings(struct vm_trace_event *event)
{
    const struct rb_vm_trace_stream *stream = &rb_vm_trace_calls;
    if (!stream->rate) return true;
    return (!stream->min_ns || rb_vm_trace_event_setting(event, "calls_min_ns", stream->min_ns)) &&
        (stream->depth == VM_TRACE_ANY_DEPTH || rb_vm_trace_event_setting(event, "calls_depth", stream->depth));
}

static void
report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, struct vm_trace_totals *totals)
{
    (void)ec;
    add_replaced(totals);
    if (rb_vm_trace_calls.rate && ractor) rb_vm_trace_open_calls_report(ractor);
}

static void
snapshot_begin(void)
{
    if (rb_vm_trace_calls.rate) rb_vm_trace_open_calls_snapshot_begin();
}

static bool
snapshot_write(struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    add_replaced(totals);
    return rb_vm_trace_calls.rate && rb_vm_trace_open_calls_snapshot_write(ractor);
}

struct rb_vm_trace_stream rb_vm_trace_calls = {
    .name = "calls",
    .options = "min=DURATION (such as 1us) and depth=N",
    .counters = counters,
    .without_jit = true,
    .takes_min = true,
    .takes_depth = true,
    .ractor_bytes = sizeof(struct vm_trace_ractor_calls),
    .refuse = refuse_calls,
    .prepare = prepare_calls,
    .restore = restore_calls,
    .start = start_calls,
    .stop = stop_calls,
    .jit_ready = jit_ready,
    .after_fork = after_fork,
    .forget = rb_vm_trace_open_calls_free_all,
    .ractor_begin = ractor_begin,
    .ractor_epoch = count_from_0,
    .ractor_free = ractor_free,
    .ractor_count = add_count,
    .count = add_replaced,
    .reset = reset,
    .snapshot_begin = snapshot_begin,
    .snapshot_end = rb_vm_trace_open_calls_snapshot_end,
    .snapshot_write = snapshot_write,
    .write_settings = write_settings,
    .report = report
};
