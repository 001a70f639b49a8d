/* contract.c - see contract.h */
#include <inttypes.h>
#include <stdlib.h>

#include "contract.h"
#include "escape.h"
#include "frames.h"
#include "map.h"
#include "words.h"
#include "xalloc.h"

enum { CLOCKS_MAX = 256 * 1024, PROCESSES_MAX = 16 * 1024, FLOWS_MAX = 1024 * 1024 };

/* The last times of one thread within one provider. One for counters, and three more: an exit that may recompile carries the time before the JIT
 * acted on it, and is written after the spans and the sites' counts that come of that action. */
enum clock { CLOCK_EXITS, CLOCK_TRACE, CLOCK_SPANS, CLOCK_COUNTERS, CLOCKS };

struct clocks {
    int64_t last_ns[CLOCKS];
};

/* What one process of the file says of itself, and what was found of it. */
struct process {
    bool ours;
    bool said_late; /* that settings are not first */
    bool summarized;
    bool snapshot, summary_snapshot; /* whether the settings, the summary say that it is one */
    uint64_t rates[2]; /* K of exits, of fallbacks */

    uint64_t events; /* before the summary */
    uint64_t settings;
    int64_t settings_ns;
    int64_t first_ns;
    uint64_t first_offset;
    int64_t last_ns;
    uint64_t last_offset;
    int64_t summary_ns;
    uint64_t summary_offset;

    uint64_t recorded_exits;
    uint64_t site_exits;
    uint64_t site_fallbacks;
    uint64_t sites;
    uint64_t losses; /* sum of loss events */
    bool has_exits, has_fallbacks, has_events, has_sampled, has_sites, has_lost;
    uint64_t summary_exits, summary_fallbacks, summary_events, summary_sampled, summary_sites, summary_lost;
};

struct flow {
    uint64_t offset; /* of the record that was met first */
    bool begun, ended;
    uint32_t end_tid;
    int64_t end_ns;
};

/* The last event, to which a flow right behind it belongs. */
struct last_event {
    int64_t ts_ns;
    uint32_t provider, pid, tid;
    uint32_t category;
    enum fxt_event_type type;
};

struct contract {
    struct reader *reader;
    bool gaps; /* events of some process may be missing before others */

    struct map process_of_pid;
    struct process *processes;
    uint32_t process_count;
    uint32_t process_capacity;

    struct map flow_of_id;
    struct flow *flows;
    uint32_t flow_count;
    uint32_t flow_capacity;
    struct last_event last;

    struct map clock_of_thread;
    struct clocks *clocks;
    uint32_t clock_count;
    uint32_t clock_capacity;
};

struct contract *
contract_new(struct reader *reader)
{
    struct contract *contract = xcalloc(1, sizeof *contract);
    contract->reader = reader;
    return contract;
}

void
contract_free(struct contract *contract)
{
    if (contract == NULL) return;
    map_free(&contract->process_of_pid);
    free(contract->processes);
    map_free(&contract->flow_of_id);
    free(contract->flows);
    map_free(&contract->clock_of_thread);
    free(contract->clocks);
    free(contract);
}

bool
contract_ended(const struct contract *contract)
{
    uint32_t ours = 0, summarized = 0;
    for (uint32_t i = 0; i < contract->process_count; i++) {
        ours += contract->processes[i].ours;
        summarized += contract->processes[i].summarized;
    }
    return ours > 0 && summarized == ours;
}

/* NULL when there are too many. */
static struct process *
process_of(struct contract *contract, uint32_t pid)
{
    uint32_t index = map_get(&contract->process_of_pid, pid);
    if (index != MAP_NONE) return &contract->processes[index];
    if (contract->process_count == PROCESSES_MAX) return NULL;
    make_room(contract->processes, contract->process_count, contract->process_capacity);
    map_set(&contract->process_of_pid, pid, contract->process_count);
    struct process *process = &contract->processes[contract->process_count++];
    *process = (struct process){.rates = {1, 1}};
    return process;
}

bool
contract_gaps(const struct contract *contract)
{
    return contract->gaps;
}

