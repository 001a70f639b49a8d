/*
 * Waiting fibers. See fibers.h.
 *
 * Each fiber that a thread switches to has a track, which keeps three times of it. Times of a trace that has ended are
 * before the begin of this one. What a fiber waited for is looked up when it goes on, on its stack, which has
 * not changed since. So a short wait costs two readings of the clock, and no stack is taken for it.
 */
#include "vm_trace/streams/fibers/fibers.h"
#include "vm_trace/base/fiber_tracks.h"
#include "vm_trace/capture/event.h"

#include <string.h>

struct fibers_state {
    uint64_t waits, left_out;
};

struct wait {
    struct rb_execution_context_struct *resumer;
    uint64_t from_ns, to_ns;
    uint64_t ran_ns, ready_ns; /* 0: not known */
    size_t inner;              /* frames of the scheduler, of those that the ractor's stacks hold */
};

static struct fibers_state *
fibers_of(const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(&rb_vm_trace_fibers, ractor);
}

/* Index of the name of the method that is `inner` frames from the innermost one. False: the chunk is full. */
static bool
name_method(struct rb_vm_trace_writer *writer, struct rb_vm_trace_stacks *stacks, size_t inner, unsigned *name_out)
{
    if (inner >= stacks->walk.count) return writer_interned(writer, KNOWN(NO_METHOD), name_out);
    struct vm_trace_label *label = &stacks->labels[stacks->walk.frames[stacks->walk.count - 1 - inner].id];
    return writer_string(writer, &label->method_slot, label->text, rb_vm_trace_label_method(label), name_out);
}

static bool
write_wait(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct wait *wait = what;
    struct vm_trace_event event;
    unsigned in, name, hook, as;
    if (!rb_vm_trace_event_begin_in_fiber(&event, ractor, ec, wait->from_ns)) return false;
    if (!writer_interned(event.writer, KNOWN(FIBER), &in) ||
        !name_method(event.writer, &ractor->stacks, wait->inner, &name))
        return false;
    if (wait->inner) {
        if (!writer_interned(event.writer, KNOWN(SCHEDULER), &as) ||
            !name_method(event.writer, &ractor->stacks, wait->inner - 1, &hook))
            return false;
        event_string(&event, (enum known_string)as, hook);
    }
    uint32_t waker = wait->resumer ? rb_vm_trace_host_fiber(wait->resumer).tid : 0;
    if ((waker && !event_uint32_rarely(&event, KNOWN(WAKER), waker)) ||
        (wait->ran_ns && !event_uint64_rarely(&event, KNOWN(RAN_NS), wait->ran_ns)) ||
        (wait->ready_ns && !event_uint64_rarely(&event, KNOWN(READY_NS), wait->ready_ns)))
        return false;
    if (!rb_vm_trace_event_backtrace(&event, &ractor->stacks, 0)) return false;
    uint64_t to_ns = wait->to_ns > event.record[1] ? wait->to_ns : event.record[1]; /* a reset may have come since */
    return event_end_id(&event, FXT_EVENT_DURATION_COMPLETE, (enum known_string)in, name, to_ns);
}

/* Whether switches of this thread are of interest: all, or those of a thread that has a fiber scheduler. */
static bool
of_interest_p(struct rb_execution_context_struct *ec)
{
    return !rb_vm_trace_fibers.only || rb_vm_trace_host_scheduler_p(ec);
}

/* How long the fiber ran until it was suspended, as far as that was in the trace. */
static uint64_t
ran_ns(const struct vm_trace_fiber_times *times, uint64_t begin_ns)
{
    uint64_t from_ns = times->before_ns > begin_ns ? times->before_ns : begin_ns;
    return times->switched_ns > from_ns ? times->switched_ns - from_ns : 0;
}

/* Records that a fiber waited, since the begin of the trace if not later. */
static void
record(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, struct wait *wait)
{
    if (!stacks_capture(&ractor->stacks, ec, 0)) {
        ractor->lost++;
        return;
    }
    wait->inner = rb_vm_trace_host_scheduler_frames(ec, &ractor->stacks.walk);
    fibers_of(ractor)->waits += rb_vm_trace_event_write(ractor, ec, write_wait, wait);
}

