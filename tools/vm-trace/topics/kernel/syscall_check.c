/* syscall_check.c - see syscall_check.h */
#include <inttypes.h>

#include "topics/kernel/cpu_tracks.h"
#include "topics/kernel/syscall_check.h"
#include "base/escape.h"
#include "fxt/known_strings.h"

const struct counted_stream syscall_stream = {
    .name = "syscalls", .slice = "syscall", .track = "thread", .min_ns = STRING_SYSCALLS_MIN_NS, .count = STRING_SYSCALLS,
    .left_out = STRING_SYSCALLS_LEFT_OUT,
};

#define FAULT(reader, event, ...) reader_fault(reader, FXT_FAULT_SCHEMA, (event)->offset, __VA_ARGS__)

/* A system call has a result, an errno, or did not return. */
static void
check_end(struct reader *reader, const struct fxt_event *event, const char *name)
{
    const struct fxt_arg *error = fxt_event_arg(event, STRING_ERRNO);
    int ends = (fxt_event_arg(event, STRING_RESULT) != NULL) + (error != NULL) +
               (fxt_event_arg(event, STRING_ENDED) != NULL);
    if (ends != 1)
        FAULT(reader, event, "syscall %s has %d of result, errno and ended, not one of them", name, ends);
    if (error != NULL && error->type == FXT_ARG_STRING && (error->string.len < 2 || error->string.ptr[0] != 'E'))
        FAULT(reader, event, "syscall %s: errno is not the name of an error", name);
}

void
syscall_check_event(struct stream_counts *counts, struct reader *reader, const struct fxt_event *event)
{
    char name[140];
    escape_into(name, sizeof name, event->name);
    stream_counts_slice(counts, reader, event, false);
    if (event->type != FXT_EVENT_DURATION_COMPLETE) return;
    check_end(reader, event, name);
    if (cpu_track_p(event->tid))
        FAULT(reader, event, "syscall %s is on the track of a thread's CPU, %" PRIu32, name, event->tid);
}
