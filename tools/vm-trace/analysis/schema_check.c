/* schema_check.c - see schema_check.h */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/allocation_check.h"
#include "analysis/call_check.h"
#include "analysis/event_args.h"
#include "analysis/execution_check.h"
#include "analysis/frames.h"
#include "analysis/label.h"
#include "analysis/sample_check.h"
#include "analysis/sched_check.h"
#include "analysis/schema_check.h"
#include "analysis/site_hits.h"
#include "analysis/syscall_check.h"
#include "base/escape.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "fxt/event_keys.h"
#include "fxt/known_strings.h"

enum { CLOCKS_MAX = 256 * 1024, PROCESSES_MAX = 16 * 1024, FLOWS_MAX = 1024 * 1024 };
enum { FRAMES_NAMED = STRING_FRAME_REST - STRING_FRAME_0, REST_MAX_BYTES = 4096 };

/* What is sampled at a rate, and has sites. */
enum { EXITS, FALLBACKS, SAMPLED_KINDS };
static const uint32_t rate_names[SAMPLED_KINDS] = {STRING_EXIT_RATE, STRING_FALLBACK_RATE};

/* The last times of one thread within one provider. A recompile exit has a time from before the
 * JIT acted on it, but is written after the durations and site counts that result from the
 * action. So exits, durations and events about the trace have a clock each, and calls, system calls and slices
 * of CPUs have one, too.
 * The counters of each category have one, too: a chunk begins with a sample of the exits, and the
 * marker or the heap's size that needed the chunk has an earlier time. */
enum clock {
    CLOCK_EXITS, CLOCK_TRACE, CLOCK_DURATIONS, CLOCK_CALLS, CLOCK_SYSCALLS, CLOCK_SCHED, CLOCK_COUNTERS,
    CLOCK_MARKER_COUNTERS, CLOCK_GC_COUNTERS, CLOCKS
};

struct clocks {
    int64_t last_ns[CLOCKS];
};

/* What a process in the file states about itself, and what the check found. */
struct process {
    uint32_t pid;
    bool checked;
    bool late_reported; /* that the settings are not the first event */
    bool summarized;
    bool cut; /* a part of a trace */
    bool snapshot, summary_snapshot; /* whether settings and summary are those of a snapshot */
    bool by_signal;                  /* another thread took the snapshot while the program ran */
    bool in_order;                   /* only ractors wrote the file, and used no chunk again */
    bool exit_samples;               /* exits are stack samples, too */
    uint64_t stack;                  /* innermost frames that are kept of a stack; 0: all */
    uint64_t rates[SAMPLED_KINDS];         /* one in so many is recorded; 0: none */
    bool unwanted_reported[SAMPLED_KINDS]; /* that they are recorded, though the rate is 0 */

    uint64_t events; /* before the summary */
    uint64_t settings;
    uint64_t settings_offset;
    int64_t settings_ns;
    int64_t first_ns;
    uint64_t first_offset;
    int64_t last_ns;
    uint64_t last_offset;
    int64_t summary_ns;
    uint64_t summary_offset;
    uint64_t summary_chunk;
    bool late_event_reported; /* that an event follows the summary */

    uint64_t recorded[SAMPLED_KINDS];
    uint64_t hits[SAMPLED_KINDS]; /* of the sites */
    uint64_t sites;
    uint64_t losses; /* sum of loss events */
    bool has_total[SAMPLED_KINDS], has_events, has_sampled, has_sites, has_lost;
    struct allocated {
        uint64_t samples, bytes;
    } allocated, summary_allocated;
    bool has_allocated;
    uint64_t total[SAMPLED_KINDS]; /* of the summary */
    uint64_t summary_events, summary_sampled, summary_sites, summary_lost;
};

struct flow {
    uint64_t offset; /* of the first record that was read */
    bool begun, ended;
    uint32_t end_tid;
    int64_t end_ns;
};

/* The last event. A flow belongs to the event directly before it. */
struct last_event {
    int64_t ts_ns;
    uint32_t provider, pid, tid;
    uint32_t category;
    enum fxt_event_type type;
};

struct schema_check {
    struct reader *reader;
    struct check_rules rules;
    uint64_t chunk; /* number of the current one */
    bool gaps; /* a process may have lost events before those in the file */

    struct map process_of_pid;
    struct process *processes;
    uint32_t process_count;
    uint32_t process_capacity;

    struct map flow_of_id;
    struct flow *flows;
    uint32_t flow_count;
    uint32_t flow_capacity;
    struct last_event last;

    struct allocation_check allocations;
    struct execution_check execution;
    struct call_check calls;
    struct stream_counts syscalls, sched;
    struct sample_check samples;
    struct site_hits hits;

    struct map clock_of_thread;
    struct clocks *clocks;
    uint32_t clock_count;
    uint32_t clock_capacity;
};

struct schema_check *
schema_check_new(struct reader *reader, const struct check_rules *rules)
{
    struct schema_check *check = xcalloc(1, sizeof *check);
    check->reader = reader;
    check->rules = *rules;
    allocation_check_init(&check->allocations);
    execution_check_init(&check->execution);
    call_check_init(&check->calls);
    stream_counts_init(&check->syscalls, &syscall_stream);
    stream_counts_init(&check->sched, &sched_stream);
    sample_check_init(&check->samples, reader);
    site_hits_init(&check->hits);
    return check;
}

void
schema_check_free(struct schema_check *check)
{
    if (check == NULL) return;
    map_free(&check->process_of_pid);
    free(check->processes);
    map_free(&check->flow_of_id);
    free(check->flows);
    allocation_check_free(&check->allocations);
    execution_check_free(&check->execution);
    call_check_free(&check->calls);
    stream_counts_free(&check->syscalls);
    stream_counts_free(&check->sched);
    sample_check_free(&check->samples);
    site_hits_free(&check->hits);
    map_free(&check->clock_of_thread);
    free(check->clocks);
    free(check);
}

