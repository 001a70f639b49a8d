/* schema_check.c - see schema_check.h */
#include <inttypes.h>
#include <stdlib.h>

#include "topics/allocations/allocation_check.h"
#include "topics/calls/call_check.h"
#include "analysis/event_args.h"
#include "analysis/event_schema.h"
#include "topics/states/execution_check.h"
#include "analysis/frames.h"
#include "analysis/label.h"
#include "topics/samples/sample_check.h"
#include "topics/kernel/sched_check.h"
#include "check/schema_check.h"
#include "topics/compiles/compiled_texts.h"
#include "topics/exits/site_hits.h"
#include "topics/fibers/fiber_check.h"
#include "topics/kernel/syscall_check.h"
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
    CLOCK_EXITS, CLOCK_INSTANTS, CLOCK_TRACE, CLOCK_DURATIONS, CLOCK_CALLS, CLOCK_SYSCALLS, CLOCK_SCHED, CLOCK_FIBERS,
    CLOCK_COUNTERS, CLOCK_MARKER_COUNTERS, CLOCK_GC_COUNTERS, CLOCKS
};

struct clocks {
    int64_t last_ns[CLOCKS];
};

/* What a process in the file states about itself, and what the check found. */
struct process {
    uint32_t number, pid;
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
    bool has_total[SAMPLED_KINDS], has_events, has_sampled, has_sites, has_lost, has_counted[2];
    struct allocated {
        uint64_t samples, bytes;
    } allocated, summary_allocated;
    bool has_allocated;
    uint64_t total[SAMPLED_KINDS]; /* of the summary */
    uint64_t summary_events, summary_sampled, summary_sites, summary_lost;
    uint64_t counted[2], summary_counted[2]; /* hits of counters, and places */
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
    uint32_t process, tid;
    uint32_t category;
    enum fxt_event_type type;
};

struct schema_check {
    struct reader *reader;
    struct check_rules rules;
    struct event_schema *schema;
    uint64_t chunk; /* number of the current one */
    bool gaps; /* a process may have lost events before those in the file */

    struct map index_of;
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
    struct stream_counts syscalls, sched, fibers;
    struct sample_check samples;
    struct site_hits hits;
    struct compiled_texts texts;

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
    check->schema = event_schema_new(rules->strict);
    allocation_check_init(&check->allocations);
    execution_check_init(&check->execution);
    call_check_init(&check->calls);
    stream_counts_init(&check->syscalls, &syscall_stream);
    stream_counts_init(&check->fibers, &fiber_stream);
    stream_counts_init(&check->sched, &sched_stream);
    sample_check_init(&check->samples, reader);
    site_hits_init(&check->hits);
    compiled_texts_init(&check->texts, reader_budget(reader));
    return check;
}

