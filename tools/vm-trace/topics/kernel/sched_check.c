/* sched_check.c - see sched_check.h */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topics/kernel/cpu_tracks.h"
#include "analysis/event_args.h"
#include "topics/kernel/sched_check.h"
#include "base/escape.h"
#include "fxt/known_strings.h"

const struct counted_stream sched_stream = {
    .name = "sched", .slice = "sched", .track = "track", .min_ns = STRING_SCHED_MIN_NS, .count = STRING_SCHED_SLICES,
    .left_out = STRING_SCHED_LEFT_OUT,
};

#define FAULT(reader, event, ...) reader_fault(reader, FXT_FAULT_SCHEMA, (event)->offset, __VA_ARGS__)

/* "COMM TID" or "TID". */
static bool
task_p(const struct fxt_arg *arg)
{
    if (arg->type != FXT_ARG_STRING || arg->string.len == 0) return false;
    char last = arg->string.ptr[arg->string.len - 1];
    return last >= '0' && last <= '9';
}

/* Of a thread that waits for a CPU. */
static void
check_runnable(struct reader *reader, const struct fxt_event *event, const char *name)
{
    static const uint32_t tasks[] = {STRING_OTHER, STRING_WAKER};
    for (unsigned i = 0; i < 2; i++) {
        const struct fxt_arg *task = fxt_event_arg(event, tasks[i]);
        if (task != NULL && !task_p(task))
            FAULT(reader, event, "sched %s: %s does not end with the tid of a task", name,
                  pool_string(reader_pool(reader), tasks[i]).ptr);
    }
    if (fxt_event_text(event, STRING_WHY).id == STRING_PREEMPTED && fxt_event_arg(event, STRING_WAKER) != NULL)
        FAULT(reader, event, "sched %s: it was preempted, but has a waker", name);
}

/* Of a thread that runs: the CPUs from some number on share one name, "CPU N and more". */
static void
check_running(struct reader *reader, const struct fxt_event *event, const char *name, uint64_t cpu)
{
    const char *digits = strncmp(name, "CPU ", 4) == 0 ? name + 4 : "";
    char *end;
    unsigned long named = strtoul(digits, &end, 10);
    if (end == digits)
        FAULT(reader, event, "sched %s is neither runnable nor the name of a CPU", name);
    else if (strcmp(end, " and more") == 0 ? cpu < named : (cpu != named || *end != '\0'))
        FAULT(reader, event, "sched %s: cpu is %" PRIu64, name, cpu);
}

void
sched_check_event(struct stream_counts *counts, struct reader *reader, const struct fxt_event *event)
{
    char name[140];
    uint64_t cpu;
    escape_into(name, sizeof name, event->name);
    stream_counts_slice(counts, reader, event, false);
    if (event->type != FXT_EVENT_DURATION_COMPLETE) return;
    if (event->name.id == STRING_RUNNABLE) check_runnable(reader, event, name);
    else if (event_read_uint(event, STRING_CPU, &cpu)) check_running(reader, event, name, cpu);
    if (!cpu_track_p(event->tid))
        FAULT(reader, event, "sched %s is on track %" PRIu32 ", which is not that of a thread's CPU", name,
              event->tid);
}