bool
schema_check_ended(const struct schema_check *check)
{
    uint32_t checked = 0, summarized = 0;
    for (uint32_t i = 0; i < check->process_count; i++) {
        checked += check->processes[i].checked;
        summarized += check->processes[i].summarized;
    }
    return checked > 0 && summarized == checked;
}

/* Returns NULL if there are too many. */
static struct process *
process_of(struct schema_check *check, uint32_t pid)
{
    uint32_t index = map_get(&check->process_of_pid, pid);
    if (index != MAP_NONE) return &check->processes[index];
    if (check->process_count == PROCESSES_MAX) return NULL;
    make_room(check->processes, check->process_count, check->process_capacity);
    map_set(&check->process_of_pid, pid, check->process_count);
    struct process *process = &check->processes[check->process_count++];
    *process = (struct process){.pid = pid};
    return process;
}

bool
schema_check_gaps(const struct schema_check *check)
{
    return check->gaps;
}

static const struct process *
known_process(const struct schema_check *check, uint32_t pid)
{
    uint32_t index = map_get(&check->process_of_pid, pid);
    return index == MAP_NONE ? NULL : &check->processes[index];
}

bool
schema_check_covers(const struct schema_check *check, uint32_t pid)
{
    const struct process *process = known_process(check, pid);
    return process != NULL && process->checked;
}

bool
schema_check_begins_late(const struct schema_check *check, uint32_t pid)
{
    const struct process *process = known_process(check, pid);
    return process != NULL && (process->cut || process->snapshot);
}

#define FAULT(check, event, ...) reader_fault((check)->reader, FXT_FAULT_SCHEMA, (event)->offset, __VA_ARGS__)

/* Not a fallback. */
static bool
is_exit(const struct fxt_event *event)
{
    return event->category.id == STRING_SIDE_EXIT || event->category.id == STRING_RECOMPILE_EXIT;
}

/* An event's category and name as printable text. */
struct event_name {
    char text[200];
};

static const char *
name_of(struct event_name *name, const struct fxt_event *event)
{
    char category[40], own[140];
    snprintf(name->text, sizeof name->text, "%s %s", escape_into(category, sizeof category, event->category),
             escape_into(own, sizeof own, event->name));
    return name->text;
}

/* --- arguments ------------------------------------------------------------------- */

static void
require_string(struct schema_check *check, const struct fxt_event *event, uint32_t known)
{
    const struct fxt_arg *arg = fxt_event_arg(event, known);
    if (arg != NULL && arg->type == FXT_ARG_STRING) return;
    struct event_name name;
    FAULT(check, event, "%s %s argument %s", name_of(&name, event), arg ? "has no string as its" : "lacks its",
          pool_string(reader_pool(check->reader), known).ptr);
}

static bool
require_uint(struct schema_check *check, const struct fxt_event *event, uint32_t known, uint64_t *value_out)
{
    const struct fxt_arg *arg = fxt_event_arg(event, known);
    if (fxt_arg_uint(arg, value_out)) return true;
    struct event_name name;
    FAULT(check, event, "%s %s argument %s", name_of(&name, event),
          arg ? "has no unsigned number as its" : "lacks its",
          pool_string(reader_pool(check->reader), known).ptr);
    return false;
}

/* No fault if the argument is missing. */
static bool
optional_uint(struct schema_check *check, const struct fxt_event *event, uint32_t known, uint64_t *value_out)
{
    return fxt_event_arg(event, known) != NULL && require_uint(check, event, known, value_out);
}

static void
check_no_doubles(struct schema_check *check, const struct fxt_event *event)
{
    for (unsigned i = 1; i < event->arg_count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (!fxt_string_equal(event->args[i].name, event->args[j].name)) continue;
            char key[64];
            struct event_name name;
            FAULT(check, event, "%s has two arguments %s", name_of(&name, event),
                  escape_into(key, sizeof key, event->args[i].name));
            return;
        }
    }
}

/* Whether "10+" is only the number of further frames: of a trace that keeps fewer than ten. */
static bool
only_left_out(struct schema_check *check, struct fxt_string rest)
{
    struct frames frames = {0};
    frames_of_rest(&frames, reader_pool(check->reader), rest);
    bool only = frames.count == 0 && frames.left_out > 0;
    free(frames.list);
    return only;
}

/* "10+" of an exit that is a stack sample, too: the number of further frames, which the sample has. */
static void
check_sampled_rest(struct schema_check *check, const struct process *process, const struct fxt_event *event,
                   const struct fxt_arg *rest, unsigned named)
{
    struct event_name name;
    uint64_t count, kept = process->stack < FRAMES_NAMED ? process->stack : FRAMES_NAMED;
    if (!fxt_arg_uint(rest, &count)) {
        FAULT(check, event, "%s: 10+ is not a number, though the exit is a stack sample", name_of(&name, event));
    }
    else if (named != (kept > 0 ? kept : 1)) {
        FAULT(check, event, "%s names %u frames, and has 10+; its stack sample has all but %" PRIu64,
              name_of(&name, event), named, kept > 0 ? kept : 1);
    }
    else if (kept == 0 && count < FRAMES_NAMED) {
        FAULT(check, event, "%s leaves %" PRIu64 " frames to its stack sample: so few are named",
              name_of(&name, event), count);
    }
}

/* "10+" follows ten frames; fewer if the event has no room for more, or if the trace keeps fewer. */
static void
check_rest(struct schema_check *check, const struct process *process, const struct fxt_event *event,
           const struct fxt_arg *rest, unsigned named)
{
    struct event_name name;
    if (rest->type != FXT_ARG_STRING) {
        FAULT(check, event, "%s: frame 10+ is not a string", name_of(&name, event));
        return;
    }
    if (rest->string.len > REST_MAX_BYTES) {
        FAULT(check, event, "%s: 10+ has %" PRIu32 " bytes; the most are %d", name_of(&name, event), rest->string.len,
              REST_MAX_BYTES);
    }
    if (named == FRAMES_NAMED || event->arg_count == FXT_ARGS_MAX) return;
    if (named == process->stack && only_left_out(check, rest->string)) return;
    FAULT(check, event, "%s has a gap in its backtrace: frame %u is missing", name_of(&name, event), named);
}

