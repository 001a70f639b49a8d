/*
 * The stream of execution states: how it begins and ends, and what it reports. states.c has what it
 * records.
 */
#include "vm_trace/streams/states/states.h"
#include "vm_trace/streams/states/c_methods.h"
#include "vm_trace/streams/states/call_times.h"
#include "vm_trace/streams/states/execution_slices.h"
#include "vm_trace/streams/frames.h"
#include "vm_trace/streams/code/sites.h"
#include "vm_trace/streams/states/thread_times.h"

static const char *
watch_states(void)
{
    if (!rb_vm_trace_call_times_init()) return "out of memory";
    rb_vm_trace_states_on = 1;
    rb_vm_trace_frames_report(RB_VM_TRACE_FRAMES_STATES, true);
    return NULL;
}

/* Before a JIT is on there is one state, and nothing to tell it from. */
static const char *
start_states(bool by_flags)
{
    if (!rb_vm_trace_states.rate || (!by_flags && !rb_vm_trace_registered_jit())) return NULL;
    const char *why = watch_states();
    if (!why) rb_vm_trace_states_begin();
    return why;
}

/* The trace began before there was an entry to watch: by flags of the JIT, or while no JIT was on. */
static const char *
start_with_jit(void)
{
    if (!trace_on() || !rb_vm_trace_states.rate) return NULL;
    if (!rb_vm_trace_states_on) return watch_states();
    rb_vm_trace_frames_report(RB_VM_TRACE_FRAMES_STATES, true);
    return NULL;
}

static void
stop_states(void)
{
    rb_vm_trace_states_on = 0;
    rb_vm_trace_frames_report(RB_VM_TRACE_FRAMES_STATES, false);
}

static void
finish_states(void)
{
    if (rb_vm_trace_states.rate) rb_vm_trace_states_finish();
}

static void
free_all(void)
{
    rb_vm_trace_thread_times_free_all();
    rb_vm_trace_call_times_free_all();
}

static bool
write_settings(struct vm_trace_event *event)
{
    return !rb_vm_trace_states.rate || rb_vm_trace_event_setting(event, "states_min_ns", rb_vm_trace_states.min_ns);
}

static void
report(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, struct vm_trace_totals *totals)
{
    (void)totals;
    if (!rb_vm_trace_states.rate || !ractor) return;
    rb_vm_trace_thread_times_report(ractor, ec);
    rb_vm_trace_call_times_report(ractor, ec);
}

static bool
snapshot_room(void)
{
    return !rb_vm_trace_states.rate || rb_vm_trace_thread_times_snapshot_room();
}

static void
snapshot_begin(void)
{
    if (!rb_vm_trace_states.rate) return;
    rb_vm_trace_thread_times_snapshot_begin();
    rb_vm_trace_call_times_snapshot_begin();
}

static bool
snapshot_write(struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    (void)totals;
    if (!rb_vm_trace_states.rate) return false;
    return rb_vm_trace_thread_times_snapshot_write(ractor) || rb_vm_trace_call_times_snapshot_write(ractor);
}

static void
unit_freed(uintptr_t unit, bool iseq, struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    (void)ractor;
    (void)ec;
    if (iseq) rb_vm_trace_call_times_unit_freed(unit);
}

struct rb_vm_trace_stream rb_vm_trace_states = {
    .name = "states",
    .options = "min=DURATION (such as 1ms)",
    .with = "exits:rate=97,compiles,invalidations,threads,gc",
    .takes_min = true,
    .default_min_ns = 100000,
    .without_jit = true,
    .needs_jit = true,
    .ractor_bytes = sizeof(struct vm_trace_c_methods),
    .start = start_states,
    .stop = stop_states,
    .finish = finish_states,
    .after_fork = rb_vm_trace_states_after_fork,
    .forget = free_all,
    .snapshot_room = snapshot_room,
    .snapshot_begin = snapshot_begin,
    .snapshot_end = rb_vm_trace_thread_times_snapshot_end,
    .snapshot_write = snapshot_write,
    .unit_freed = unit_freed,
    .compacted = rb_vm_trace_states_compacted,
    .jit_ready = start_with_jit,
    .write_settings = write_settings,
    .report = report
};
