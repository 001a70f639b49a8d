/* cut.c - `vm-trace cut`: extracts a time range from a trace.
 *
 * It reads the file up to three times: records need not be in order of time, so the start of the trace is
 * known only after all records, and only then what is open where the range begins. States (what a
 * thread does, calls, system calls, what a CPU runs) begin and end at the borders of the range.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topics/choice.h"
#include "analysis/event_args.h"
#include "analysis/origin.h"
#include "analysis/sched_changes.h"
#include "base/escape.h"
#include "base/map.h"
#include "base/output_file.h"
#include "base/row_table.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "fxt/event_keys.h"
#include "fxt/inline_event.h"
#include "fxt/known_strings.h"
#include "fxt/packet.h"
#include "fxt/record_copy.h"

#define NS_PER_SECOND INT64_C(1000000000)

static int64_t since_ns, until_ns = INT64_MAX; /* since the start of the trace */
static const char *out_path;

enum kept { KEPT_NOT, KEPT_WHOLE, KEPT_PART };

struct open_duration {
    uint64_t offset; /* of its begin */
    int64_t ts_ns;
    enum kept kept;
    bool blocked;
};

/* The open durations of a thread, or the open async events of a key. */
struct open_durations {
    uint32_t key[2];
    struct open_duration *open;
    uint32_t depth;
    uint32_t capacity;
    int64_t *ends; /* without a begin so far: it is behind them in a file that keeps its newest events */
    uint32_t end_count, end_capacity;
};

/* A state that was open when the range began. */
struct open_state {
    uint64_t thread;         /* thread_key */
    uint64_t offset;         /* of its begin */
    int64_t ts_ns, end_ns;   /* INT64_MAX: it never ends */
    bool complete;           /* it is one record */
    bool blocked;            /* the thread waits, as its context switch says, too */
};

enum decision { UNREAD /* the record has no time, or was rejected */, KEEP, KEEP_SETTINGS, KEEP_ORIGIN, KEEP_PART, LEAVE_OUT };

/* The part of a duration that is kept. Of a begin or an end, what is said of the duration's end does not count. */
struct part {
    int64_t ts_ns, end_ns; /* of the record */
    int64_t from_ns, to_ns;
    bool began, ended;     /* the duration was open before, and after: an argument of the record says so */
    bool bare;             /* without its other arguments */
};

/* What a thread did when the range began. */
struct thread_change {
    uint32_t process, tid; /* the key */
    uint32_t pid;
    enum sched_change change;
    int64_t ts_ns;
    uint32_t provider;
    uint32_t cpu;
};

/* A thread whose settings were kept. */
struct recorder {
    uint32_t provider;
    uint32_t pid;
    uint32_t tid;
};

struct cut {
    struct reader *reader;
    struct record_copy *copy;
    int64_t first_ns, last_ns; /* of the whole trace */
    int64_t from_ns, to_ns;    /* the range to keep, without to_ns */
    struct recorder *recorders; /* none if the trace is not by CRuby's tracer */
    uint32_t recorder_count, recorder_capacity;
    int64_t settings_ns; /* of the last settings */
    uint64_t unix_ns;    /* of the last host */
    enum decision decision;    /* about the current record */
    struct part part;          /* with KEEP_PART */

    struct row_table durations; /* of struct open_durations, of threads, or of keys of async events */
    struct row_table changes;   /* of struct thread_change */
    struct open_state *open_states;
    uint32_t open_state_count, open_state_capacity;
    /* How many nanoseconds before the border an open state begins: by the offset of that state, and by the thread
     * for the one in which the thread is blocked. */
    struct map states_open, blocked_open;
    struct sched_threads sched_threads;
    struct sched_change_of seen[SCHED_CHANGES_MAX]; /* of the record that is read */
    struct fxt_sched seen_in;
    unsigned seen_count;
    struct map states_written; /* providers */
    struct map objects; /* hashes of names that were written */
    struct map flows;   /* key of a flow -> index into flow_begins */
    int64_t *flow_begins;
    uint32_t flow_count, flow_capacity;

    uint64_t kept, outside, damaged;
    uint64_t begun_before; /* durations that began earlier and end in the range */
    uint64_t parts;        /* durations of which a part was kept */
    uint64_t totals;       /* site counts and summaries, which cover the whole run */
};

/* --- first reading ------------------------------------------------------------------------------ */

static void
note_time(struct cut *cut, int64_t ts_ns)
{
    if (ts_ns < cut->first_ns) cut->first_ns = ts_ns;
    if (ts_ns > cut->last_ns) cut->last_ns = ts_ns;
}