/* Frames "0", "1", ... without a gap, each with its place; then "10+" if there are more. */
static void
check_backtrace(struct schema_check *check, const struct process *process, const struct fxt_event *event)
{
    unsigned present = 0;
    struct event_name name;
    for (unsigned i = 0; i < event->arg_count; i++) {
        const struct fxt_arg *frame = &event->args[i];
        if (frame->name.id < STRING_FRAME_0 || frame->name.id >= STRING_FRAME_REST) continue;
        unsigned number = frame->name.id - STRING_FRAME_0;
        char label[100];
        present |= 1u << number;
        if (frame->type != FXT_ARG_STRING) {
            FAULT(check, event, "%s: frame %u is not a string", name_of(&name, event), number);
        }
        else if (!label_has_place(frame->string)) {
            FAULT(check, event, "%s: frame %u has no path and line: %s", name_of(&name, event), number,
                  escape_into(label, sizeof label, frame->string));
        }
    }
    unsigned named = (unsigned)__builtin_ctz(~present);
    const struct fxt_arg *rest = fxt_event_arg(event, STRING_FRAME_REST);
    if (named == 0) {
        FAULT(check, event, "%s lacks its argument 0, the innermost frame", name_of(&name, event));
    }
    else if (present >> named != 0) {
        FAULT(check, event, "%s has a gap in its backtrace: frame %u is missing", name_of(&name, event), named);
    }
    else if (rest != NULL) {
        bool sampled = process->exit_samples && is_exit(event);
        (sampled ? check_sampled_rest : check_rest)(check, process, event, rest, named);
    }
}

/* --- exits ------------------------------------------------------------------------- */

static void
check_weight(struct schema_check *check, struct process *process, const struct fxt_event *event, unsigned kind)
{
    const struct fxt_arg *arg = fxt_event_arg(event, STRING_WEIGHT);
    struct event_name name;
    uint64_t weight, rate = process->rates[kind];
    if (process->settings > 0 && rate == 0 && !process->unwanted_reported[kind]) {
        process->unwanted_reported[kind] = true;
        FAULT(check, event, "%s: the settings have no %s", name_of(&name, event),
              pool_string(reader_pool(check->reader), rate_names[kind]).ptr);
    }
    if (arg == NULL) {
        if (rate <= 1) return;
        FAULT(check, event, "%s lacks its argument weight, though one in %" PRIu64 " is recorded",
              name_of(&name, event), rate);
    }
    else if (rate <= 1) {
        FAULT(check, event, "%s has an argument weight, though all are recorded", name_of(&name, event));
    }
    else if (!fxt_arg_uint(arg, &weight)) {
        FAULT(check, event, "%s: weight is not a whole number", name_of(&name, event));
    }
    else if (weight != rate) {
        FAULT(check, event, "%s: weight is %" PRIu64 ", though one in %" PRIu64 " is recorded", name_of(&name, event),
              weight, rate);
    }
}

static void
check_outcome(struct schema_check *check, const struct fxt_event *event)
{
    const struct fxt_arg *arg = fxt_event_arg(event, STRING_OUTCOME);
    struct event_name name;
    if (event->category.id != STRING_RECOMPILE_EXIT) {
        if (arg != NULL) FAULT(check, event, "%s has an argument outcome", name_of(&name, event));
        return;
    }
    require_string(check, event, STRING_OUTCOME);
    if (arg == NULL || arg->type != FXT_ARG_STRING) return;
    switch (arg->string.id) {
      case STRING_PROFILING:
      case STRING_INVALIDATED:
      case STRING_ALREADY_INVALIDATED:
      case STRING_VERSION_LIMIT:
        return;
    }
    char outcome[64];
    FAULT(check, event, "%s has the unknown outcome %s", name_of(&name, event),
          escape_into(outcome, sizeof outcome, arg->string));
}

/* What the guard has met: its class, and for some guards two numbers. */
static void
check_seen(struct schema_check *check, const struct fxt_event *event)
{
    const struct fxt_arg *index = fxt_event_arg(event, STRING_INDEX);
    struct event_name name;
    uint64_t length;
    optional_uint(check, event, STRING_LENGTH, &length);
    if (index != NULL && index->type != FXT_ARG_INT32 && index->type != FXT_ARG_INT64)
        FAULT(check, event, "%s has no signed number as its argument index", name_of(&name, event));
    bool fallback = event->category.id == STRING_FALLBACK;
    if (fxt_event_arg(event, STRING_SEEN) != NULL) {
        require_string(check, event, STRING_SEEN);
        if (fallback) FAULT(check, event, "%s has an argument seen", name_of(&name, event));
    }
    else if (index != NULL || fxt_event_arg(event, STRING_LENGTH) != NULL) {
        FAULT(check, event, "%s has an argument index or length, but not seen", name_of(&name, event));
    }
}

static void
check_exit(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    uint64_t version, insn_index;
    unsigned kind = is_exit(event) ? EXITS : FALLBACKS;
    check_backtrace(check, process, event);
    require_string(check, event, STRING_INSN);
    require_uint(check, event, STRING_VERSION, &version);
    check_weight(check, process, event, kind);
    check_outcome(check, event);
    check_seen(check, event);
    if (fxt_event_arg(event, STRING_THREAD) != NULL) require_string(check, event, STRING_THREAD);
    optional_uint(check, event, STRING_INSN_INDEX, &insn_index);
    if (fxt_event_arg(event, STRING_CALLEE) != NULL) require_string(check, event, STRING_CALLEE);
    process->recorded[kind]++;
    if (process->rates[kind] == 1) site_hits_event(&check->hits, check->reader, event);
    execution_check_exit(&check->execution, check->reader, event);
}

