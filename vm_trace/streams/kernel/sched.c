/*
 * The stream of the kernel's scheduler. See sched.h.
 */
#include "vm_trace/streams/kernel/sched.h"
#include "vm_trace/capture/event.h"
#include "vm_trace/platform/perf/rings.h"
#include "vm_trace/streams/kernel/kernel_reader.h"

#include <stdio.h>
#include <string.h>

enum { NAMED_CPUS = 1024 };

static const struct vm_trace_string *cpu_names[NAMED_CPUS];

static const struct vm_trace_string *
name_of_cpu(uint32_t cpu)
{
    char text[32];
    const struct vm_trace_string **name = &cpu_names[cpu < NAMED_CPUS ? cpu : NAMED_CPUS - 1];
    if (!*name) {
        int bytes = cpu < NAMED_CPUS - 1 ? snprintf(text, sizeof(text), "CPU %u", cpu) :
                                           snprintf(text, sizeof(text), "CPU %d and more", NAMED_CPUS - 1);
        *name = rb_vm_trace_string_permanent(text, (size_t)bytes);
    }
    return *name;
}

struct slice {
    const struct vm_trace_native_thread *thread;
    uint64_t begin_ns, end_ns;
    uint32_t cpu;
    bool runs;
    const struct vm_trace_task *other; /* that had the CPU; NULL: not known */
};

/* "COMM TID"; the idle task is none that has the CPU. */
static bool
put_task(struct vm_trace_event *event, const struct vm_trace_string *string, const struct vm_trace_task *task)
{
    char text[VM_TRACE_COMM_BYTES + 16];
    unsigned name;
    if (!task || task->tid == 0) return true;
    int bytes = snprintf(text, sizeof(text), "%s%s%u", task->comm, task->comm[0] ? " " : "", task->tid);
    return writer_interned(event->writer, string, &name) &&
        event_text(event, (enum known_string)name, text, (size_t)bytes);
}

static bool
write_slice(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    (void)ec;
    const struct slice *slice = what;
    const struct vm_trace_native_thread *thread = slice->thread;
    const struct vm_trace_string *text = slice->runs ? name_of_cpu(slice->cpu) : KNOWN(RUNNABLE);
    struct vm_trace_event event;
    unsigned in, name;
    if (!text ||
        !rb_vm_trace_event_begin_on(&event, ractor, thread->cpu_track.id, rb_vm_trace_native_track_name,
                                    &thread->cpu_track, slice->begin_ns) ||
        !writer_interned(event.writer, KNOWN(SCHED), &in) || !writer_interned(event.writer, text, &name) ||
        !event_uint32_rarely(&event, KNOWN(CPU), slice->cpu))
        return false;
    if (!slice->runs) {
        if (!event_interned_rarely(&event, KNOWN(WHY), thread->cpu.preempted ? KNOWN(PREEMPTED) : KNOWN(WOKEN)) ||
            !put_task(&event, KNOWN(OTHER), slice->other) ||
            (!thread->cpu.preempted && !put_task(&event, KNOWN(WAKER), &thread->cpu.place)))
            return false;
    }
    return event_end_id(&event, FXT_EVENT_DURATION_COMPLETE, (enum known_string)in, name, slice->end_ns);
}

static void
add_slice(struct rb_vm_trace_ractor *ractor, const struct slice *slice)
{
    if (slice->end_ns <= slice->begin_ns) return;
    rb_vm_trace_kernel_slice(&rb_vm_trace_sched, ractor, slice->begin_ns, slice->end_ns, write_slice, slice);
}

/* It ran on that CPU until `ns`. */
static void
end_run(struct rb_vm_trace_ractor *ractor, struct vm_trace_native_thread *thread, uint64_t ns)
{
    struct slice slice = { thread, thread->cpu.on_ns, ns, thread->cpu.number, true, NULL };
    if (thread->cpu.on_ns) add_slice(ractor, &slice);
    thread->cpu.on_ns = 0;
}

/*
 * When it got or lost its CPU, and what ran before it, or runs after it: the tracepoint that is hit
 * right before says both. An older one belongs to a switch whose record is lost. Without it the
 * time is that of the record, which for a thread that begins to run is some us late.
 */