static void
note_event(void *context, const struct fxt_event *event)
{
    struct cut *cut = context;
    note_time(cut, event->ts_ns);
    if (event->type == FXT_EVENT_DURATION_COMPLETE) note_time(cut, event->end_ns);
    if (event->type != FXT_EVENT_FLOW_BEGIN || map_get(&cut->flows, flow_key(event->process, event->id)) != MAP_NONE)
        return;
    map_set(&cut->flows, flow_key(event->process, event->id), cut->flow_count);
    make_room(cut->flow_begins, cut->flow_count, cut->flow_capacity);
    cut->flow_begins[cut->flow_count++] = event->ts_ns;
}

static void
note_sched(void *cut, const struct fxt_sched *sched)
{
    note_time(cut, sched->ts_ns);
}

/* What the time of a stack sample counts as. */
static void
note_blob(void *cut, const struct fxt_blob *blob)
{
    struct proto bytes = proto_of(blob->bytes, blob->len);
    for (struct proto_field field; proto_next(&bytes, &field);) {
        int64_t ts_ns = packet_time(field.message);
        if (ts_ns >= 0) note_time(cut, ts_ns);
    }
}

/* --- where the range begins ----------------------------------------------------------------------- */

static bool
inside(const struct cut *cut, int64_t ts_ns)
{
    return ts_ns >= cut->from_ns && ts_ns < cut->to_ns;
}