/* --- events of category trace -------------------------------------------------------- */

static void
read_settings(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    uint64_t pid;
    if (process->settings++ > 0) {
        FAULT(check, event, "a second trace settings; the first is at offset %" PRIu64, process->settings_offset);
        return;
    }
    process->settings_ns = event->ts_ns;
    process->settings_offset = event->offset;
    if (process->events > 0 && !process->late_reported) {
        process->late_reported = true;
        FAULT(check, event, "trace settings is not the first event of its process");
    }
    if (require_uint(check, event, STRING_PID, &pid) && pid != event->pid)
        FAULT(check, event, "trace settings: pid is %" PRIu64 ", but its process is %" PRIu32, pid, event->pid);
    const struct fxt_arg *snapshot = fxt_event_arg(event, STRING_SNAPSHOT);
    process->snapshot = snapshot != NULL;
    process->by_signal =
        snapshot != NULL && snapshot->type == FXT_ARG_STRING && fxt_string_is(snapshot->string, "signal");
    const struct fxt_arg *keep = fxt_event_arg(event, STRING_KEEP);
    bool newest = keep != NULL && keep->type == FXT_ARG_STRING && keep->string.id == STRING_NEWEST;
    check->gaps |= newest;
    for (unsigned i = 0; i < SAMPLED_KINDS; i++) optional_uint(check, event, rate_names[i], &process->rates[i]);
    optional_uint(check, event, STRING_STACK, &process->stack);
    const struct fxt_arg *arg = fxt_event_arg(event, STRING_FLAGS);
    const struct fxt_string flags = arg != NULL && arg->type == FXT_ARG_STRING ? arg->string : text_of("");
    process->exit_samples = text_has_word(flags, "exits:samples");
    process->in_order = !newest && !text_has_word(flags, "syscalls") && !text_has_word(flags, "sched");
    execution_check_settings(&check->execution, check->reader, event);
    call_check_settings(&check->calls, check->reader, event);
    stream_counts_settings(&check->syscalls, check->reader, event);
    stream_counts_settings(&check->sched, check->reader, event);
    stream_counts_settings(&check->samples.counts, check->reader, event);
}

static void
check_site(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    uint64_t hits = 0, sampled = 0, version, insn_index;
    require_string(check, event, STRING_REASON);
    require_string(check, event, STRING_KIND);
    require_string(check, event, STRING_INSN);
    require_string(check, event, STRING_LOCATION);
    require_uint(check, event, STRING_VERSION, &version);
    optional_uint(check, event, STRING_INSN_INDEX, &insn_index);
    if (fxt_event_arg(event, STRING_CALLEE) != NULL) require_string(check, event, STRING_CALLEE);
    process->sites++;
    execution_check_site(&check->execution, check->reader, event);
    bool counted = require_uint(check, event, STRING_HITS, &hits);
    if (counted && optional_uint(check, event, STRING_SAMPLED, &sampled) && sampled > hits) {
        FAULT(check, event, "trace site: %" PRIu64 " sampled of %" PRIu64 " hits", sampled, hits);
    }
    const struct fxt_arg *kind = fxt_event_arg(event, STRING_KIND);
    if (kind == NULL || kind->type != FXT_ARG_STRING) return;
    char text[64];
    unsigned sampled_kind;
    switch (kind->string.id) {
      case STRING_SIDE_EXIT:
      case STRING_RECOMPILE_EXIT: sampled_kind = EXITS; break;
      case STRING_FALLBACK: sampled_kind = FALLBACKS; break;
      default:
        FAULT(check, event, "trace site has the unknown kind %s", escape_into(text, sizeof text, kind->string));
        return;
    }
    process->hits[sampled_kind] += hits;
    if (process->rates[sampled_kind] == 1)
        site_hits_site(&check->hits, check->reader, event, kind->string.id, hits);
}

/* Counters of streams, which are in the summary, or in the event `counts` before it. */
static void
read_counts(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    bool allocated = optional_uint(check, event, STRING_ALLOCATION_SAMPLES, &process->summary_allocated.samples);
    process->has_allocated |=
        optional_uint(check, event, STRING_ALLOCATION_BYTES, &process->summary_allocated.bytes) && allocated;
    call_check_summary(&check->calls, check->reader, event);
    stream_counts_summary(&check->syscalls, check->reader, event);
    stream_counts_summary(&check->sched, check->reader, event);
    stream_counts_summary(&check->samples.counts, check->reader, event);
}

static void
read_summary(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    if (process->summarized) {
        FAULT(check, event, "a second trace summary; the first is at offset %" PRIu64, process->summary_offset);
        return;
    }
    process->summarized = true;
    process->summary_ns = event->ts_ns;
    process->summary_offset = event->offset;
    process->summary_chunk = check->chunk;
    process->summary_snapshot = fxt_event_arg(event, STRING_SNAPSHOT) != NULL;
    process->has_total[EXITS] = require_uint(check, event, STRING_EXITS, &process->total[EXITS]);
    process->has_total[FALLBACKS] = require_uint(check, event, STRING_FALLBACKS, &process->total[FALLBACKS]);
    process->has_events = require_uint(check, event, STRING_EVENTS, &process->summary_events);
    process->has_lost = require_uint(check, event, STRING_LOST, &process->summary_lost);
    process->has_sampled = require_uint(check, event, STRING_SAMPLED, &process->summary_sampled);
    process->has_sites = require_uint(check, event, STRING_SITES, &process->summary_sites);
    read_counts(check, process, event);
}