#define FAULT(contract, event, ...) reader_fault((contract)->reader, FXT_FAULT_CONTRACT, (event)->offset, __VA_ARGS__)

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
require_string(struct contract *contract, const struct fxt_event *event, uint32_t word)
{
    const struct fxt_arg *arg = fxt_event_arg(event, word);
    if (arg != NULL && arg->type == FXT_ARG_STRING) return;
    struct event_name name;
    FAULT(contract, event, "%s %s argument %s", name_of(&name, event), arg ? "has no string as its" : "lacks its",
          pool_string(reader_pool(contract->reader), word).ptr);
}

static bool
require_uint(struct contract *contract, const struct fxt_event *event, uint32_t word, uint64_t *value_out)
{
    const struct fxt_arg *arg = fxt_event_arg(event, word);
    if (fxt_arg_uint(arg, value_out)) return true;
    struct event_name name;
    FAULT(contract, event, "%s %s argument %s", name_of(&name, event),
          arg ? "has no whole number from 0 on as its" : "lacks its",
          pool_string(reader_pool(contract->reader), word).ptr);
    return false;
}

/* Nothing is said when it is not there. */
static bool
optional_uint(struct contract *contract, const struct fxt_event *event, uint32_t word, uint64_t *value_out)
{
    return fxt_event_arg(event, word) != NULL && require_uint(contract, event, word, value_out);
}

static void
check_no_doubles(struct contract *contract, const struct fxt_event *event)
{
    for (unsigned i = 1; i < event->arg_count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (!fxt_string_equal(event->args[i].name, event->args[j].name)) continue;
            char key[64];
            struct event_name name;
            FAULT(contract, event, "%s has two arguments %s", name_of(&name, event),
                  escape_into(key, sizeof key, event->args[i].name));
            return;
        }
    }
}

/* Whether all that "10+" says is how many frames there are more: of a trace that keeps fewer than ten. */
static bool
only_left_out(struct contract *contract, const struct fxt_event *event)
{
    const struct fxt_arg *rest = fxt_event_arg(event, WORD_FRAME_REST);
    struct frames frames = {0};
    if (rest == NULL || rest->type != FXT_ARG_STRING) return false;
    frames_of_rest(&frames, reader_pool(contract->reader), rest->string);
    bool only = frames.count == 0 && frames.left_out > 0;
    free(frames.list);
    return only;
}

/* Frames "0", "1", ... without a gap, then "10+" where there are more than ten, or than are kept. */
static void
check_backtrace(struct contract *contract, const struct fxt_event *event)
{
    unsigned present = 0;
    struct event_name name;
    for (unsigned i = 0; i < event->arg_count; i++) {
        uint32_t word = event->args[i].name.id;
        if (word < WORD_FRAME_0 || word > WORD_FRAME_REST) continue;
        present |= 1u << (word - WORD_FRAME_0);
        if (event->args[i].type == FXT_ARG_STRING) continue;
        FAULT(contract, event, "%s: frame %s is not a string", name_of(&name, event),
              pool_string(reader_pool(contract->reader), word).ptr);
    }
    if (!(present & 1)) {
        FAULT(contract, event, "%s lacks its argument 0, the innermost frame", name_of(&name, event));
    }
    else if (present & (present + 1)) {
        unsigned named = present & ~(1u << (WORD_FRAME_REST - WORD_FRAME_0));
        if ((named & (named + 1)) == 0 && only_left_out(contract, event)) return;
        unsigned missing = (unsigned)__builtin_ctz(~present);
        FAULT(contract, event, "%s has a gap in its backtrace: frame %u is missing", name_of(&name, event), missing);
    }
}

/* --- exits ------------------------------------------------------------------------- */

static void
check_weight(struct contract *contract, const struct fxt_event *event, uint64_t rate)
{
    const struct fxt_arg *arg = fxt_event_arg(event, WORD_WEIGHT);
    struct event_name name;
    uint64_t weight;
    if (arg == NULL) {
        if (rate <= 1) return;
        FAULT(contract, event, "%s lacks its argument weight, though one in %" PRIu64 " is recorded", name_of(&name, event),
              rate);
    }
    else if (rate <= 1) {
        FAULT(contract, event, "%s has an argument weight, though all are recorded", name_of(&name, event));
    }
    else if (!fxt_arg_uint(arg, &weight)) {
        FAULT(contract, event, "%s: weight is not a whole number", name_of(&name, event));
    }
    else if (weight != rate) {
        FAULT(contract, event, "%s: weight is %" PRIu64 ", though one in %" PRIu64 " is recorded", name_of(&name, event), weight,
              rate);
    }
}