void
schema_check_free(struct schema_check *check)
{
    if (check == NULL) return;
    event_schema_free(check->schema);
    map_free(&check->index_of);
    free(check->processes);
    map_free(&check->flow_of_id);
    free(check->flows);
    allocation_check_free(&check->allocations);
    execution_check_free(&check->execution);
    call_check_free(&check->calls);
    stream_counts_free(&check->syscalls);
    stream_counts_free(&check->fibers);
    stream_counts_free(&check->sched);
    sample_check_free(&check->samples);
    site_hits_free(&check->hits);
    compiled_texts_free(&check->texts);
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
process_of(struct schema_check *check, const struct fxt_event *event)
{
    uint32_t index = map_get(&check->index_of, event->process);
    if (index != MAP_NONE) return &check->processes[index];
    if (check->process_count == PROCESSES_MAX) return NULL;
    make_room(check->processes, check->process_count, check->process_capacity);
    map_set(&check->index_of, event->process, check->process_count);
    struct process *process = &check->processes[check->process_count++];
    *process = (struct process){.number = event->process, .pid = event->pid};
    return process;
}

bool
schema_check_gaps(const struct schema_check *check)
{
    return check->gaps;
}

static const struct process *
known_process(const struct schema_check *check, uint32_t number)
{
    uint32_t index = map_get(&check->index_of, number);
    return index == MAP_NONE ? NULL : &check->processes[index];
}

bool
schema_check_covers(const struct schema_check *check, uint32_t number)
{
    const struct process *process = known_process(check, number);
    return process != NULL && process->checked;
}

bool
schema_check_begins_late(const struct schema_check *check, uint32_t number)
{
    const struct process *process = known_process(check, number);
    return process != NULL && (process->cut || process->snapshot);
}

#define FAULT(check, event, ...) reader_fault((check)->reader, FXT_FAULT_SCHEMA, (event)->offset, __VA_ARGS__)

/* Not a fallback. */
static bool
is_exit(const struct fxt_event *event)
{
    return event->category.id == STRING_SIDE_EXIT || event->category.id == STRING_RECOMPILE_EXIT;
}

/* --- arguments ------------------------------------------------------------------- */

static void
check_no_doubles(struct schema_check *check, const struct fxt_event *event)
{
    for (unsigned i = 1; i < event->arg_count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (!fxt_string_equal(event->args[i].name, event->args[j].name)) continue;
            char key[64];
            struct event_name name;
            FAULT(check, event, "%s has two arguments %s", event_name(&name, event),
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
        FAULT(check, event, "%s: 10+ is not a number, though the exit is a stack sample", event_name(&name, event));
    }
    else if (named != (kept > 0 ? kept : 1)) {
        FAULT(check, event, "%s names %u frames, and has 10+; its stack sample has all but %" PRIu64,
              event_name(&name, event), named, kept > 0 ? kept : 1);
    }
    else if (kept == 0 && count < FRAMES_NAMED) {
        FAULT(check, event, "%s leaves %" PRIu64 " frames to its stack sample: so few are named",
              event_name(&name, event), count);
    }
}

/* "10+" follows ten frames; fewer if the event has no room for more, or if the trace keeps fewer. */
static void
check_rest(struct schema_check *check, const struct process *process, const struct fxt_event *event,
           const struct fxt_arg *rest, unsigned named)
{
    struct event_name name;
    if (rest->type != FXT_ARG_STRING) {
        FAULT(check, event, "%s: frame 10+ is not a string", event_name(&name, event));
        return;
    }
    if (rest->string.len > REST_MAX_BYTES) {
        FAULT(check, event, "%s: 10+ has %" PRIu32 " bytes; the most are %d", event_name(&name, event), rest->string.len,
              REST_MAX_BYTES);
    }
    if (named == FRAMES_NAMED || event->arg_count == FXT_ARGS_MAX) return;
    if (named == process->stack && only_left_out(check, rest->string)) return;
    FAULT(check, event, "%s has a gap in its backtrace: frame %u is missing", event_name(&name, event), named);
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
            FAULT(check, event, "%s: frame %u is not a string", event_name(&name, event), number);
        }
        else if (!label_has_place(frame->string)) {
            FAULT(check, event, "%s: frame %u has no path and line: %s", event_name(&name, event), number,
                  escape_into(label, sizeof label, frame->string));
        }
    }
    unsigned named = (unsigned)__builtin_ctz(~present);
    const struct fxt_arg *rest = fxt_event_arg(event, STRING_FRAME_REST);
    if (named == 0) {
        FAULT(check, event, "%s lacks its argument 0, the innermost frame", event_name(&name, event));
    }
    else if (present >> named != 0) {
        FAULT(check, event, "%s has a gap in its backtrace: frame %u is missing", event_name(&name, event), named);
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
        FAULT(check, event, "%s: the settings have no %s", event_name(&name, event),
              pool_string(reader_pool(check->reader), rate_names[kind]).ptr);
    }
    if (arg == NULL) {
        if (rate <= 1) return;
        FAULT(check, event, "%s lacks its argument weight, though one in %" PRIu64 " is recorded",
              event_name(&name, event), rate);
    }
    else if (rate <= 1) {
        FAULT(check, event, "%s has an argument weight, though all are recorded", event_name(&name, event));
    }
    else if (fxt_arg_uint(arg, &weight) && weight != rate) {
        FAULT(check, event, "%s: weight is %" PRIu64 ", though one in %" PRIu64 " is recorded", event_name(&name, event),
              weight, rate);
    }
}

/* What the guard has met: its class, and for some guards two numbers. */
static void
check_seen(struct schema_check *check, const struct fxt_event *event)
{
    struct event_name name;
    bool numbers = fxt_event_arg(event, STRING_INDEX) != NULL || fxt_event_arg(event, STRING_LENGTH) != NULL;
    if (numbers && fxt_event_arg(event, STRING_SEEN) == NULL)
        FAULT(check, event, "%s has an argument index or length, but not seen", event_name(&name, event));
}

static void
check_exit(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    unsigned kind = is_exit(event) ? EXITS : FALLBACKS;
    check_weight(check, process, event, kind);
    check_seen(check, event);
    process->recorded[kind]++;
    if (process->rates[kind] == 1) site_hits_event(&check->hits, check->reader, event);
    execution_check_exit(&check->execution, event);
}