void
rb_vm_trace_fibers_resumed(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to)
{
    struct rb_vm_trace_ractor *ractor = of_interest_p(to) ? recording_ractor_or_lost(to) : NULL;
    uint32_t track = ractor ? rb_vm_trace_host_fiber_track(to) : 0;
    if (!track) return;
    uint64_t begin_ns = rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 }), now_ns = clock_now_ns(&ractor->clock);
    const struct vm_trace_fiber_times times = rb_vm_trace_fiber_switch(track, now_ns);
    if (!times.switched_ns) return; /* it begins */
    struct wait wait = { .from_ns = times.switched_ns > begin_ns ? times.switched_ns : begin_ns, .to_ns = now_ns,
                         .ran_ns = ran_ns(&times, begin_ns) };
    if (now_ns - times.switched_ns < rb_vm_trace_fibers.min_ns && wait.ran_ns < rb_vm_trace_fibers.min_ns) {
        fibers_of(ractor)->left_out++;
        return;
    }
    if (times.ready_ns > wait.from_ns && times.ready_ns < now_ns) wait.ready_ns = now_ns - times.ready_ns;
    if (rb_vm_trace_host_fiber_alive_p(from)) wait.resumer = from;
    record(ractor, to, &wait);
}

void
rb_vm_trace_fibers_suspended(struct rb_execution_context_struct *from)
{
    /* One that has ended has left its track. */
    bool interest = of_interest_p(from) && rb_vm_trace_host_fiber_alive_p(from);
    struct rb_vm_trace_ractor *ractor = interest ? recording_ractor(from) : NULL;
    uint32_t track = ractor ? rb_vm_trace_host_fiber_track(from) : 0;
    if (track) rb_vm_trace_fiber_switch(track, clock_now_ns(&ractor->clock));
}

void
rb_vm_trace_fibers_ready(uintptr_t fiber)
{
    struct rb_execution_context_struct *ec = rb_vm_trace_host_fiber_context(fiber);
    struct rb_vm_trace_ractor *ractor = ec && rb_vm_trace_host_fiber_alive_p(ec) ? recording_ractor(ec) : NULL;
    uint32_t track = ractor ? rb_vm_trace_host_fiber_track(ec) : 0;
    if (track) rb_vm_trace_fiber_unblocked(track, clock_now_ns(&ractor->clock));
}

/* --- the stream -------------------------------------------------------------------------------- */

static const char of_schedulers[] = "scheduler";

static bool
request_fibers(const char *option, uint64_t *rate_out, const char **only_out)
{
    (void)rate_out;
    if (strcmp(option, of_schedulers) != 0) return false;
    *only_out = of_schedulers;
    return true;
}

static const char *
start_fibers(bool by_flags)
{
    (void)by_flags;
    if (!rb_vm_trace_fibers.rate) return NULL;
    if (!rb_vm_trace_known_init()) return "out of memory";
    rb_vm_trace_threads_on |= RB_VM_TRACE_THREADS_FIBERS;
    return NULL;
}

static void
stop_fibers(void)
{
    rb_vm_trace_threads_on &= ~RB_VM_TRACE_THREADS_FIBERS;
}

static void
count_from_0(struct rb_vm_trace_ractor *ractor)
{
    *fibers_of(ractor) = (struct fibers_state){ 0 };
}

enum { WAITS, LEFT_OUT };
static const char *const counters[] = { [WAITS] = "fiber_waits", [LEFT_OUT] = "fiber_waits_left_out", NULL };

static void
add_count(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    *stream_counter(&rb_vm_trace_fibers, totals, WAITS) += fibers_of(ractor)->waits;
    *stream_counter(&rb_vm_trace_fibers, totals, LEFT_OUT) += fibers_of(ractor)->left_out;
}

static bool
write_settings(struct vm_trace_event *event)
{
    const struct rb_vm_trace_stream *stream = &rb_vm_trace_fibers;
    if (!stream->rate) return true;
    if (stream->only && !rb_vm_trace_event_setting(event, "fibers_of_schedulers", 1)) return false;
    return rb_vm_trace_event_setting(event, "fibers_min_ns", stream->min_ns);
}

struct rb_vm_trace_stream rb_vm_trace_fibers = {
    .name = "fibers",
    .options = "scheduler (only threads that have one), min=DURATION (such as 1ms)",
    .takes_min = true,
    .default_min_ns = 100000,
    .counters = counters,
    .without_jit = true,
    .ractor_bytes = sizeof(struct fibers_state),
    .request = request_fibers,
    .start = start_fibers,
    .stop = stop_fibers,
    .ractor_begin = count_from_0,
    .ractor_epoch = count_from_0,
    .ractor_count = add_count,
    .write_settings = write_settings
};