static struct open_durations *
durations_of(struct cut *cut, uint64_t key)
{
    const uint32_t words[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    return row_table_get(&cut->durations, words);
}

static void
free_durations(struct cut *cut)
{
    for (uint32_t i = 0; i < cut->durations.count; i++) {
        struct open_durations *durations = row_table_at(&cut->durations, i);
        free(durations->open);
        free(durations->ends);
    }
    row_table_free(&cut->durations);
}

static void
open_duration(struct open_durations *durations, const struct fxt_event *event, enum kept kept)
{
    make_room(durations->open, durations->depth, durations->capacity);
    durations->open[durations->depth++] =
        (struct open_duration){event->offset, event->ts_ns, kept, event->category.id == STRING_BLOCKED};
}

/* Whether the event tells what a thread or a CPU does all the time. Other durations have a begin that counts. */
static bool
state_p(const struct fxt_event *event)
{
    switch (event->category.id) {
      case STRING_BLOCKED:
      case STRING_GC:
      case STRING_CALL:
      case STRING_FIBER:
      case STRING_SYSCALL:
      case STRING_EXECUTION:
      case STRING_SCHED: return true;
      default: return false;
    }
}

static void
note_if_open(struct cut *cut, const struct open_state *state)
{
    if (state->ts_ns >= cut->from_ns || state->end_ns <= cut->from_ns) return;
    make_room(cut->open_states, cut->open_state_count, cut->open_state_capacity);
    cut->open_states[cut->open_state_count++] = *state;
}

static void
note_duration(struct cut *cut, uint64_t thread, const struct open_duration *open, int64_t end_ns)
{
    note_if_open(cut, &(struct open_state){.thread = thread, .offset = open->offset, .ts_ns = open->ts_ns,
                                           .end_ns = end_ns, .blocked = open->blocked});
}

static void
find_open_states(void *context, const struct fxt_event *event)
{
    struct cut *cut = context;
    bool begin = event->type == FXT_EVENT_DURATION_BEGIN;
    uint64_t thread = thread_key(event->process, event->tid);
    if (event->type == FXT_EVENT_DURATION_COMPLETE && state_p(event))
        note_if_open(cut, &(struct open_state){.thread = thread, .offset = event->offset, .ts_ns = event->ts_ns,
                                               .end_ns = event->end_ns, .complete = true});
    if (!begin && event->type != FXT_EVENT_DURATION_END) return;
    struct open_durations *durations = durations_of(cut, thread);
    if (begin) open_duration(durations, event, state_p(event) ? KEPT_PART : KEPT_NOT);
    if (begin) return;
    if (durations->depth == 0) {
        make_room(durations->ends, durations->end_count, durations->end_capacity);
        durations->ends[durations->end_count++] = event->ts_ns;
        return;
    }
    const struct open_duration *open = &durations->open[--durations->depth];
    if (open->kept == KEPT_PART) note_duration(cut, thread, open, event->ts_ns);
}

static void
find_changes(void *context, const struct fxt_sched *sched)
{
    struct cut *cut = context;
    cut->seen_count = sched_changes(&cut->sched_threads, sched, cut->seen);
    if (sched->ts_ns >= cut->from_ns) cut->seen_count = 0;
    cut->seen_in = *sched;
}

static void
find_processes(void *context, const struct fxt_object *object)
{
    struct cut *cut = context;
    if (object->type == FXT_OBJECT_THREAD) sched_changes_name(&cut->sched_threads, object);
}

/* Notes what threads did last. What has another clock than CRuby's tracer is left alone. */
static void
find_record(void *context, const struct fxt_record *record)
{
    struct cut *cut = context;
    if (record->type != FXT_RECORD_SCHEDULING || cut->seen_count == 0) return;
    uint64_t ticks;
    memcpy(&ticks, record->bytes + FXT_WORD_BYTES, sizeof ticks);
    for (unsigned i = 0; i < cut->seen_count && ticks == (uint64_t)cut->seen_in.ts_ns; i++) {
        const uint32_t key[2] = {
            reader_process(cut->reader, cut->seen_in.recording, cut->seen[i].pid), cut->seen[i].tid};
        struct thread_change *last = row_table_get(&cut->changes, key);
        if (last->change == SCHED_NONE || cut->seen_in.ts_ns >= last->ts_ns)
            *last = (struct thread_change){key[0], key[1], cut->seen[i].pid, cut->seen[i].change,
                                           cut->seen_in.ts_ns, cut->seen_in.provider, cut->seen_in.cpu};
    }
    cut->seen_count = 0;
}

/* By thread, inner ones first: who begins later, or ends earlier, is in the other. */
static int
compare_open_states(const void *left, const void *right)
{
    const struct open_state *a = left, *b = right;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    if (a->end_ns != b->end_ns) return a->end_ns < b->end_ns ? -1 : 1;
    if (a->ts_ns != b->ts_ns) return a->ts_ns > b->ts_ns ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* After the last record: what is still open. The open states of a thread begin one nanosecond after each other, and
 * before what begins at the border, so that they still nest. An innermost one of two records begins at the border: what
 * is in it comes behind its begin. */
static void
find_end(struct cut *cut)
{
    for (uint32_t i = 0; i < cut->durations.count; i++) {
        const struct open_durations *durations = row_table_at(&cut->durations, i);
        uint64_t thread = (uint64_t)durations->key[1] << 32 | durations->key[0];
        for (uint32_t depth = durations->depth, end = 0; depth-- > 0;) { /* inner ones end first */
            const struct open_duration *open = &durations->open[depth];
            while (end < durations->end_count && durations->ends[end] < open->ts_ns) end++;
            int64_t end_ns = end < durations->end_count ? durations->ends[end++] : INT64_MAX;
            if (open->kept == KEPT_PART) note_duration(cut, thread, open, end_ns);
        }
    }
    free_durations(cut);
    if (cut->open_state_count > 0)
        qsort(cut->open_states, cut->open_state_count, sizeof *cut->open_states, compare_open_states);
    uint32_t inner = 0;
    for (uint32_t i = 0; i < cut->open_state_count; i++) {
        inner = i > 0 && cut->open_states[i].thread == cut->open_states[i - 1].thread ? inner + 1 : 0;
        const struct open_state *state = &cut->open_states[i];
        uint32_t before = inner > 0 || state->complete ? inner + 1 : 0;
        map_set(&cut->states_open, state->offset, before);
        if (state->blocked) map_set(&cut->blocked_open, state->thread, before);
    }
}

/* --- last reading ------------------------------------------------------------------------------------ */

static void
decide(struct cut *cut, bool keep)
{
    cut->decision = keep ? KEEP : LEAVE_OUT;
    cut->kept += keep;
    cut->outside += !keep;
}

/* Decides to move the record's time, or its two times, to the borders. */
static void
decide_part(struct cut *cut, const struct fxt_event *event, bool complete)
{
    int64_t end_ns = complete ? event->end_ns : event->ts_ns;
    decide(cut, true);
    cut->decision = KEEP_PART;
    cut->part = (struct part){.ts_ns = event->ts_ns, .end_ns = end_ns, .from_ns = event->ts_ns, .to_ns = end_ns};
    if (cut->part.to_ns > cut->to_ns) cut->part.to_ns = cut->to_ns;
    if (cut->part.from_ns > cut->to_ns) cut->part.from_ns = cut->to_ns;
}

static void
begin_at_border(struct cut *cut, const struct fxt_event *event)
{
    int64_t from_ns = cut->from_ns - map_get(&cut->states_open, event->offset);
    if (from_ns > cut->part.from_ns) cut->part.from_ns = from_ns;
}

static void
cut_end(struct cut *cut, struct open_durations *durations, const struct fxt_event *event)
{
    if (durations->depth == 0) { /* an end without a begin stays one */
        decide(cut, inside(cut, event->ts_ns));
        return;
    }
    enum kept kept = durations->open[--durations->depth].kept;
    bool beyond = kept != KEPT_NOT && event->ts_ns > cut->to_ns;
    if (beyond) decide_part(cut, event, false);
    else decide(cut, kept != KEPT_NOT);
    cut->parts += beyond && kept == KEPT_WHOLE;
    cut->begun_before += kept == KEPT_NOT && inside(cut, event->ts_ns);
}

static void
cut_duration_edge(struct cut *cut, const struct fxt_event *event)
{
    struct open_durations *durations = durations_of(cut, thread_key(event->process, event->tid));
    if (event->type == FXT_EVENT_DURATION_END) {
        cut_end(cut, durations, event);
        return;
    }
    bool before = map_get(&cut->states_open, event->offset) != MAP_NONE;
    enum kept kept = before ? KEPT_PART : inside(cut, event->ts_ns) ? KEPT_WHOLE : KEPT_NOT;
    open_duration(durations, event, kept);
    if (!before) {
        decide(cut, kept == KEPT_WHOLE);
        return;
    }
    cut->parts++;
    decide_part(cut, event, false);
    begin_at_border(cut, event);
    cut->part.began = true;
}

static void
cut_async(struct cut *cut, const struct fxt_event *event)
{
    struct open_durations *durations = durations_of(cut, async_key(reader_pool(cut->reader), event));
    bool keep = inside(cut, event->ts_ns);
    if (event->type == FXT_EVENT_ASYNC_END && durations->depth > 0) {
        cut_end(cut, durations, event);
        return;
    }
    if (event->type == FXT_EVENT_ASYNC_BEGIN) open_duration(durations, event, keep ? KEPT_WHOLE : KEPT_NOT);
    decide(cut, keep);
}

/* Keeps the part of a duration in one record that lies in the range, if it begins there or is a state. What a
 * call left out is not known of a part. */
static void
cut_complete(struct cut *cut, const struct fxt_event *event)
{
    bool before = event->ts_ns < cut->from_ns, after = event->end_ns > cut->to_ns;
    bool in_range = before && state_p(event) ? event->end_ns > cut->from_ns : inside(cut, event->ts_ns);
    if (!in_range || (!before && !after)) {
        decide(cut, in_range);
        return;
    }
    cut->parts++;
    decide_part(cut, event, true);
    cut->part.bare = event->category.id == STRING_CALL;
    bool began = fxt_event_arg(event, STRING_BEGAN) != NULL, ended = fxt_event_arg(event, STRING_ENDED) != NULL;
    cut->part.began = cut->part.bare ? before || began : before && !began;
    cut->part.ended = cut->part.bare ? after || ended : after && !ended;
    if (before) begin_at_border(cut, event);
}

/* A flow that begins in the range is kept as far as the range goes. */
static bool
keep_flow(const struct cut *cut, const struct fxt_event *event)
{
    uint32_t index = map_get(&cut->flows, flow_key(event->process, event->id));
    return inside(cut, event->ts_ns) && (index == MAP_NONE || inside(cut, cut->flow_begins[index]));
}

/* Settings are needed whenever they were written; those from before the range get its first
 * time. Settings of a process that began after the range are not needed. */
static void
cut_settings(struct cut *cut, const struct fxt_event *event)
{
    decide(cut, event->ts_ns < cut->to_ns);
    if (cut->decision != KEEP) return;
    cut->decision = KEEP_SETTINGS;
    cut->settings_ns = event->ts_ns;
    make_room(cut->recorders, cut->recorder_count, cut->recorder_capacity);
    cut->recorders[cut->recorder_count++] = (struct recorder){event->provider, event->pid, event->tid};
}

/* What the beginning of a trace has more of. */
static bool
follows_settings_p(const struct fxt_event *event)
{
    return event->name.id == STRING_JIT || event->name.id == STRING_MORE_SETTINGS;
}

static void
cut_event(void *context, const struct fxt_event *event)
{
    struct cut *cut = context;
    bool of_trace = event->category.id == STRING_TRACE && event->type == FXT_EVENT_INSTANT;
    if (of_trace && event->name.id == STRING_SETTINGS) {
        cut_settings(cut, event);
    }
    else if (event->ts_ns < cut->from_ns && (origin_event_p(event) || (of_trace && follows_settings_p(event)))) {
        decide(cut, true);
        if (cut->decision == KEEP) cut->decision = KEEP_ORIGIN;
        cut->unix_ns = event_uint(event, STRING_UNIX_NS, 0);
    }
    else if (of_trace && cut->recorder_count > 0 &&
             (event->name.id == STRING_SITE || event->name.id == STRING_COUNTER || event->name.id == STRING_STATES ||
              event->name.id == STRING_INTERPRETED || event->name.id == STRING_CALLS ||
              event->name.id == STRING_COUNTS || event->name.id == STRING_SUMMARY)) {
        cut->totals++;
        decide(cut, false);
    }
    else {
        switch (event->type) {
          case FXT_EVENT_DURATION_COMPLETE: cut_complete(cut, event); break;
          case FXT_EVENT_DURATION_BEGIN:
          case FXT_EVENT_DURATION_END: cut_duration_edge(cut, event); break;
          case FXT_EVENT_ASYNC_BEGIN:
          case FXT_EVENT_ASYNC_INSTANT:
          case FXT_EVENT_ASYNC_END: cut_async(cut, event); break;
          case FXT_EVENT_FLOW_BEGIN:
          case FXT_EVENT_FLOW_STEP:
          case FXT_EVENT_FLOW_END: decide(cut, keep_flow(cut, event)); break;
          default: decide(cut, inside(cut, event->ts_ns));
        }
    }
}

static void
cut_sched(void *context, const struct fxt_sched *sched)
{
    decide(context, inside(context, sched->ts_ns));
}

/* Writes the packets of a blob that are in the range, and those without a time: they define what
 * others refer to. The name of a blob means nothing. */
static void
cut_blob(void *context, const struct fxt_blob *blob)
{
    struct cut *cut = context;
    static uint64_t words[FXT_RECORD_MAX_WORDS];
    uint8_t *to = (uint8_t *)(words + 1);
    size_t used = 0;
    struct proto bytes = proto_of(blob->bytes, blob->len);
    for (const uint8_t *at = bytes.at; at < blob->bytes + blob->len; at = bytes.at) {
        struct proto_field field;
        if (!proto_next(&bytes, &field)) break;
        int64_t ts_ns = packet_time(field.message);
        bool keep = ts_ns < 0 || inside(cut, ts_ns);
        if (!keep) continue;
        memcpy(to + used, at, (size_t)(bytes.at - at));
        used += (size_t)(bytes.at - at);
    }
    cut->decision = LEAVE_OUT;
    if (used == 0) return;
    size_t payload_words = fxt_words(used);
    memset(to + used, 0, payload_words * FXT_WORD_BYTES - used);
    words[0] = fxt_blob_header(used);
    struct fxt_record record = {.type = FXT_RECORD_BLOB, .header = words[0], .bytes = (const uint8_t *)words,
                                .words = 1 + payload_words, .provider = blob->provider};
    record_copy_write(cut->copy, &record);
}

/* Each chunk repeats the names; one copy is enough. */
static void
cut_object(void *context, const struct fxt_object *object)
{
    struct cut *cut = context;
    uint64_t key = hash_mix(object->raw_pid ^ hash_mix(object->raw_tid + object->type));
    key = hash_mix(key ^ ((uint64_t)object->recording << 32 | pool_id(reader_pool(cut->reader), object->name)));
    cut->decision = map_get(&cut->objects, key) == MAP_NONE ? KEEP : LEAVE_OUT;
    map_set(&cut->objects, key, 1);
}

/* CRuby's tracer ticks in nanoseconds. With another clock, these are settings of another
 * program. */
static void
keep_settings(struct cut *cut, const struct fxt_record *record)
{
    static uint64_t words[FXT_RECORD_MAX_WORDS]; /* the second word is the time */
    struct fxt_record kept = *record;
    memcpy(words, record->bytes, record->words * FXT_WORD_BYTES);
    if (words[1] != (uint64_t)cut->settings_ns) cut->recorder_count--;
    else if (cut->settings_ns < cut->from_ns) words[1] = (uint64_t)cut->from_ns;
    kept.bytes = (const uint8_t *)words;
    record_copy_write(cut->copy, &kept);
}

/* Moves an event `host` to the range's first time, with the time of day that it has, and an event `jit`. */
static void
keep_origin(struct cut *cut, const struct fxt_record *record)
{
    static uint64_t words[FXT_RECORD_MAX_WORDS];
    struct fxt_record kept = *record;
    memcpy(words, record->bytes, record->words * FXT_WORD_BYTES);
    uint64_t later_ns = (uint64_t)cut->from_ns - words[1];
    words[1] += later_ns;
    for (size_t at = 2; at < record->words; at++) {
        if (cut->unix_ns != 0 && words[at] == cut->unix_ns) words[at] += later_ns;
    }
    kept.bytes = (const uint8_t *)words;
    record_copy_write(cut->copy, &kept);
}

static uint64_t
short_text(const char *text)
{
    uint64_t word = 0;
    memcpy(&word, text, strlen(text)); /* at most 8 bytes */
    return word;
}

static unsigned
inline_ref(const char *text)
{
    return FXT_STRING_REF_INLINE | (unsigned)strlen(text);
}

/* Adds an argument with a name of up to 8 bytes and a text of up to 16. Returns the end. */
static uint64_t *
add_text(uint64_t *at, const char *name, const char *text)
{
    enum { WORDS = 4 };
    uint64_t value[2] = {0};
    memcpy(value, text, strlen(text));
    at[0] = fxt_argument_header(FXT_ARG_STRING, WORDS, inline_ref(name)) |
            fxt_field(inline_ref(text), FXT_ARG_VALUE_STRING);
    at[1] = short_text(name);
    at[2] = value[0];
    at[3] = value[1];
    return at + WORDS;
}

static size_t
inline_words(uint64_t ref)
{
    return ref & FXT_STRING_REF_INLINE ? fxt_words(ref & FXT_STRING_REF_BYTES) : 0;
}

/* Writes the kept part of a duration, with marks where it is cut, if there is room for more arguments. A trace
 * with another clock than CRuby's tracer has the record as it is. */
static void
keep_part(struct cut *cut, const struct fxt_record *record)
{
    enum { MARK_WORDS = 8 };
    static uint64_t words[FXT_RECORD_MAX_WORDS + MARK_WORDS];
    const struct part *part = &cut->part;
    struct fxt_record kept = *record;
    uint64_t header = record->header, args = fxt_bits(header, FXT_EVENT_ARGS);
    bool complete = fxt_bits(header, FXT_EVENT_TYPE) == FXT_EVENT_DURATION_COMPLETE;
    memcpy(words, record->bytes, record->words * FXT_WORD_BYTES);
    kept.bytes = (const uint8_t *)words;
    bool same_clock = words[1] == (uint64_t)part->ts_ns &&
                      (!complete || words[record->words - 1] == (uint64_t)part->end_ns);
    if (same_clock) {
        /* Ids follow, unless it has the index of a thread. */
        size_t head = 2 + (fxt_bits(header, FXT_EVENT_THREAD) == 0 ? 2 : 0);
        head += inline_words(fxt_bits(header, FXT_EVENT_CATEGORY)) + inline_words(fxt_bits(header, FXT_EVENT_NAME));
        if (part->bare) args = 0;
        uint64_t *at = words + (part->bare ? head : record->words - complete);
        bool room = at - words < FXT_RECORD_MAX_WORDS - MARK_WORDS - 1 && args + 2 <= FXT_ARGS_MAX;
        words[1] = (uint64_t)part->from_ns;
        if (part->began && room) at = add_text(at, "began", "before the trace");
        if (part->ended && room) at = add_text(at, "ended", "after the trace");
        if (room) args += (uint64_t)(part->began + part->ended);
        if (complete) *at++ = (uint64_t)part->to_ns;
        kept.words = complete || room ? (size_t)(at - words) : record->words;
        words[0] = fxt_with_field(fxt_with_field(header, kept.words, FXT_HEADER_SIZE), args, FXT_EVENT_ARGS);
        kept.header = words[0];
    }
    record_copy_write(cut->copy, &kept);
}

/* Writes what the provider's threads did when the range began, as context switches. */
static void
write_states(struct cut *cut, uint32_t provider)
{
    enum { WORDS = 6 };
    if (map_get(&cut->states_written, provider) != MAP_NONE) return;
    map_set(&cut->states_written, provider, 1);
    for (uint32_t i = 0; i < cut->changes.count; i++) {
        const struct thread_change *state = row_table_at(&cut->changes, i);
        if (state->provider != provider || state->change == SCHED_ENDS) continue;
        bool runs = state->change == SCHED_RUNS;
        uint32_t before = runs ? MAP_NONE : map_get(&cut->blocked_open, thread_key(state->process, state->tid));
        uint64_t out_state = runs ? 0 : state->change == SCHED_BLOCKS ? FXT_THREAD_BLOCKED : FXT_THREAD_RUNNABLE;
        uint64_t words[WORDS] = {fxt_header(FXT_RECORD_SCHEDULING, WORDS) |
                                     fxt_field(state->cpu & 0xff, FXT_SCHED_LEGACY_CPU) |
                                     fxt_field(out_state, FXT_SCHED_LEGACY_OUT_STATE),
                                 (uint64_t)cut->from_ns - (before == MAP_NONE ? 0 : before)};
        words[runs ? 4 : 2] = state->pid;
        words[runs ? 5 : 3] = state->tid;
        const struct fxt_record record = {.type = FXT_RECORD_SCHEDULING, .header = words[0],
                                          .bytes = (const uint8_t *)words, .words = WORDS, .provider = provider};
        record_copy_write(cut->copy, &record);
    }
}

/* Writes the event trace/cut (doc/internals/events.md) at the end of the range, for each process whose
 * settings were kept. */
static void
write_marks(struct cut *cut)
{
    const uint64_t args[][2] = {
        {short_text("since_ns"), (uint64_t)since_ns},
        {short_text("until_ns"), (uint64_t)(until_ns == INT64_MAX ? cut->last_ns - cut->first_ns + 1 : until_ns)},
        {short_text("left_out"), cut->outside + cut->damaged},
    };
    enum { ARGS = sizeof args / sizeof *args, ARG_WORDS = 3 };
    for (uint32_t i = 0; i < cut->recorder_count; i++) {
        const struct recorder *recorder = &cut->recorders[i];
        uint64_t words[INLINE_EVENT_WORDS + ARGS * ARG_WORDS];
        const struct inline_event event = {
            .type = FXT_EVENT_INSTANT, .ticks = (uint64_t)(cut->to_ns < cut->last_ns ? cut->to_ns : cut->last_ns),
            .pid = recorder->pid, .tid = recorder->tid, .category = text_of("trace"), .name = text_of("cut")};
        uint64_t *at = inline_event_begin(words, &event);
        for (size_t arg = 0; arg < ARGS; arg++, at += ARG_WORDS) {
            at[0] = fxt_argument_header(FXT_ARG_UINT64, ARG_WORDS, FXT_STRING_REF_INLINE | 8);
            at[1] = args[arg][0];
            at[2] = args[arg][1];
        }
        struct fxt_record record = inline_event_end(words, at, ARGS, recorder->provider);
        record_copy_write(cut->copy, &record);
    }
}

static void
cut_record(void *context, const struct fxt_record *record)
{
    struct cut *cut = context;
    enum decision decision = cut->decision;
    cut->decision = UNREAD;
    if (record_is_definition(record)) {
        record_copy_define(cut->copy, record);
        return;
    }
    switch (record->type) {
      case FXT_RECORD_EVENT:
      case FXT_RECORD_SCHEDULING:
        if (decision == UNREAD) cut->damaged++;
        if (decision == KEEP_SETTINGS) keep_settings(cut, record);
        if (decision == KEEP_ORIGIN) keep_origin(cut, record);
        if (decision == KEEP_PART) keep_part(cut, record);
        if (decision == KEEP) record_copy_write(cut->copy, record);
        if (decision != UNREAD) write_states(cut, record->provider); /* behind the settings, which come first */
        return;
      case FXT_RECORD_KERNEL_OBJECT:
      case FXT_RECORD_BLOB: /* was written in its kept parts */
        if (decision == LEAVE_OUT) return;
        break;
      default:
        break; /* its time, if any, is unknown */
    }
    record_copy_write(cut->copy, record);
}

/* --- the command ---------------------------------------------------------------------------------- */

static double
seconds(int64_t ns)
{
    return (double)ns / (double)NS_PER_SECOND;
}

static void
print_cut_summary(const struct cut *cut, const char *file)
{
    fputs("vm-trace: ", stderr);
    print_file_name(stderr, file);
    fprintf(stderr, ": kept %" PRIu64 " of %" PRIu64 " events", cut->kept, cut->kept + cut->outside + cut->damaged);
    if (cut->kept == 0) fprintf(stderr, ": the trace lasts %.6f s", seconds(cut->last_ns - cut->first_ns));
    if (cut->begun_before > 0)
        fprintf(stderr, "; %" PRIu64 " duration%s that began earlier left out", cut->begun_before,
                cut->begun_before == 1 ? "" : "s");
    if (cut->parts > 0)
        fprintf(stderr, "; parts of %" PRIu64 " duration%s that were open at a border", cut->parts,
                cut->parts == 1 ? "" : "s");
    if (cut->totals > 0) fputs("; site counts and summary left out: they cover the whole run", stderr);
    if (cut->damaged > 0) fprintf(stderr, "; %" PRIu64 " damaged events left out", cut->damaged);
    fputs("\n", stderr);
}

/* Standard input can be read only once, so copies it to a file without a name. Returns its
 * descriptor, or -1. */
static int
copy_of_stdin(void)
{
    FILE *copy = tmpfile();
    char buffer[65536];
    ssize_t got = copy == NULL ? -1 : 1;
    while (got > 0) {
        got = read(STDIN_FILENO, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) got = 1;
        else if (got > 0 && fwrite(buffer, 1, (size_t)got, copy) != (size_t)got) got = -1;
    }
    int fd = got < 0 || fflush(copy) != 0 ? -1 : dup(fileno(copy));
    char text[200];
    snprintf(text, sizeof text, "cannot be copied to a temporary file (cut reads its input more than once): %s",
             strerror(errno));
    if (fd < 0) file_message("-", text);
    if (copy != NULL) fclose(copy);
    return fd;
}

static enum status
cut_file(const struct options *options, FILE *out, const char *file)
{
    char path[64];
    int copy = -1;
    if (strcmp(file, "-") == 0) {
        copy = copy_of_stdin();
        if (copy < 0) return STATUS_CANNOT_READ;
        snprintf(path, sizeof path, "/dev/fd/%d", copy);
    }
    const char *to_read = copy < 0 ? file : path;
    struct cut cut = {
        .reader = reader_new(options->memory_bytes), .copy = record_copy_new(out, true), .first_ns = INT64_MAX};
    row_table_init(&cut.durations, sizeof(struct open_durations), 2, UINT32_MAX);
    row_table_init(&cut.changes, sizeof(struct thread_change), 2, UINT32_MAX);
    struct fxt_visitor note = {.context = &cut, .event = note_event, .sched = note_sched, .blob = note_blob};
    struct fault_report faults = fault_report_new(file, options->max_faults);
    enum status status = STATUS_CANNOT_READ;
    if (read_file(cut.reader, to_read, &note, &faults)) {
        status = fault_report_finish(&faults);
        if (cut.first_ns > cut.last_ns) cut.first_ns = cut.last_ns = 0;
        if (__builtin_add_overflow(cut.first_ns, since_ns, &cut.from_ns)) cut.from_ns = INT64_MAX;
        if (__builtin_add_overflow(cut.first_ns, until_ns, &cut.to_ns)) cut.to_ns = INT64_MAX;
        struct fxt_visitor find = {.context = &cut, .event = find_open_states, .sched = find_changes,
                                   .object = find_processes, .record = find_record};
        if (since_ns > 0) reader_read_again(cut.reader, to_read, &find);
        find_end(&cut);
        struct fxt_visitor visitor = {
            .context = &cut, .event = cut_event, .sched = cut_sched, .object = cut_object, .blob = cut_blob,
            .record = cut_record};
        if (!choice_window_in("cut", NULL, since_ns, cut.last_ns - cut.first_ns)) status = STATUS_USAGE;
        else if (reader_read_again(cut.reader, to_read, &visitor) == 0) write_marks(&cut);
        else status = STATUS_CANNOT_READ;
    }
    if (status < STATUS_USAGE) print_cut_summary(&cut, file);

    free_durations(&cut);
    row_table_free(&cut.changes);
    free(cut.recorders);
    free(cut.open_states);
    map_free(&cut.states_open);
    map_free(&cut.blocked_open);
    map_free(&cut.states_written);
    sched_threads_free(&cut.sched_threads);
    map_free(&cut.objects);
    map_free(&cut.flows);
    free(cut.flow_begins);
    record_copy_free(cut.copy);
    reader_free(cut.reader);
    if (copy >= 0) close(copy);
    return status;
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    if (file_count > 1) {
        fputs("vm-trace: cut takes one file; merge joins several into one\n", stderr);
        return STATUS_USAGE;
    }
    if (!choice_window_any("cut", since_ns, until_ns)) return STATUS_USAGE;
    struct output output;
    if (!output_open(&output, OUTPUT_BINARY, out_path, file_count, files)) return STATUS_CANNOT_READ;
    return output_close(&output, cut_file(options, output.file, files[0]));
}

static const struct cli_option cut_options[] = {
    CLI_OPTION("since", "TIME", "start of the range, from the start of the trace (default 0)", take_time,
               &since_ns),
    CLI_OPTION("until", "TIME", "end of the range, exclusive (default: the end of the trace)", take_time,
               &until_ns),
    OPTION_OUTPUT(out_path, "output file; - is standard output (default)"),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_cut = {
    .name = "cut",
    .purpose = "extract a time range from a trace",
    .folders = true,
    .arguments = "[--since=TIME] [--until=TIME] [-o OUT] FILE",
    .help =
        "Writes what happened from --since until just before --until: seconds from the first\n"
        "event, or a number with ms, us or ns. Settings, names and definitions are kept. What was\n"
        "open when the range began is left out, but for states: what threads and CPUs did, calls\n"
        "and system calls begin at the border. What is open when the range ends, ends there. Exact\n"
        "counts of sites and the summary are left out, since they cover the whole run. A line on\n"
        "standard error says how much was kept.\n"
        "OUT appears when it is complete; if its name ends in .gz or .zst, it is compressed.\n",
    .options = cut_options,
    .run = run,
};