static void
check_outcome(struct contract *contract, const struct fxt_event *event)
{
    const struct fxt_arg *arg = fxt_event_arg(event, WORD_OUTCOME);
    struct event_name name;
    if (event->category.id != WORD_RECOMPILE_EXIT) {
        if (arg != NULL) FAULT(contract, event, "%s has an argument outcome", name_of(&name, event));
        return;
    }
    require_string(contract, event, WORD_OUTCOME);
    if (arg == NULL || arg->type != FXT_ARG_STRING) return;
    switch (arg->string.id) {
      case WORD_PROFILING:
      case WORD_INVALIDATED:
      case WORD_ALREADY_INVALIDATED:
      case WORD_VERSION_LIMIT:
        return;
    }
    char outcome[64];
    FAULT(contract, event, "%s has the unknown outcome %s", name_of(&name, event),
          escape_into(outcome, sizeof outcome, arg->string));
}

static void
check_exit(struct contract *contract, struct process *process, const struct fxt_event *event)
{
    uint64_t version;
    bool fallback = event->category.id == WORD_FALLBACK;
    check_backtrace(contract, event);
    require_string(contract, event, WORD_INSN);
    require_uint(contract, event, WORD_VERSION, &version);
    check_weight(contract, event, process->rates[fallback]);
    check_outcome(contract, event);
    if (fxt_event_arg(event, WORD_THREAD) != NULL) require_string(contract, event, WORD_THREAD);
    if (fxt_event_arg(event, WORD_CALLEE) != NULL) require_string(contract, event, WORD_CALLEE);
    process->recorded_exits += !fallback;
}

/* --- events of category trace -------------------------------------------------------- */

static void
read_settings(struct contract *contract, struct process *process, const struct fxt_event *event)
{
    if (process->settings++ == 0) {
        process->settings_ns = event->ts_ns;
        if (process->events > 0 && !process->said_late) {
            process->said_late = true;
            FAULT(contract, event, "trace settings is not the first event of its process");
        }
    }
    if (fxt_event_arg(event, WORD_SNAPSHOT) != NULL) process->snapshot = true;
    const struct fxt_arg *keep = fxt_event_arg(event, WORD_KEEP);
    if (keep != NULL && keep->type == FXT_ARG_STRING && keep->string.id == WORD_NEWEST) contract->gaps = true;
    static const uint32_t words[2] = {WORD_EXIT_RATE, WORD_FALLBACK_RATE};
    for (unsigned i = 0; i < 2; i++) {
        uint64_t rate;
        if (optional_uint(contract, event, words[i], &rate)) process->rates[i] = rate;
    }
}

static void
check_site(struct contract *contract, struct process *process, const struct fxt_event *event)
{
    uint64_t hits = 0, sampled = 0, version;
    require_string(contract, event, WORD_REASON);
    require_string(contract, event, WORD_KIND);
    require_string(contract, event, WORD_INSN);
    require_string(contract, event, WORD_LOCATION);
    require_uint(contract, event, WORD_VERSION, &version);
    if (fxt_event_arg(event, WORD_CALLEE) != NULL) require_string(contract, event, WORD_CALLEE);
    process->sites++;
    bool counted = require_uint(contract, event, WORD_HITS, &hits);
    if (counted && optional_uint(contract, event, WORD_SAMPLED, &sampled) && sampled > hits) {
        FAULT(contract, event, "trace site: %" PRIu64 " sampled of %" PRIu64 " hits", sampled, hits);
    }
    const struct fxt_arg *kind = fxt_event_arg(event, WORD_KIND);
    if (kind == NULL || kind->type != FXT_ARG_STRING) return;
    switch (kind->string.id) {
      case WORD_SIDE_EXIT:
      case WORD_RECOMPILE_EXIT: process->site_exits += hits; return;
      case WORD_FALLBACK: process->site_fallbacks += hits; return;
    }
    char text[64];
    FAULT(contract, event, "trace site has the unknown kind %s", escape_into(text, sizeof text, kind->string));
}