static void
check_trace_event(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    uint64_t lost, ns, left_out;
    switch (event->name.id) {
      case STRING_SETTINGS: read_settings(check, process, event); break;
      case STRING_SITE: check_site(check, process, event); break;
      case STRING_COUNTS: read_counts(check, process, event); break;
      case STRING_JIT: require_string(check, event, STRING_JIT); break;
      case STRING_HOST:
        require_string(check, event, STRING_HOST);
        require_uint(check, event, STRING_UNIX_NS, &ns);
        break;
      case STRING_SUMMARY: read_summary(check, process, event); break;
      case STRING_LOSS:
        check->gaps = true;
        require_string(check, event, STRING_REASON);
        if (require_uint(check, event, STRING_LOST, &lost)) process->losses += lost;
        break;
      case STRING_STATES:
        /* A snapshot begins with the oldest event that it has; its sums, with the last reset. */
        execution_check_thread(&check->execution, check->reader, event,
                               process->snapshot ? INT64_MIN : process->settings_ns);
        break;
      case STRING_INTERPRETED:
      case STRING_CALLS: execution_check_iseq(check->reader, event); break;
      case STRING_CUT:
        process->cut = true;
        require_uint(check, event, STRING_SINCE_NS, &ns);
        require_uint(check, event, STRING_UNTIL_NS, &ns);
        require_uint(check, event, STRING_LEFT_OUT, &left_out);
        break;
    }
}

/* --- all events ------------------------------------------------------------------------ */

static void
check_kind(struct schema_check *check, const struct fxt_event *event)
{
    const char *kind;
    bool right;
    struct event_name name;
    switch (event->category.id) {
      case STRING_ALLOCATION:
      case STRING_SIDE_EXIT:
      case STRING_RECOMPILE_EXIT:
      case STRING_FALLBACK:
      case STRING_TRACE:
      case STRING_PREEMPTED:
        kind = "an instant";
        right = event->type == FXT_EVENT_INSTANT;
        break;
      case STRING_COMPILE:
      case STRING_INVALIDATION:
        kind = "the begin or the end of a duration";
        right = event->type == FXT_EVENT_DURATION_BEGIN || event->type == FXT_EVENT_DURATION_END;
        break;
      case STRING_BLOCKED:
        kind = "a duration";
        right = event->type >= FXT_EVENT_DURATION_BEGIN && event->type <= FXT_EVENT_DURATION_COMPLETE;
        break;
      case STRING_EXECUTION:
      case STRING_CALL:
      case STRING_SYSCALL:
      case STRING_SCHED:
        kind = "a duration in one record";
        right = event->type == FXT_EVENT_DURATION_COMPLETE;
        break;
      case STRING_GC:
        kind = event->name.id == STRING_GC_HEAP ? "a counter" : "a duration";
        right = event->name.id == STRING_GC_HEAP
                    ? event->type == FXT_EVENT_COUNTER
                    : event->type >= FXT_EVENT_DURATION_BEGIN && event->type <= FXT_EVENT_DURATION_COMPLETE;
        break;
      case STRING_REPROFILE:
        kind = "an async event";
        if (event->name.id == STRING_RECOMPILATION) {
            kind = "a flow";
            right = event->type >= FXT_EVENT_FLOW_BEGIN && event->type <= FXT_EVENT_FLOW_END;
            break;
        }
        right = event->type >= FXT_EVENT_ASYNC_BEGIN && event->type <= FXT_EVENT_ASYNC_END;
        break;
      case STRING_THROW:
        kind = "a flow";
        right = event->type >= FXT_EVENT_FLOW_BEGIN && event->type <= FXT_EVENT_FLOW_END;
        break;
      case STRING_MARKER:
        kind = "an instant, a duration or a counter";
        right = event->type <= FXT_EVENT_DURATION_END;
        break;
      case STRING_COUNTER:
        kind = "a counter";
        right = event->type == FXT_EVENT_COUNTER;
        break;
      default: {
        char category[64];
        FAULT(check, event, "unknown category %s", escape_into(category, sizeof category, event->category));
        return;
      }
    }
    if (!right) FAULT(check, event, "%s is not %s", name_of(&name, event), kind);
}

void
schema_check_chunk(struct schema_check *check)
{
    /* Ractors take turns on a native thread, and each has its own writer: only within a chunk
     * are the events of a thread in order. */
    map_free(&check->clock_of_thread);
    check->clock_count = 0;
    check->chunk++;
    execution_check_chunk(&check->execution);
    call_check_chunk(&check->calls);
    stream_counts_chunk(&check->syscalls);
    stream_counts_chunk(&check->sched);
}

static struct clocks *
clocks_of(struct schema_check *check, const struct fxt_event *event)
{
    uint64_t key = (uint64_t)event->provider << 32 | event->tid;
    uint32_t index = map_get(&check->clock_of_thread, key);
    if (index != MAP_NONE) return &check->clocks[index];
    if (check->clock_count == CLOCKS_MAX) return NULL;
    make_room(check->clocks, check->clock_count, check->clock_capacity);
    map_set(&check->clock_of_thread, key, check->clock_count);
    check->clocks[check->clock_count] = (struct clocks){0};
    return &check->clocks[check->clock_count++];
}

/* Whether a flow directly follows an event that it can belong to: an instant, or the begin of a
 * duration. */
static bool
flow_has_event(const struct schema_check *check, const struct fxt_event *event)
{
    const struct last_event *last = &check->last;
    return last->ts_ns == event->ts_ns && last->provider == event->provider && last->pid == event->pid &&
           last->tid == event->tid && (last->type == FXT_EVENT_INSTANT || last->type == FXT_EVENT_DURATION_BEGIN);
}

static bool
belongs_to_exit(const struct schema_check *check, const struct fxt_event *event)
{
    return event->type == FXT_EVENT_FLOW_BEGIN && check->last.type == FXT_EVENT_INSTANT;
}

/* A flow begins and ends once. An exit is written after its consequences, so a begin may follow
 * its step. Events of one ractor may come after later events of another, and their clocks differ
 * a little, so the order is known only within a thread. */