/* --- events of category trace -------------------------------------------------------- */

static void
read_stream_settings(struct schema_check *check, const struct fxt_event *event)
{
    execution_check_settings(&check->execution, event);
    call_check_settings(&check->calls, check->reader, event);
    stream_counts_settings(&check->syscalls, event);
    stream_counts_settings(&check->fibers, event);
    stream_counts_settings(&check->sched, event);
    stream_counts_settings(&check->samples.counts, event);
}

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
    if (event_read_uint(event, STRING_PID, &pid) && pid != event->pid)
        FAULT(check, event, "trace settings: pid is %" PRIu64 ", but its process is %" PRIu32, pid, event->pid);
    process->snapshot = fxt_event_arg(event, STRING_SNAPSHOT) != NULL;
    process->by_signal = fxt_string_is(fxt_event_text(event, STRING_SNAPSHOT), "signal");
    bool newest = fxt_event_text(event, STRING_KEEP).id == STRING_NEWEST;
    check->gaps |= newest;
    for (unsigned i = 0; i < SAMPLED_KINDS; i++) event_read_uint(event, rate_names[i], &process->rates[i]);
    event_read_uint(event, STRING_STACK, &process->stack);
    const struct fxt_string flags = fxt_event_text(event, STRING_FLAGS);
    process->exit_samples = text_has_word(flags, "exits:samples");
    process->in_order = !newest && !text_has_word(flags, "syscalls") && !text_has_word(flags, "sched");
    read_stream_settings(check, event);
}

static void
check_site(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    uint64_t hits = event_uint(event, STRING_HITS, 0), sampled = event_uint(event, STRING_SAMPLED, 0);
    uint32_t kind = fxt_event_text(event, STRING_KIND).id;
    unsigned sampled_kind = kind == STRING_FALLBACK ? FALLBACKS : EXITS;
    process->sites++;
    execution_check_site(&check->execution, check->reader, event);
    if (sampled > hits) FAULT(check, event, "trace site: %" PRIu64 " sampled of %" PRIu64 " hits", sampled, hits);
    process->hits[sampled_kind] += hits;
    if (process->rates[sampled_kind] == 1) site_hits_site(&check->hits, check->reader, event, kind, hits);
}

/* Texts of code, and sites in them. */
static void
check_code(struct schema_check *check, const struct process *process, const struct fxt_event *event)
{
    bool ok = compiled_texts_event(&check->texts, reader_pool(check->reader), process->number, event);
    if (!ok && !check->gaps && !process->cut)
        FAULT(check, event, "trace code: the part of the text before this one is missing");
}

/* Chunks of ractors need not be in order, so a site may come before the text that it is in. */
static void
finish_code(struct schema_check *check)
{
    for (uint32_t i = 0; !check->gaps && i < check->texts.hits.count; i++) {
        const struct compiled_hits *hits = row_table_at(&check->texts.hits, i);
        if (!compiled_texts_have(&check->texts, hits))
            reader_fault(check->reader, FXT_FAULT_SCHEMA, hits->offset,
                         "trace site: no text of version %" PRIu32 " of its ISEQ has line %" PRIu32, hits->version,
                         hits->line);
    }
}

static void
check_counter(struct process *process, const struct fxt_event *event)
{
    process->counted[0] += event_uint(event, STRING_HITS, 0);
    process->counted[1]++;
}

/* Counters of streams, which are in the summary, or in the event `counts` before it. */
static void
read_counts(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    bool allocated = event_read_uint(event, STRING_ALLOCATION_SAMPLES, &process->summary_allocated.samples);
    process->has_allocated |=
        event_read_uint(event, STRING_ALLOCATION_BYTES, &process->summary_allocated.bytes) && allocated;
    process->has_counted[0] |= event_read_uint(event, STRING_COUNTED, &process->summary_counted[0]);
    process->has_counted[1] |= event_read_uint(event, STRING_COUNTED_PLACES, &process->summary_counted[1]);
    call_check_summary(&check->calls, event);
    stream_counts_summary(&check->syscalls, event);
    stream_counts_summary(&check->fibers, event);
    stream_counts_summary(&check->sched, event);
    stream_counts_summary(&check->samples.counts, event);
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
    process->has_total[EXITS] = event_read_uint(event, STRING_EXITS, &process->total[EXITS]);
    process->has_total[FALLBACKS] = event_read_uint(event, STRING_FALLBACKS, &process->total[FALLBACKS]);
    process->has_events = event_read_uint(event, STRING_EVENTS, &process->summary_events);
    process->has_lost = event_read_uint(event, STRING_LOST, &process->summary_lost);
    process->has_sampled = event_read_uint(event, STRING_SAMPLED, &process->summary_sampled);
    process->has_sites = event_read_uint(event, STRING_SITES, &process->summary_sites);
    read_counts(check, process, event);
}