static void
read_summary(struct contract *contract, struct process *process, const struct fxt_event *event)
{
    if (process->summarized) {
        FAULT(contract, event, "a second trace summary; the first is at offset %" PRIu64, process->summary_offset);
        return;
    }
    process->summarized = true;
    process->summary_ns = event->ts_ns;
    process->summary_offset = event->offset;
    process->summary_snapshot = fxt_event_arg(event, WORD_SNAPSHOT) != NULL;
    process->has_exits = require_uint(contract, event, WORD_EXITS, &process->summary_exits);
    process->has_events = require_uint(contract, event, WORD_EVENTS, &process->summary_events);
    process->has_lost = require_uint(contract, event, WORD_LOST, &process->summary_lost);
    process->has_fallbacks = optional_uint(contract, event, WORD_FALLBACKS, &process->summary_fallbacks);
    process->has_sampled = optional_uint(contract, event, WORD_SAMPLED, &process->summary_sampled);
    process->has_sites = optional_uint(contract, event, WORD_SITES, &process->summary_sites);
}

static void
check_trace_event(struct contract *contract, struct process *process, const struct fxt_event *event)
{
    uint64_t lost, ns, left_out;
    switch (event->name.id) {
      case WORD_SETTINGS: read_settings(contract, process, event); break;
      case WORD_SITE: check_site(contract, process, event); break;
      case WORD_SUMMARY: read_summary(contract, process, event); break;
      case WORD_LOSS:
        contract->gaps = true;
        require_string(contract, event, WORD_REASON);
        if (require_uint(contract, event, WORD_LOST, &lost)) process->losses += lost;
        break;
      case WORD_CUT:
        require_uint(contract, event, WORD_SINCE_NS, &ns);
        require_uint(contract, event, WORD_UNTIL_NS, &ns);
        require_uint(contract, event, WORD_LEFT_OUT, &left_out);
        break;
    }
}

/* --- all events ------------------------------------------------------------------------ */

static void
check_kind(struct contract *contract, const struct fxt_event *event)
{
    const char *kind;
    bool right;
    struct event_name name;
    switch (event->category.id) {
      case WORD_SIDE_EXIT:
      case WORD_RECOMPILE_EXIT:
      case WORD_FALLBACK:
      case WORD_TRACE:
        kind = "an instant";
        right = event->type == FXT_EVENT_INSTANT;
        break;
      case WORD_COMPILE:
      case WORD_INVALIDATION:
        kind = "a duration";
        right = event->type >= FXT_EVENT_DURATION_BEGIN && event->type <= FXT_EVENT_DURATION_COMPLETE;
        break;
      case WORD_REPROFILE:
        kind = "an async event";
        if (event->name.id == WORD_RECOMPILATION) {
            kind = "a flow";
            right = event->type >= FXT_EVENT_FLOW_BEGIN && event->type <= FXT_EVENT_FLOW_END;
            break;
        }
        right = event->type >= FXT_EVENT_ASYNC_BEGIN && event->type <= FXT_EVENT_ASYNC_END;
        break;
      case WORD_COUNTER:
        kind = "a counter";
        right = event->type == FXT_EVENT_COUNTER;
        break;
      default: {
        char category[64];
        FAULT(contract, event, "unknown category %s", escape_into(category, sizeof category, event->category));
        return;
      }
    }
    if (!right) FAULT(contract, event, "%s is not %s", name_of(&name, event), kind);
}

void
contract_chunk(struct contract *contract)
{
    /* Ractors take turns on a native thread and have a writer each: only within a chunk is the order of one thread theirs. */
    map_free(&contract->clock_of_thread);
    contract->clock_count = 0;
}

static struct clocks *
clocks_of(struct contract *contract, const struct fxt_event *event)
{
    uint64_t key = (uint64_t)event->provider << 32 | event->tid;
    uint32_t index = map_get(&contract->clock_of_thread, key);
    if (index != MAP_NONE) return &contract->clocks[index];
    if (contract->clock_count == CLOCKS_MAX) return NULL;
    make_room(contract->clocks, contract->clock_count, contract->clock_capacity);
    map_set(&contract->clock_of_thread, key, contract->clock_count);
    contract->clocks[contract->clock_count] = (struct clocks){0};
    return &contract->clocks[contract->clock_count++];
}

/* Whether a flow stands right behind an event that it can belong to, which is an instant or begins something. */
static bool
flow_has_event(const struct contract *contract, const struct fxt_event *event)
{
    const struct last_event *last = &contract->last;
    return last->ts_ns == event->ts_ns && last->provider == event->provider && last->pid == event->pid && last->tid == event->tid &&
           (last->type == FXT_EVENT_INSTANT || last->type == FXT_EVENT_DURATION_BEGIN);
}