static void
check_flow(struct schema_check *check, const struct fxt_event *event)
{
    struct event_name name;
    uint64_t key = flow_key(event->pid, event->id);
    uint32_t index = map_get(&check->flow_of_id, key);
    if (index == MAP_NONE) {
        if (check->flow_count == FLOWS_MAX) return;
        make_room(check->flows, check->flow_count, check->flow_capacity);
        index = check->flow_count++;
        check->flows[index] = (struct flow){.offset = event->offset};
        map_set(&check->flow_of_id, key, index);
    }
    struct flow *flow = &check->flows[index];
    bool begins = event->type == FXT_EVENT_FLOW_BEGIN, ends = event->type == FXT_EVENT_FLOW_END;
    bool late = flow->ended && (ends || (event->tid == flow->end_tid && event->ts_ns > flow->end_ns));
    if (begins && flow->begun)
        FAULT(check, event, "%s begins a second time with the number %" PRIu64, name_of(&name, event), event->id);
    if (!begins && late)
        FAULT(check, event, "%s: the number %" PRIu64 " has ended already", name_of(&name, event), event->id);
    flow->begun |= begins;
    if (ends) flow->ended = true, flow->end_tid = event->tid, flow->end_ns = event->ts_ns;
    if (!flow_has_event(check, event)) {
        FAULT(check, event, "%s does not directly follow an event of its thread and time", name_of(&name, event));
    }
}

static void
check_reprofile(struct schema_check *check, const struct fxt_event *event)
{
    uint64_t version;
    if (event->type == FXT_EVENT_ASYNC_BEGIN) {
        require_uint(check, event, STRING_VERSION, &version);
        require_string(check, event, STRING_REASON);
    }
    if (event->type >= FXT_EVENT_FLOW_BEGIN && event->type <= FXT_EVENT_FLOW_END) check_flow(check, event);
}

/* Not every tracer repeats the name at the end of a duration. This one does. */
static void
require_name(struct schema_check *check, const struct fxt_event *event)
{
    if (event->name.len == 0)
        FAULT(check, event, "%s has no name", pool_string(reader_pool(check->reader), event->category.id).ptr);
}

/* An invalidation of a version says which version. One within another has no backtrace, nor has
 * one outside of Ruby code. */
static void
check_invalidation(struct schema_check *check, const struct process *process, const struct fxt_event *event)
{
    uint64_t version;
    require_name(check, event);
    if (event->type == FXT_EVENT_DURATION_END) return;
    if (fxt_event_arg(event, STRING_ISEQ) != NULL) {
        require_string(check, event, STRING_ISEQ);
        require_uint(check, event, STRING_VERSION, &version);
    }
    if (fxt_event_arg(event, STRING_FRAME_0) != NULL) check_backtrace(check, process, event);
}

/* The end of a compilation of an ISEQ. */
static void
check_compilation(struct schema_check *check, const struct fxt_event *event)
{
    uint64_t number;
    require_name(check, event);
    if (fxt_event_arg(event, STRING_ISEQ) == NULL) return;
    require_string(check, event, STRING_ISEQ);
    require_uint(check, event, STRING_VERSION, &number);
    require_uint(check, event, STRING_CODE_BYTES, &number);
    optional_uint(check, event, STRING_EXIT_BYTES, &number);
    if (fxt_event_arg(event, STRING_INLINED) != NULL) require_string(check, event, STRING_INLINED);
    if (fxt_event_arg(event, STRING_ERROR) != NULL) require_string(check, event, STRING_ERROR);
}

static void
optional_string(struct schema_check *check, const struct fxt_event *event, uint32_t known)
{
    if (fxt_event_arg(event, known) != NULL) require_string(check, event, known);
}

static void
check_blocked(struct schema_check *check, const struct fxt_event *event)
{
    const struct fxt_arg *fd = fxt_event_arg(event, STRING_FD);
    struct event_name name;
    optional_string(check, event, STRING_CLASS);
    call_check_blocked(&check->calls, event);
    if (fd != NULL && (fd->type < FXT_ARG_INT32 || fd->type > FXT_ARG_UINT64))
        FAULT(check, event, "%s has no whole number as its argument fd", name_of(&name, event));
}

/* The tool takes arguments of a pause from its begin or its end. */
static void
check_gc(struct schema_check *check, const struct fxt_event *event)
{
    uint64_t number;
    optional_string(check, event, STRING_REASON);
    optional_string(check, event, STRING_MAJOR_BY);
    optional_uint(check, event, STRING_COUNT, &number);
    optional_uint(check, event, STRING_FREED_SLOTS, &number);
}

/* A sampled object, or what became of one. */
static void
check_allocation(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    uint64_t sample, number, untracked = 0;
    bool numbered = require_uint(check, event, STRING_SAMPLE, &sample);
    if (event->name.id == STRING_FREED || event->name.id == STRING_ALIVE) {
        require_uint(check, event, STRING_SURVIVED, &number);
        if (numbered) allocation_check_fate(&check->allocations, check->reader, event, sample);
        return;
    }
    static const uint32_t bytes[2] = {STRING_SIZE, STRING_WEIGHT};
    for (unsigned i = 0; i < 2; i++) {
        if (!require_uint(check, event, bytes[i], &number)) continue;
        struct event_name name;
        if (number == 0)
            FAULT(check, event, "%s: %s is 0", name_of(&name, event),
                  pool_string(reader_pool(check->reader), bytes[i]).ptr);
        if (bytes[i] == STRING_WEIGHT) process->allocated.bytes += number;
    }
    process->allocated.samples++;
    optional_uint(check, event, STRING_UNTRACKED, &untracked);
    /* The VM allocates outside of Ruby methods, too, and a trace may be without stacks. */
    for (uint32_t frame = STRING_FRAME_0; frame <= STRING_FRAME_REST; frame++) {
        if (fxt_event_arg(event, frame) == NULL) continue;
        check_backtrace(check, process, event);
        break;
    }
    if (numbered) allocation_check_sample(&check->allocations, check->reader, event, sample, untracked != 0);
}

