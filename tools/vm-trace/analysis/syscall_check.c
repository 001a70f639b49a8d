/* syscall_check.c - see syscall_check.h */
#include <inttypes.h>

#include "analysis/cpu_tracks.h"
#include "analysis/syscall_check.h"
#include "base/escape.h"
#include "fxt/known_strings.h"

const struct counted_stream syscall_stream = {
    .name = "syscalls", .slice = "syscall", .track = "thread", .min_ns = STRING_SYSCALLS_MIN_NS, .count = STRING_SYSCALLS,
    .left_out = STRING_SYSCALLS_LEFT_OUT,
};

#define FAULT(reader, event, ...) reader_fault(reader, FXT_FAULT_SCHEMA, (event)->offset, __VA_ARGS__)

static bool
number_p(const struct fxt_arg *arg)
{
    return (arg->type >= FXT_ARG_INT32 && arg->type <= FXT_ARG_UINT64) || arg->type == FXT_ARG_POINTER;
}

static bool
error_name_p(const struct fxt_arg *arg)
{
    return arg->type == FXT_ARG_STRING && arg->string.len > 1 && arg->string.ptr[0] == 'E';
}

/* A system call has a result, an errno, or did not return. */
static void
check_end(struct reader *reader, const struct fxt_event *event, const char *name)
{
    const struct fxt_arg *result = fxt_event_arg(event, STRING_RESULT);
    const struct fxt_arg *error = fxt_event_arg(event, STRING_ERRNO);
    const struct fxt_arg *ended = fxt_event_arg(event, STRING_ENDED);
    int ends = (result != NULL) + (error != NULL) + (ended != NULL);
    if (ends != 1)
        FAULT(reader, event, "syscall %s has %d of result, errno and ended, not one of them", name, ends);
    if (result != NULL && result->type != FXT_ARG_INT32 && result->type != FXT_ARG_INT64)
        FAULT(reader, event, "syscall %s has no signed number as its argument result", name);
    if (error != NULL && !error_name_p(error))
        FAULT(reader, event, "syscall %s: errno is not the name of an error", name);
    if (ended != NULL && (ended->type != FXT_ARG_STRING || (ended->string.id != STRING_AFTER_THE_TRACE &&
                                                            ended->string.id != STRING_NEVER)))
        FAULT(reader, event, "syscall %s: ended is neither \"after the trace\" nor \"never\"", name);
}

void
syscall_check_event(struct stream_counts *counts, struct reader *reader, const struct fxt_event *event)
{
    char name[140], argument[64];
    escape_into(name, sizeof name, event->name);
    stream_counts_slice(counts, reader, event, false);
    if (event->type != FXT_EVENT_DURATION_COMPLETE) return;
    check_end(reader, event, name);
    for (unsigned i = 0; i < event->arg_count; i++) {
        const struct fxt_arg *arg = &event->args[i];
        bool end = arg->name.id == STRING_RESULT || arg->name.id == STRING_ERRNO || arg->name.id == STRING_ENDED;
        if (end || number_p(arg)) continue;
        FAULT(reader, event, "syscall %s has no whole number as its argument %s", name,
              escape_into(argument, sizeof argument, arg->name));
    }
    if (cpu_track_p(event->tid))
        FAULT(reader, event, "syscall %s is on the track of a thread's CPU, %" PRIu32, name, event->tid);
}
