/* call_check.c - see call_check.h */
#include <inttypes.h>

#include "topics/calls/call_check.h"
#include "analysis/event_args.h"
#include "base/escape.h"
#include "fxt/known_strings.h"

enum { PROCESSES_MAX = 16 * 1024 };

static const struct counted_stream stream = {
    .name = "calls", .slice = "call", .min_ns = STRING_CALLS_MIN_NS, .count = STRING_CALLS,
};

#define FAULT(reader, event, ...) reader_fault(reader, FXT_FAULT_SCHEMA, (event)->offset, __VA_ARGS__)

void
call_check_init(struct call_check *check)
{
    stream_counts_init(&check->counts, &stream);
    row_table_init(&check->processes, sizeof(struct call_check_process), 1, PROCESSES_MAX);
    ended_slices_init(&check->ended);
}

void
call_check_free(struct call_check *check)
{
    stream_counts_free(&check->counts);
    row_table_free(&check->processes);
    ended_slices_clear(&check->ended);
}

void
call_check_chunk(struct call_check *check)
{
    ended_slices_clear(&check->ended);
}

static struct call_check_process *
process_of(struct call_check *check, uint32_t number)
{
    static struct call_check_process others; /* with too many processes: not compared */
    struct call_check_process *process = row_table_get(&check->processes, &number);
    return process != NULL ? process : &others;
}

void
call_check_settings(struct call_check *check, struct reader *reader, const struct fxt_event *event)
{
    uint64_t depth;
    stream_counts_settings(&check->counts, event);
    if (event_read_uint(event, STRING_CALLS_DEPTH, &depth) && depth == 0)
        FAULT(reader, event, "settings: calls_depth is 0");
}

void
call_check_summary(struct call_check *check, const struct fxt_event *event)
{
    struct call_check_process *process = process_of(check, event->process);
    stream_counts_summary(&check->counts, event);
    process->summary_offset = event->offset;
    process->has_left_out |= event_read_uint(event, STRING_CALLS_LEFT_OUT, &process->summary_left_out);
}

static void
check_left_out(struct call_check_process *process, struct reader *reader, const struct fxt_event *event)
{
    uint64_t left_out = 0, left_out_ns = 0, ns = (uint64_t)(event->end_ns - event->ts_ns);
    char name[140];
    bool any = event_read_uint(event, STRING_LEFT_OUT, &left_out);
    bool timed = event_read_uint(event, STRING_LEFT_OUT_NS, &left_out_ns);
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
      case ENDED_OVERLAPS_PAIR:
        FAULT(reader, event, "call %s begins at %" PRId64 " while its thread is blocked, and ends after that",
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
    bool complete = event->type == FXT_EVENT_DURATION_COMPLETE;
    bool part = fxt_event_arg(event, STRING_BEGAN) != NULL || fxt_event_arg(event, STRING_ENDED) != NULL;
    stream_counts_slice(&check->counts, reader, event, part);
    if (!complete) return;
    check_left_out(process_of(check, event->process), reader, event);
    check_nesting(check, reader, event);
}

void
call_check_blocked(struct call_check *check, const struct fxt_event *event)
{
    if (event->type == FXT_EVENT_DURATION_BEGIN) ended_slices_begin_pair(&check->ended, event);
    if (event->type == FXT_EVENT_DURATION_END) ended_slices_end_pair(&check->ended, event);
}

void
call_check_finish(struct call_check *check, struct reader *reader, uint32_t number)
{
    const struct call_check_process *process = row_table_find(&check->processes, &number);
    stream_counts_finish(&check->counts, reader, number);
    if (process == NULL) return;
    /* Those outside of any recorded call are in no event. */
    if (process->has_left_out && process->summary_left_out < process->left_out) {
        reader_fault(reader, FXT_FAULT_SCHEMA, process->summary_offset,
                     "trace summary says calls_left_out: %" PRIu64 ", but the calls leave out: %" PRIu64,
                     process->summary_left_out, process->left_out);
    }
}