static enum clock
clock_of_counter(uint32_t category)
{
    switch (category) {
      case STRING_MARKER: return CLOCK_MARKER_COUNTERS;
      case STRING_GC: return CLOCK_GC_COUNTERS;
      default: return CLOCK_COUNTERS;
    }
}

static void
check_time(struct schema_check *check, const struct fxt_event *event)
{
    struct clocks *clocks = clocks_of(check, event);
    if (clocks == NULL) return;
    enum clock clock = event->category.id == STRING_TRACE ? CLOCK_TRACE : CLOCK_EXITS;
    if (event->type == FXT_EVENT_COUNTER) clock = clock_of_counter(event->category.id);
    else if (event->category.id == STRING_CALL) clock = CLOCK_CALLS;
    else if (event->category.id == STRING_SYSCALL) clock = CLOCK_SYSCALLS;
    else if (event->category.id == STRING_SCHED) clock = CLOCK_SCHED;
    else if (event->type != FXT_EVENT_INSTANT && !belongs_to_exit(check, event)) clock = CLOCK_DURATIONS;
    int64_t *last_ns = &clocks->last_ns[clock];
    int64_t now_ns = event->type == FXT_EVENT_DURATION_COMPLETE ? event->end_ns : event->ts_ns;
    if (now_ns < *last_ns) {
        struct event_name name;
        FAULT(check, event, "%s: time goes backwards on thread %" PRIu32 ", from %" PRId64 " to %" PRId64 " ns",
              name_of(&name, event), event->tid, *last_ns, now_ns);
        return;
    }
    *last_ns = now_ns;
}

/* Whether the event may be earlier than the settings: it was open before. */
static bool
may_be_early(const struct process *process, const struct fxt_event *event)
{
    bool of_call = event->category.id == STRING_SYSCALL || event->category.id == STRING_SCHED ||
                   event->category.id == STRING_CALL;
    return (process->snapshot && of_call) || fxt_event_arg(event, STRING_BEGAN) != NULL;
}

/* Nothing follows the summary in its chunk; nor in the file, if a single writer filled it from start to end. */
static void
check_end(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    bool in_order = check->chunk == process->summary_chunk || (process->in_order && check->rules.ractors == 1);
    if (!process->summarized || !in_order || process->late_event_reported) return;
    struct event_name name;
    process->late_event_reported = true;
    FAULT(check, event, "%s follows the trace summary, at offset %" PRIu64 ", which is the last event",
          name_of(&name, event), process->summary_offset);
}

void
schema_check_event(struct schema_check *check, const struct fxt_event *event)
{
    struct process *process = process_of(check, event->pid);
    if (process == NULL) return;
    bool identifies =
        event->category.id == STRING_TRACE && (event->name.id == STRING_SETTINGS || event->name.id == STRING_SUMMARY);
    if (identifies && !process->checked) {
        process->checked = true;
        if (event->name.id == STRING_SUMMARY)
            FAULT(check, event, "its process has no trace settings before this summary");
        if (event->name.id == STRING_SUMMARY) process->late_reported = true;
    }
    bool summary = event->category.id == STRING_TRACE && event->name.id == STRING_SUMMARY;
    if (process->checked) {
        check_kind(check, event);
        check_no_doubles(check, event);
        check_time(check, event);
        check_end(check, process, event);
        switch (event->category.id) {
          case STRING_SIDE_EXIT:
          case STRING_RECOMPILE_EXIT:
          case STRING_FALLBACK: check_exit(check, process, event); break;
          case STRING_TRACE: check_trace_event(check, process, event); break;
          case STRING_REPROFILE: check_reprofile(check, event); break;
          case STRING_THROW: check_flow(check, event); break;
          case STRING_INVALIDATION: check_invalidation(check, process, event); break;
          case STRING_COMPILE: check_compilation(check, event); break;
          case STRING_BLOCKED: check_blocked(check, event); break;
          case STRING_GC: check_gc(check, event); break;
          case STRING_EXECUTION: execution_check_slice(&check->execution, check->reader, event); break;
          case STRING_CALL: call_check_call(&check->calls, check->reader, event); break;
          case STRING_SYSCALL: syscall_check_event(&check->syscalls, check->reader, event); break;
          case STRING_SCHED: sched_check_event(&check->sched, check->reader, event); break;
          case STRING_ALLOCATION: check_allocation(check, process, event); break;
        }
    }
    check->last =
        (struct last_event){event->ts_ns, event->provider, event->pid, event->tid, event->category.id, event->type};
    if (process->events == 0 || (event->ts_ns < process->first_ns && !may_be_early(process, event))) {
        process->first_ns = event->ts_ns;
        process->first_offset = event->offset;
    }
    if (summary) return;
    process->events++;
    if (event->ts_ns > process->last_ns) {
        process->last_ns = event->ts_ns;
        process->last_offset = event->offset;
    }
}

/* Compares a number of the summary with the number found. */
static void
compare(struct reader *reader, const struct process *process, bool given, uint64_t summary, uint64_t found,
        const char *what, const char *where)
{
    if (!given || summary == found) return;
    reader_fault(reader, FXT_FAULT_SCHEMA, process->summary_offset,
                 "trace summary says %s: %" PRIu64 ", but %s: %" PRIu64, what, summary, where, found);
}

/* The counts of allocations are since the trace began, or was last reset. */
static void
compare_allocated(struct reader *reader, const struct process *process)
{
    compare(reader, process, process->has_allocated, process->summary_allocated.samples, process->allocated.samples,
            "allocation_samples", "the file holds");
    compare(reader, process, process->has_allocated, process->summary_allocated.bytes, process->allocated.bytes,
            "allocation_bytes", "weights of the samples add up to");
}

/* Whether exits and fallbacks may have been counted after their events were copied into a snapshot: all other
 * ractors go on meanwhile. */
static bool
counts_run_ahead(const struct schema_check *check, const struct process *process)
{
    return process->snapshot && (process->by_signal || check->rules.ractors != 1);
}