static void
check_trace_event(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    switch (event->name.id) {
      case STRING_SETTINGS: read_settings(check, process, event); break;
      case STRING_MORE_SETTINGS: read_stream_settings(check, event); break;
      case STRING_SITE:
        check_site(check, process, event);
        check_code(check, process, event);
        break;
      case STRING_CODE: check_code(check, process, event); break;
      case STRING_COUNTER: check_counter(process, event); break;
      case STRING_COUNTS: read_counts(check, process, event); break;
      case STRING_SUMMARY: read_summary(check, process, event); break;
      case STRING_LOSS:
        check->gaps = true;
        process->losses += event_uint(event, STRING_LOST, 0);
        break;
      case STRING_STATES:
        /* A snapshot begins with the oldest event that it has; its sums, with the last reset. */
        execution_check_thread(&check->execution, check->reader, event,
                               process->snapshot ? INT64_MIN : process->settings_ns);
        break;
      case STRING_INTERPRETED:
      case STRING_CALLS: execution_check_iseq(check->reader, event); break;
      case STRING_CUT: process->cut = true; break;
    }
}

/* --- all events ------------------------------------------------------------------------ */

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
    stream_counts_chunk(&check->fibers);
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
    return last->ts_ns == event->ts_ns && last->process == event->process &&
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
    uint64_t key = flow_key(event->process, event->id);
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
        FAULT(check, event, "%s begins a second time with the number %" PRIu64, event_name(&name, event), event->id);
    if (!begins && late)
        FAULT(check, event, "%s: the number %" PRIu64 " has ended already", event_name(&name, event), event->id);
    flow->begun |= begins;
    if (ends) flow->ended = true, flow->end_tid = event->tid, flow->end_ns = event->ts_ns;
    if (!flow_has_event(check, event)) {
        FAULT(check, event, "%s does not directly follow an event of its thread and time", event_name(&name, event));
    }
}

/* Not every tracer repeats the name at the end of a duration. This one does. */
static void
require_name(struct schema_check *check, const struct fxt_event *event)
{
    if (event->name.len == 0)
        FAULT(check, event, "%s has no name", pool_string(reader_pool(check->reader), event->category.id).ptr);
}