static uint64_t
take_switch(struct vm_trace_native_thread *thread, const struct vm_trace_perf_record *record,
            struct vm_trace_task *other_out)
{
    enum { SOON_NS = 100000 };
    uint64_t ns = thread->cpu.switch_ns;
    bool known = ns && record->ns - ns < SOON_NS;
    *other_out = known ? thread->cpu.other : (struct vm_trace_task){ .tid = 0 };
    thread->cpu.switch_ns = 0;
    return known ? ns : record->ns;
}

/* It waited until `ns`, and `cpu` is the one that it gets then. `before`: what ran there. */
static void
end_wait(struct rb_vm_trace_ractor *ractor, struct vm_trace_native_thread *thread, uint64_t ns, uint32_t cpu,
         const struct vm_trace_task *before)
{
    struct slice slice = { thread, thread->cpu.runnable_ns, ns, cpu, false, before };
    if (thread->cpu.preempted && thread->cpu.place.tid) slice.other = &thread->cpu.place;
    if (thread->cpu.runnable_ns) add_slice(ractor, &slice);
    thread->cpu.runnable_ns = 0;
}

static void
take_record(struct rb_vm_trace_ractor *ractor, struct vm_trace_native_thread *thread,
            const struct vm_trace_perf_record *record)
{
    struct vm_trace_task other;
    uint64_t ns;
    switch (record->kind) {
      case VM_TRACE_PERF_SWITCH:
        thread->cpu.switch_ns = record->ns;
        thread->cpu.other = record->other;
        break;
      case VM_TRACE_PERF_ON_CPU:
        ns = take_switch(thread, record, &other);
        end_wait(ractor, thread, ns, record->cpu, &other);
        thread->cpu.on_ns = ns;
        thread->cpu.number = record->cpu;
        break;
      case VM_TRACE_PERF_OFF_CPU:
        ns = take_switch(thread, record, &other);
        end_run(ractor, thread, ns);
        thread->cpu.runnable_ns = record->runnable ? ns : 0;
        thread->cpu.preempted = true;
        thread->cpu.place = other;
        break;
      case VM_TRACE_PERF_WAKING:
        if (thread->cpu.on_ns || thread->cpu.runnable_ns) break; /* it does not sleep yet */
        thread->cpu.runnable_ns = record->ns;
        thread->cpu.preempted = false;
        thread->cpu.place = record->waker;
        break;
      case VM_TRACE_PERF_ENDED:
        end_run(ractor, thread, record->ns);
        break;
      default:
        break;
    }
}

static void
finish_thread(struct rb_vm_trace_ractor *ractor, struct vm_trace_native_thread *thread, uint64_t ns)
{
    end_run(ractor, thread, ns);
    end_wait(ractor, thread, ns, thread->cpu.number, NULL);
}

/* --- the stream -------------------------------------------------------------------------------- */

static const char *
refuse_sched(uint64_t rate, const char *only)
{
    (void)only;
    return rate ? rb_vm_trace_perf_refused(VM_TRACE_PERF_CPUS) : NULL;
}

static void
count_from_0(struct rb_vm_trace_ractor *ractor)
{
    rb_vm_trace_kernel_count_from_0(&rb_vm_trace_sched, ractor);
}

static void
add_counts(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    rb_vm_trace_kernel_add_counts(&rb_vm_trace_sched, ractor, totals);
}

static bool
write_settings(struct vm_trace_event *event)
{
    return rb_vm_trace_kernel_write_settings(&rb_vm_trace_sched, "sched_min_ns", event);
}

static const char *const counters[] = { "sched_slices", "sched_left_out", NULL };

struct rb_vm_trace_stream rb_vm_trace_sched = {
    .name = "sched",
    .options = "min=DURATION (such as 100us)",
    .counters = counters,
    .refuse = refuse_sched,
    .write_settings = write_settings,
    .ractor_begin = count_from_0,
    .ractor_epoch = count_from_0,
    .ractor_count = add_counts,
    KERNEL_STREAM
};

static const struct rb_vm_trace_kernel_stream kernel_stream = {
    &rb_vm_trace_sched, VM_TRACE_PERF_CPUS, rb_vm_trace_known_init, take_record, finish_thread
};

__attribute__((constructor)) static void
register_stream(void)
{
    rb_vm_trace_kernel_register(&kernel_stream);
}
