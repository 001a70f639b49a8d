/*
 * Waiting fibers. See fibers.h.
 *
 * Each fiber that is switched from or to has a track, which keeps three times of it. What a trace that has ended left
 * there is before the begin of this one. What a fiber waited for is looked up when it goes on, on its stack, which has
 * not changed since. So a short wait costs two readings of the clock, and no stack is taken for it.
 */
#include "vm_trace/streams/fibers/fibers.h"
#include "vm_trace/base/fiber_tracks.h"
#include "vm_trace/capture/event.h"

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

/* NULL: nothing can be recorded. */
static struct rb_vm_trace_ractor *
recording_ractor(struct rb_execution_context_struct *ec)
{
    struct rb_vm_trace_ractor *ractor = trace_on() ? rb_vm_trace_host_ractor(ec) : NULL;
    return ractor != rb_vm_trace_capture.overflow ? ractor : NULL;
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

/* Records that a fiber waited, since the begin of the trace if not later. */
static void
record(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *from,
       struct rb_execution_context_struct *to, const struct vm_trace_fiber_times *times, uint64_t now_ns)
{
    uint64_t begin_ns = rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 });
    bool before = times->switched_ns < begin_ns;
    struct wait wait = { .from_ns = before ? begin_ns : times->switched_ns, .to_ns = now_ns,
                         .ran_ns = before ? 0 : times->ran_ns,
                         .resumer = rb_vm_trace_host_fiber_alive_p(from) ? from : NULL };
    if (times->ready_ns > wait.from_ns && times->ready_ns < now_ns) wait.ready_ns = now_ns - times->ready_ns;
    if (!stacks_capture(&ractor->stacks, to, 0)) {
        ractor->lost++;
        return;
    }
    wait.inner = rb_vm_trace_host_scheduler_frames(to, &ractor->stacks.walk);
    fibers_of(ractor)->waits += rb_vm_trace_event_write(ractor, to, write_wait, &wait);
}

void
rb_vm_trace_fibers_resumed(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to)
{
    struct rb_vm_trace_ractor *ractor = from != to ? recording_ractor(to) : NULL;
    uint32_t track = ractor ? rb_vm_trace_host_fiber_track(to) : 0;
    if (!track) return;
    const struct vm_trace_fiber_times times = rb_vm_trace_fiber_times(track);
    uint64_t now_ns = clock_now_ns(&ractor->clock), least_ns = rb_vm_trace_fibers.min_ns;
    if (times.switched_ns && (now_ns - times.switched_ns >= least_ns || times.ran_ns >= least_ns))
        record(ractor, from, to, &times, now_ns);
    else if (times.switched_ns)
        fibers_of(ractor)->left_out++;
    rb_vm_trace_fiber_times_set(track, (struct vm_trace_fiber_times){ .switched_ns = now_ns });
}

void
rb_vm_trace_fibers_suspended(struct rb_execution_context_struct *from)
{
    /* One that has ended has left its track. */
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_host_fiber_alive_p(from) ? recording_ractor(from) : NULL;
    uint32_t track = ractor ? rb_vm_trace_host_fiber_track(from) : 0;
    if (!track) return;
    uint64_t begin_ns = rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 }), now_ns = clock_now_ns(&ractor->clock);
    uint64_t since_ns = rb_vm_trace_fiber_times(track).switched_ns;
    if (since_ns < begin_ns) since_ns = begin_ns;
    rb_vm_trace_fiber_times_set(track, (struct vm_trace_fiber_times){
        .switched_ns = now_ns, .ran_ns = now_ns > since_ns ? now_ns - since_ns : 0 });
}

void
rb_vm_trace_fibers_ready(uintptr_t fiber)
{
    struct rb_execution_context_struct *ec = rb_vm_trace_host_fiber_context(fiber);
    struct rb_vm_trace_ractor *ractor = ec && rb_vm_trace_host_fiber_alive_p(ec) ? recording_ractor(ec) : NULL;
    uint32_t track = ractor ? rb_vm_trace_host_fiber_track(ec) : 0;
    if (!track) return;
    struct vm_trace_fiber_times times = rb_vm_trace_fiber_times(track);
    times.ready_ns = clock_now_ns(&ractor->clock);
    rb_vm_trace_fiber_times_set(track, times);
}

/* --- the stream -------------------------------------------------------------------------------- */

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
    return !stream->rate || rb_vm_trace_event_setting(event, "fibers_min_ns", stream->min_ns);
}

struct rb_vm_trace_stream rb_vm_trace_fibers = {
    .name = "fibers",
    .options = "min=DURATION (such as 1ms)",
    .takes_min = true,
    .default_min_ns = 100000,
    .counters = counters,
    .without_jit = true,
    .ractor_bytes = sizeof(struct fibers_state),
    .start = start_fibers,
    .stop = stop_fibers,
    .ractor_begin = count_from_0,
    .ractor_epoch = count_from_0,
    .ractor_count = add_count,
    .write_settings = write_settings
};