/* Each ractor counts to the sampling rate by itself: it has counted to less than that in the end, and also
 * before a reset of the flight recorder, which leaves the count alone. */
static void
compare_rate(struct schema_check *check, const struct process *process, unsigned kind)
{
    static const char *const names[SAMPLED_KINDS] = {"exits", "fallbacks"};
    uint64_t rate = process->rates[kind], total = process->total[kind], recorded = process->recorded[kind];
    uint64_t ractors = check->rules.ractors;
    if (rate < 2 || !process->has_total[kind]) return; /* sites are compared with each event */
    if (recorded <= total / rate) { /* the product may have more than 64 bits */
        bool bounded = ractors > 0 && !counts_run_ahead(check, process);
        uint64_t further = total - recorded * rate;
        if (!bounded || further / ractors + (further % ractors > 0) < rate) return;
    }
    else if (process->snapshot && recorded <= total) {
        uint64_t early = recorded - total / rate;
        if (ractors == 0 || (early <= ractors && early * rate <= total % rate + ractors * (rate - 1))) return;
    }
    reader_fault(check->reader, FXT_FAULT_SCHEMA, process->summary_offset,
                 "trace summary says %s: %" PRIu64 ", but the file holds: %" PRIu64 ", one in %" PRIu64, names[kind],
                 total, recorded, rate);
}

static bool
is_whole(const void *context, uint32_t pid)
{
    return !schema_check_begins_late(context, pid);
}

static void
finish_process(struct schema_check *check, const struct process *process)
{
    struct reader *reader = check->reader;
    bool gaps = check->gaps;
    if (!process->checked) {
        if (check->rules.strict)
            reader_fault(reader, FXT_FAULT_SCHEMA, process->first_offset, "process %" PRIu32 " has no trace settings",
                         process->pid);
        return;
    }
    if (process->settings > 0 && process->first_ns < process->settings_ns) {
        reader_fault(reader, FXT_FAULT_SCHEMA, process->first_offset, "event is earlier than trace settings");
    }
    if (!process->summarized) { /* the process did not end in good order: there is nothing to compare */
        if (check->rules.strict && !check->rules.unended)
            reader_fault(reader, FXT_FAULT_SCHEMA, process->last_offset,
                         "process %" PRIu32 " has no trace summary: it was killed, still runs, or this is a part "
                         "of its trace (--unended accepts that)", process->pid);
        return;
    }
    if (process->snapshot != process->summary_snapshot) {
        reader_fault(reader, FXT_FAULT_SCHEMA, process->summary_offset,
                     "trace summary %s a snapshot, and the settings %s",
                     process->summary_snapshot ? "says that it is of" : "does not say that it is of",
                     process->snapshot ? "say so" : "do not");
    }
    if (reader_moved(reader)) return; /* the file changed while it was read, and parts of it are gone */
    if (process->last_ns > process->summary_ns) {
        reader_fault(reader, FXT_FAULT_SCHEMA, process->last_offset, "event is later than trace summary");
    }
    compare(reader, process, process->has_events, process->summary_events, process->events, "events", "the file holds");
    compare(reader, process, process->has_sampled, process->summary_sampled, process->recorded[EXITS], "sampled",
            "exits in the file");
    compare(reader, process, process->has_lost, process->summary_lost, process->losses, "lost",
            "loss events add up to");
    if (!gaps && !process->snapshot) compare_allocated(reader, process);
    if (process->has_lost && process->summary_lost > 0) return; /* then calls and sites may be lost, too */
    compare(reader, process, process->has_sites, process->summary_sites, process->sites, "sites", "the file holds");
    compare(reader, process, process->has_total[EXITS], process->total[EXITS], process->hits[EXITS], "exits",
            "hits of the sites add up to");
    compare(reader, process, process->has_total[FALLBACKS], process->total[FALLBACKS], process->hits[FALLBACKS],
            "fallbacks", "hits of the sites add up to");
    for (unsigned i = 0; i < SAMPLED_KINDS; i++) compare_rate(check, process, i);
    if (gaps || process->snapshot) return;
    call_check_finish(&check->calls, reader, process->pid);
    stream_counts_finish(&check->syscalls, reader, process->pid);
    stream_counts_finish(&check->sched, reader, process->pid);
    stream_counts_finish(&check->samples.counts, reader, process->pid);
    execution_check_finish(&check->execution, reader, process->pid);
}

static enum site_hits_rule
site_rule_of(const void *context, uint32_t pid, uint32_t category)
{
    const struct schema_check *check = context;
    const struct process *process = known_process(check, pid);
    if (process == NULL || !process->summarized || process->summary_lost > 0) return SITE_HITS_UNKNOWN;
    /* Another ractor may stop the trace while this one recompiles, between the hit and the event. */
    bool open = category == STRING_RECOMPILE_EXIT && check->rules.ractors != 1;
    return open || counts_run_ahead(check, process) ? SITE_HITS_MAY_BE_MORE : SITE_HITS_EQUAL;
}

void
schema_check_blob(struct schema_check *check, const struct fxt_blob *blob)
{
    sample_check_blob(&check->samples, blob);
}

void
schema_check_finish(struct schema_check *check)
{
    if (check->rules.strict && check->process_count == 0)
        reader_fault(check->reader, FXT_FAULT_SCHEMA, 0, "the trace has no event");
    for (uint32_t i = 0; i < check->process_count; i++)
        finish_process(check, &check->processes[i]);
    if (!reader_moved(check->reader)) site_hits_finish(&check->hits, check->reader, site_rule_of, check);
    if (!check->gaps && !reader_moved(check->reader))
        allocation_check_finish(&check->allocations, check->reader, is_whole, check);
    for (uint32_t i = 0; i < check->flow_count && !check->gaps; i++) {
        if (check->flows[i].begun) continue;
        reader_fault(check->reader, FXT_FAULT_SCHEMA, check->flows[i].offset,
                     "a flow that goes on here did not begin in this trace");
    }
}