/* A sampled object, or what became of one. */
static void
check_allocation(struct schema_check *check, struct process *process, const struct fxt_event *event)
{
    uint64_t sample = 0, size, weight = 0;
    bool numbered = event_read_uint(event, STRING_SAMPLE, &sample);
    if (event->name.id == STRING_FREED || event->name.id == STRING_ALIVE) {
        bool described = event_read_uint(event, STRING_WEIGHT, &weight);
        if (numbered) allocation_check_fate(&check->allocations, check->reader, event, sample, described);
        return;
    }
    struct event_name name;
    if (event_read_uint(event, STRING_SIZE, &size) && size == 0)
        FAULT(check, event, "%s: size is 0", event_name(&name, event));
    if (event_read_uint(event, STRING_WEIGHT, &weight) && weight == 0)
        FAULT(check, event, "%s: weight is 0", event_name(&name, event));
    process->allocated.samples++;
    process->allocated.bytes += weight;
    bool untracked = event_uint(event, STRING_UNTRACKED, 0) != 0;
    if (numbered) allocation_check_sample(&check->allocations, check->reader, event, sample, untracked);
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

/* A recompile exit is written after its consequences, which may include a collection that frees objects. */
static enum clock
clock_of_instant(uint32_t category)
{
    switch (category) {
      case STRING_TRACE: return CLOCK_TRACE;
      case STRING_ALLOCATION:
      case STRING_PREEMPTED:
      case STRING_MARKER: return CLOCK_INSTANTS;
      default: return CLOCK_EXITS;
    }
}

static void
check_time(struct schema_check *check, const struct fxt_event *event)
{
    struct clocks *clocks = clocks_of(check, event);
    if (clocks == NULL) return;
    enum clock clock = clock_of_instant(event->category.id);
    if (event->type == FXT_EVENT_COUNTER) clock = clock_of_counter(event->category.id);
    else if (event->category.id == STRING_CALL) clock = CLOCK_CALLS;
    else if (event->category.id == STRING_SYSCALL) clock = CLOCK_SYSCALLS;
    else if (event->category.id == STRING_SCHED) clock = CLOCK_SCHED;
    else if (event->category.id == STRING_FIBER) clock = CLOCK_FIBERS;
    else if (event->type != FXT_EVENT_INSTANT && !belongs_to_exit(check, event)) clock = CLOCK_DURATIONS;
    int64_t *last_ns = &clocks->last_ns[clock];
    int64_t now_ns = event->type == FXT_EVENT_DURATION_COMPLETE ? event->end_ns : event->ts_ns;
    if (now_ns < *last_ns) {
        struct event_name name;
        FAULT(check, event, "%s: time goes backwards on thread %" PRIu32 ", from %" PRId64 " to %" PRId64 " ns",
              event_name(&name, event), event->tid, *last_ns, now_ns);
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
          event_name(&name, event), process->summary_offset);
}

void
schema_check_event(struct schema_check *check, const struct fxt_event *event)
{
    struct process *process = process_of(check, event);
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
        if (event_schema_check(check->schema, check->reader, event)) check_backtrace(check, process, event);
        check_no_doubles(check, event);
        check_time(check, event);
        check_end(check, process, event);
        switch (event->category.id) {
          case STRING_SIDE_EXIT:
          case STRING_RECOMPILE_EXIT:
          case STRING_FALLBACK: check_exit(check, process, event); break;
          case STRING_TRACE: check_trace_event(check, process, event); break;
          case STRING_REPROFILE:
          case STRING_THROW:
            if (event->type >= FXT_EVENT_FLOW_BEGIN && event->type <= FXT_EVENT_FLOW_END) check_flow(check, event);
            break;
          case STRING_COMPILE:
          case STRING_INVALIDATION: require_name(check, event); break;
          case STRING_BLOCKED: call_check_blocked(&check->calls, event); break;
          case STRING_EXECUTION: execution_check_slice(&check->execution, check->reader, event); break;
          case STRING_CALL: call_check_call(&check->calls, check->reader, event); break;
          case STRING_FIBER: fiber_check_event(&check->fibers, check->reader, event); break;
          case STRING_SYSCALL: syscall_check_event(&check->syscalls, check->reader, event); break;
          case STRING_SCHED: sched_check_event(&check->sched, check->reader, event); break;
          case STRING_ALLOCATION: check_allocation(check, process, event); break;
        }
    }
    check->last =
        (struct last_event){event->ts_ns, event->process, event->tid, event->category.id, event->type};
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
is_whole(const void *context, uint32_t number)
{
    return !schema_check_begins_late(context, number);
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
    compare(reader, process, process->has_counted[0], process->summary_counted[0], process->counted[0], "counted",
            "hits of counters add up to");
    compare(reader, process, process->has_counted[1], process->summary_counted[1], process->counted[1],
            "counted_places", "the file holds");
    compare(reader, process, process->has_total[EXITS], process->total[EXITS], process->hits[EXITS], "exits",
            "hits of the sites add up to");
    compare(reader, process, process->has_total[FALLBACKS], process->total[FALLBACKS], process->hits[FALLBACKS],
            "fallbacks", "hits of the sites add up to");
    for (unsigned i = 0; i < SAMPLED_KINDS; i++) compare_rate(check, process, i);
    if (gaps || process->snapshot) return;
    call_check_finish(&check->calls, reader, process->number);
    stream_counts_finish(&check->syscalls, reader, process->number);
    stream_counts_finish(&check->fibers, reader, process->number);
    stream_counts_finish(&check->sched, reader, process->number);
    stream_counts_finish(&check->samples.counts, reader, process->number);
    execution_check_finish(&check->execution, reader, process->number);
}

static enum site_hits_rule
site_rule_of(const void *context, uint32_t number, uint32_t category)
{
    const struct schema_check *check = context;
    const struct process *process = known_process(check, number);
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
    if (!reader_moved(check->reader)) finish_code(check);
    if (!check->gaps && !reader_moved(check->reader))
        allocation_check_finish(&check->allocations, check->reader, is_whole, check);
    for (uint32_t i = 0; i < check->flow_count && !check->gaps; i++) {
        if (check->flows[i].begun) continue;
        reader_fault(check->reader, FXT_FAULT_SCHEMA, check->flows[i].offset,
                     "a flow that goes on here did not begin in this trace");
    }
}