static bool
belongs_to_exit(const struct contract *contract, const struct fxt_event *event)
{
    return event->type == FXT_EVENT_FLOW_BEGIN && contract->last.type == FXT_EVENT_INSTANT;
}

/*
 * A flow begins and ends once. An exit is written after what came of it: the begin may stand behind the step. What one ractor wrote may
 * stand behind what another wrote later, and their clocks differ a little: only of one thread it is known what comes after what.
 */
static void
check_flow(struct contract *contract, const struct fxt_event *event)
{
    struct event_name name;
    uint64_t key = mix64(event->id) ^ mix64((uint64_t)event->pid + 1);
    uint32_t index = map_get(&contract->flow_of_id, key);
    if (index == MAP_NONE) {
        if (contract->flow_count == FLOWS_MAX) return;
        make_room(contract->flows, contract->flow_count, contract->flow_capacity);
        index = contract->flow_count++;
        contract->flows[index] = (struct flow){.offset = event->offset};
        map_set(&contract->flow_of_id, key, index);
    }
    struct flow *flow = &contract->flows[index];
    bool begins = event->type == FXT_EVENT_FLOW_BEGIN, ends = event->type == FXT_EVENT_FLOW_END;
    bool late = flow->ended && (ends || (event->tid == flow->end_tid && event->ts_ns > flow->end_ns));
    if (begins && flow->begun) FAULT(contract, event, "%s begins a second time with the number %" PRIu64, name_of(&name, event), event->id);
    if (!begins && late) FAULT(contract, event, "%s: the number %" PRIu64 " has ended already", name_of(&name, event), event->id);
    flow->begun |= begins;
    if (ends) flow->ended = true, flow->end_tid = event->tid, flow->end_ns = event->ts_ns;
    if (!flow_has_event(contract, event)) {
        FAULT(contract, event, "%s does not stand right behind an event of its thread and time", name_of(&name, event));
    }
}

static void
check_reprofile(struct contract *contract, const struct fxt_event *event)
{
    uint64_t version;
    if (event->type == FXT_EVENT_ASYNC_BEGIN) {
        require_uint(contract, event, WORD_VERSION, &version);
        require_string(contract, event, WORD_REASON);
    }
    if (event->type >= FXT_EVENT_FLOW_BEGIN && event->type <= FXT_EVENT_FLOW_END) check_flow(contract, event);
}

/* What is of a version says which. One within another has no backtrace, and where no Ruby runs there is none either. */
static void
check_invalidation(struct contract *contract, const struct fxt_event *event)
{
    uint64_t version;
    if (event->type == FXT_EVENT_DURATION_END) return;
    if (fxt_event_arg(event, WORD_ISEQ) != NULL) {
        require_string(contract, event, WORD_ISEQ);
        require_uint(contract, event, WORD_VERSION, &version);
    }
    if (fxt_event_arg(event, WORD_FRAME_0) != NULL) check_backtrace(contract, event);
}

/* What ends a whole compilation. */
static void
check_compilation(struct contract *contract, const struct fxt_event *event)
{
    uint64_t number;
    if (fxt_event_arg(event, WORD_ISEQ) == NULL) return;
    require_string(contract, event, WORD_ISEQ);
    require_uint(contract, event, WORD_VERSION, &number);
    require_uint(contract, event, WORD_CODE_BYTES, &number);
    optional_uint(contract, event, WORD_EXIT_BYTES, &number);
    if (fxt_event_arg(event, WORD_INLINED) != NULL) require_string(contract, event, WORD_INLINED);
    if (fxt_event_arg(event, WORD_ERROR) != NULL) require_string(contract, event, WORD_ERROR);
}

static void
check_time(struct contract *contract, const struct fxt_event *event)
{
    struct clocks *clocks = clocks_of(contract, event);
    if (clocks == NULL) return;
    enum clock clock = event->category.id == WORD_TRACE ? CLOCK_TRACE : CLOCK_EXITS;
    if (event->type == FXT_EVENT_COUNTER) clock = CLOCK_COUNTERS;
    else if (event->type != FXT_EVENT_INSTANT && !belongs_to_exit(contract, event)) clock = CLOCK_SPANS;
    int64_t *last_ns = &clocks->last_ns[clock];
    int64_t now_ns = event->type == FXT_EVENT_DURATION_COMPLETE ? event->end_ns : event->ts_ns;
    if (now_ns < *last_ns) {
        struct event_name name;
        FAULT(contract, event, "%s: time runs back on thread %" PRIu32 ", from %" PRId64 " to %" PRId64 " ns",
              name_of(&name, event), event->tid, *last_ns, now_ns);
        return;
    }
    *last_ns = now_ns;
}

