/* call_check.c - see call_check.h */
#include <inttypes.h>

#include "analysis/call_check.h"
#include "analysis/event_args.h"
#include "base/escape.h"
#include "fxt/known_strings.h"

enum { PROCESSES_MAX = 16 * 1024 };

#define FAULT(reader, event, ...) reader_fault(reader, FXT_FAULT_SCHEMA, (event)->offset, __VA_ARGS__)

void
call_check_init(struct call_check *check)
{
    row_table_init(&check->processes, sizeof(struct call_check_process), 1, PROCESSES_MAX);
    ended_slices_init(&check->ended);
}

void
call_check_free(struct call_check *check)
{
    row_table_free(&check->processes);
    ended_slices_clear(&check->ended);
}

void
call_check_chunk(struct call_check *check)
{
    ended_slices_clear(&check->ended);
}

static struct call_check_process *
process_of(struct call_check *check, uint32_t pid)
{
    static struct call_check_process others; /* with too many processes: not compared */
    struct call_check_process *process = row_table_get(&check->processes, &pid);
    return process != NULL ? process : &others;
}

/* Returns false if the argument is missing, or, after a fault, if it is no unsigned number. */
static bool
optional_uint(struct reader *reader, const struct fxt_event *event, uint32_t known, uint64_t *value_out)
{
    const struct fxt_arg *arg = fxt_event_arg(event, known);
    char name[140];
    if (arg == NULL) return false;
    if (fxt_arg_uint(arg, value_out)) return true;
    FAULT(reader, event, "%s has no unsigned number as its argument %s",
          escape_into(name, sizeof name, event->name), pool_string(reader_pool(reader), known).ptr);
    return false;
}

void
call_check_settings(struct call_check *check, struct reader *reader, const struct fxt_event *event)
{
    struct call_check_process *process = process_of(check, event->pid);
    const struct fxt_arg *flags = fxt_event_arg(event, STRING_FLAGS);
    uint64_t depth;
    if (flags != NULL && flags->type == FXT_ARG_STRING) {
        process->has_flags = true;
        process->has_stream |= text_has_word(flags->string, "calls");
    }
    optional_uint(reader, event, STRING_CALLS_MIN_NS, &process->min_ns);
    if (optional_uint(reader, event, STRING_CALLS_DEPTH, &depth) && depth == 0)
        FAULT(reader, event, "settings: calls_depth is 0");
}

void
call_check_summary(struct call_check *check, struct reader *reader, const struct fxt_event *event)
{
    struct call_check_process *process = process_of(check, event->pid);
    process->summary_offset = event->offset;
    process->has_calls = optional_uint(reader, event, STRING_CALLS, &process->summary_calls);
    process->has_left_out = optional_uint(reader, event, STRING_CALLS_LEFT_OUT, &process->summary_left_out);
}

/* An argument that can only have one text, or one of two. */
static bool
has_mark(struct reader *reader, const struct fxt_event *event, uint32_t known, uint32_t text, uint32_t other)
{
    const struct fxt_arg *arg = fxt_event_arg(event, known);
    if (arg == NULL) return false;
    char name[140];
    if (arg->type != FXT_ARG_STRING || (arg->string.id != text && arg->string.id != other)) {
        FAULT(reader, event, "call %s: %s is not \"%s\"", escape_into(name, sizeof name, event->name),
              pool_string(reader_pool(reader), known).ptr, pool_string(reader_pool(reader), text).ptr);
    }
    return true;
}

static void
check_left_out(struct call_check_process *process, struct reader *reader, const struct fxt_event *event)
{
    uint64_t left_out = 0, left_out_ns = 0, ns = (uint64_t)(event->end_ns - event->ts_ns);
    char name[140];
    bool any = optional_uint(reader, event, STRING_LEFT_OUT, &left_out);
    bool timed = optional_uint(reader, event, STRING_LEFT_OUT_NS, &left_out_ns);
    process->left_out += left_out;
    if (timed && (!any || left_out == 0)) {
        FAULT(reader, event, "call %s has the time of calls that are left out, but leaves out none",
              escape_into(name, sizeof name, event->name));
    }
    if (left_out_ns > ns) {
        FAULT(reader, event, "call %s: calls of %" PRIu64 " ns are left out of one that took %" PRIu64,
              escape_into(name, sizeof name, event->name), left_out_ns, ns);
    }
}

static void
check_nesting(struct call_check *check, struct reader *reader, const struct fxt_event *event)
{
    char name[140];
    switch (ended_slices_add(&check->ended, event)) {
      case ENDED_FINE: return;
      case ENDED_OVERLAPS:
        FAULT(reader, event, "call %s begins at %" PRId64 " inside another one, and ends after it",
              escape_into(name, sizeof name, event->name), event->ts_ns);
        return;
      case ENDED_SAME_BEGIN:
        FAULT(reader, event, "call %s begins at %" PRId64 ", as one inside of it",
              escape_into(name, sizeof name, event->name), event->ts_ns);
        return;
    }
}

void
call_check_call(struct call_check *check, struct reader *reader, const struct fxt_event *event)
{
    struct call_check_process *process = process_of(check, event->pid);
    char name[140];
    process->calls++;
    if (process->has_flags && !process->has_stream && !process->strange_reported) {
        process->strange_reported = true;
        FAULT(reader, event, "call %s: the settings do not have the stream calls",
              escape_into(name, sizeof name, event->name));
    }
    if (event->type != FXT_EVENT_DURATION_COMPLETE) return;
    bool began = has_mark(reader, event, STRING_BEGAN, STRING_BEFORE_THE_TRACE, STRING_BEFORE_THE_TRACE);
    bool ended = has_mark(reader, event, STRING_ENDED, STRING_AFTER_THE_TRACE, STRING_NEVER);
    uint64_t ns = (uint64_t)(event->end_ns - event->ts_ns);
    if (ns < process->min_ns && !began && !ended) { /* only a part of such a call is known */
        FAULT(reader, event, "call %s of %" PRIu64 " ns; the shortest is %" PRIu64,
              escape_into(name, sizeof name, event->name), ns, process->min_ns);
    }
    check_left_out(process, reader, event);
    check_nesting(check, reader, event);
}

void
call_check_finish(struct call_check *check, struct reader *reader, uint32_t pid)
{
    const struct call_check_process *process = row_table_find(&check->processes, &pid);
    if (process == NULL) return;
    if (process->has_calls && process->summary_calls != process->calls) {
        reader_fault(reader, FXT_FAULT_SCHEMA, process->summary_offset,
                     "trace summary says calls: %" PRIu64 ", but the file holds: %" PRIu64, process->summary_calls,
                     process->calls);
    }
    /* Those outside of any recorded call are in no event. */
    if (process->has_left_out && process->summary_left_out < process->left_out) {
        reader_fault(reader, FXT_FAULT_SCHEMA, process->summary_offset,
                     "trace summary says calls_left_out: %" PRIu64 ", but the calls leave out: %" PRIu64,
                     process->summary_left_out, process->left_out);
    }
}