void
contract_event(struct contract *contract, const struct fxt_event *event)
{
    struct process *process = process_of(contract, event->pid);
    if (process == NULL) return;
    bool tells = event->category.id == WORD_TRACE && (event->name.id == WORD_SETTINGS || event->name.id == WORD_SUMMARY);
    if (tells && !process->ours) {
        process->ours = true;
        if (event->name.id == WORD_SUMMARY) FAULT(contract, event, "its process has no trace settings before this summary");
        if (event->name.id == WORD_SUMMARY) process->said_late = true;
    }
    bool summary = event->category.id == WORD_TRACE && event->name.id == WORD_SUMMARY;
    if (process->ours) {
        check_kind(contract, event);
        check_no_doubles(contract, event);
        check_time(contract, event);
        switch (event->category.id) {
          case WORD_SIDE_EXIT:
          case WORD_RECOMPILE_EXIT:
          case WORD_FALLBACK: check_exit(contract, process, event); break;
          case WORD_TRACE: check_trace_event(contract, process, event); break;
          case WORD_REPROFILE: check_reprofile(contract, event); break;
          case WORD_INVALIDATION: check_invalidation(contract, event); break;
          case WORD_COMPILE: check_compilation(contract, event); break;
        }
    }
    contract->last = (struct last_event){event->ts_ns, event->provider, event->pid, event->tid, event->category.id, event->type};
    if (process->events == 0 || event->ts_ns < process->first_ns) {
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

/* What the summary says against what was found. */
static void
compare(struct reader *reader, const struct process *process, bool said, uint64_t summary, uint64_t found, const char *what,
        const char *where)
{
    if (!said || summary == found) return;
    reader_fault(reader, FXT_FAULT_CONTRACT, process->summary_offset, "trace summary says %s: %" PRIu64 ", but %s: %" PRIu64, what,
                 summary, where, found);
}

static void
finish_process(struct reader *reader, const struct process *process)
{
    if (!process->ours) return;
    if (process->settings > 0 && process->first_ns < process->settings_ns) {
        reader_fault(reader, FXT_FAULT_CONTRACT, process->first_offset, "event is earlier than trace settings");
    }
    if (!process->summarized) return; /* the program did not end in good order: nothing to compare with */
    if (process->snapshot != process->summary_snapshot) {
        reader_fault(reader, FXT_FAULT_CONTRACT, process->summary_offset, "trace summary %s a snapshot, and the settings %s",
                     process->summary_snapshot ? "says that it is of" : "does not say that it is of",
                     process->snapshot ? "say so" : "do not");
    }
    if (reader_moved(reader)) return; /* it ended while its file was read, some of which is gone since */
    if (process->last_ns > process->summary_ns) {
        reader_fault(reader, FXT_FAULT_CONTRACT, process->last_offset, "event is later than trace summary");
    }
    compare(reader, process, process->has_events, process->summary_events, process->events, "events", "the file holds");
    compare(reader, process, process->has_sampled, process->summary_sampled, process->recorded_exits, "sampled",
            "exits in the file");
    compare(reader, process, process->has_lost, process->summary_lost, process->losses, "lost", "loss events add up to");
    if (process->has_lost && process->summary_lost > 0) return; /* then sites may be missing too */
    compare(reader, process, process->has_sites, process->summary_sites, process->sites, "sites", "the file holds");
    compare(reader, process, process->has_exits, process->summary_exits, process->site_exits, "exits",
            "hits of the sites add up to");
    compare(reader, process, process->has_fallbacks, process->summary_fallbacks, process->site_fallbacks, "fallbacks",
            "hits of the sites add up to");
}

void
contract_finish(struct contract *contract)
{
    for (uint32_t i = 0; i < contract->process_count; i++) finish_process(contract->reader, &contract->processes[i]);
    for (uint32_t i = 0; i < contract->flow_count && !contract->gaps; i++) {
        if (contract->flows[i].begun) continue;
        reader_fault(contract->reader, FXT_FAULT_CONTRACT, contract->flows[i].offset, "a flow that goes on here did not begin in this trace");
    }
}
