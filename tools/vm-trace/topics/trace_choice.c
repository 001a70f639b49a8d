/* trace_choice.c - see trace_choice.h */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topics/kernel/cpu_tracks.h"
#include "analysis/event_args.h"
#include "analysis/origin.h"
#include "analysis/own_frame.h"
#include "topics/exits/reason.h"
#include "topics/trace_choice.h"
#include "base/xalloc.h"
#include "fxt/event_keys.h"
#include "fxt/known_strings.h"

/* Durations of a thread. */
struct held_durations {
    uint32_t process, tid; /* the key */
    uint32_t open;         /* begins that were passed */
    uint32_t after;        /* begins of after the time */
    uint32_t before_count, before_capacity;
    struct fxt_event *before; /* begins of before the time, which may last into it */
};

/* A process with settings. */
struct cut_process {
    uint32_t process; /* the key */
    uint32_t provider, recording, pid, tid;
    int64_t last_ns;
};

/* --- times and threads ------------------------------------------------------------------------------- */

static int64_t
border(int64_t start_ns, int64_t ns)
{
    int64_t sum;
    if (ns == INT64_MIN || ns == INT64_MAX) return ns;
    return __builtin_add_overflow(start_ns, ns, &sum) ? INT64_MAX : sum;
}

static void
note_time(struct trace_filter *filter, int64_t ts_ns)
{
    if (!filter->begun || ts_ns > filter->last_ns) filter->last_ns = ts_ns;
    if (filter->begun) return;
    filter->begun = true;
    filter->first_ns = ts_ns;
    filter->from_ns = border(ts_ns, filter->choice.since_ns);
    filter->to_ns = border(ts_ns, filter->choice.until_ns);
}

static bool
inside(const struct trace_filter *filter, int64_t ts_ns)
{
    return ts_ns >= filter->from_ns && (ts_ns < filter->to_ns || filter->to_ns == INT64_MAX);
}

static int64_t
clamped(const struct trace_filter *filter, int64_t ts_ns)
{
    return ts_ns < filter->from_ns ? filter->from_ns : ts_ns > filter->to_ns ? filter->to_ns : ts_ns;
}

enum { NAMES_MAX = 64 * 1024 };
enum { ANY_PROCESS = UINT32_MAX }; /* of wake-ups, which name none */

/* Threads of two recordings in a merged file may have the same ids. */
static uint64_t
key_of(uint32_t recording, uint32_t pid, uint32_t tid)
{
    return hash_mix(thread_key(pid, tid)) ^ hash_mix((uint64_t)recording + 1);
}

static bool
name_fits(const struct trace_filter *filter, struct fxt_string name)
{
    const char *text = pool_string(reader_pool(filter->reader), pool_id(reader_pool(filter->reader), name)).ptr;
    return fnmatch(filter->choice.thread, text, 0) == 0;
}

static bool
thread_wanted(struct trace_filter *filter, uint32_t recording, uint32_t pid, uint32_t tid)
{
    if (filter->choice.thread == NULL) return true;
    bool wanted = (cpu_track_p(tid) ? cpu_track_native_tid(tid) : tid) == filter->tid ||
                  map_get(&filter->wanted_threads, key_of(recording, pid, tid)) == 1;
    filter->found |= wanted;
    return wanted;
}

/* A Ruby thread that shares native threads is named by its events. */
static bool
event_of_thread(struct trace_filter *filter, const struct fxt_event *event)
{
    if (thread_wanted(filter, event->recording, event->pid, event->tid)) return true;
    const struct fxt_arg *runs = fxt_event_arg(event, STRING_THREAD);
    bool named = runs != NULL && runs->type == FXT_ARG_STRING, wanted = named && name_fits(filter, runs->string);
    uint32_t name = named ? pool_id(reader_pool(filter->reader), runs->string) : STRING_NONE;
    if (name != STRING_NONE) row_table_get(&filter->names, &name);
    filter->found |= wanted;
    return wanted;
}

/* --- reasons and methods ------------------------------------------------------------------------------- */

bool
trace_filter_picks(struct trace_filter *filter, uint32_t reason, uint32_t label)
{
    const struct pool *pool = reader_pool(filter->reader);
    bool method = glob_matches(&filter->method, pool, label); /* both are asked: choice_check says what none matches */
    return glob_matches(&filter->reason, pool, reason) && method;
}

/* Likewise for a sum of the whole trace. */
static bool
sum_picked(struct trace_filter *filter, const struct fxt_event *event)
{
    struct pool *pool = reader_pool(filter->reader);
    switch (event->name.id) {
      case STRING_SITE:
        return filter->sums ||
               trace_filter_picks(filter, event_reason(pool, event), event_text(pool, event, STRING_LOCATION));
      case STRING_COUNTER:
        return filter->sums || trace_filter_picks(filter, event_text(pool, event, STRING_COUNTER),
                                                  event_text(pool, event, STRING_LOCATION));
      case STRING_INTERPRETED:
        return filter->choice.reason == NULL &&
               trace_filter_picks(filter, STRING_NONE, event_text(pool, event, STRING_ISEQ));
      default: return false; /* of a thread */
    }
}

/* Likewise for any event of a thread: what has neither a reason nor a method is left out. */
static bool
event_picked(struct trace_filter *filter, const struct fxt_event *event)
{
    struct pool *pool = reader_pool(filter->reader);
    bool app_only = filter->choice.app_only, with_reason = filter->choice.reason != NULL;
    if (!filter->picks) return true;
    switch (event->category.id) {
      case STRING_SIDE_EXIT:
      case STRING_RECOMPILE_EXIT:
      case STRING_FALLBACK:
        return event->type == FXT_EVENT_INSTANT &&
               trace_filter_picks(filter, event_reason(pool, event),
                                  app_only ? event_app_frame(&filter->owners, event)
                                           : event_text(pool, event, STRING_FRAME_0));
      case STRING_ALLOCATION:
        return !with_reason &&
               trace_filter_picks(filter, STRING_NONE,
                                  app_only ? event_app_frame(&filter->owners, event) : event_own_frame(pool, event));
      case STRING_CALL:
        return !with_reason && (trace_filter_picks(filter, STRING_NONE, pool_id(pool, event->name)) || filter->sums);
      default: return false;
    }
}

/* --- durations --------------------------------------------------------------------------------------- */

static void
pass_at(const struct trace_filter *filter, const struct fxt_event *event, int64_t ts_ns, int64_t end_ns)
{
    struct fxt_event moved = *event;
    moved.ts_ns = ts_ns;
    moved.end_ns = end_ns;
    if (filter->inner.event) filter->inner.event(filter->inner.context, &moved);
}

static struct held_durations *
durations_of(struct trace_filter *filter, const struct fxt_event *event)
{
    const uint32_t key[] = {event->process, event->tid};
    return row_table_get(&filter->durations, key);
}

static void
hold(const struct trace_filter *filter, struct held_durations *held, const struct fxt_event *event)
{
    struct pool *pool = reader_pool(filter->reader);
    make_room_within(reader_budget(filter->reader), held->before, held->before_count, held->before_capacity);
    struct fxt_event *kept = &held->before[held->before_count++];
    *kept = *event; /* but texts without an id live no longer than the record */
    kept->category = pool_string(pool, pool_id(pool, event->category));
    kept->name = pool_string(pool, pool_id(pool, event->name));
    for (unsigned i = 0; i < kept->arg_count; i++) {
        struct fxt_arg *arg = &kept->args[i];
        arg->name = pool_string(pool, pool_id(pool, arg->name));
        if (arg->type == FXT_ARG_STRING) arg->string = pool_string(pool, pool_id(pool, arg->string));
    }
}

/* Those that are open when the time begins. */
static void
pass_held(const struct trace_filter *filter, struct held_durations *held)
{
    for (uint32_t i = 0; i < held->before_count; i++)
        pass_at(filter, &held->before[i], filter->from_ns, filter->from_ns);
    held->open += held->before_count;
    held->before_count = 0;
}

static void
filter_begin(struct trace_filter *filter, struct held_durations *held, const struct fxt_event *event)
{
    if (event->ts_ns < filter->from_ns) {
        hold(filter, held, event);
        return;
    }
    pass_held(filter, held);
    if (!inside(filter, event->ts_ns)) held->after++;
    else held->open++, pass_at(filter, event, event->ts_ns, event->ts_ns);
}

static void
filter_end(const struct trace_filter *filter, struct held_durations *held, const struct fxt_event *event)
{
    if (held->after > 0) {
        held->after--;
        return;
    }
    if (event->ts_ns <= filter->from_ns && held->before_count > 0) {
        held->before_count--;
        return;
    }
    pass_held(filter, held);
    if (held->open == 0 && !inside(filter, event->ts_ns)) return;
    if (held->open > 0) held->open--;
    pass_at(filter, event, clamped(filter, event->ts_ns), clamped(filter, event->ts_ns));
}

/* --- records ----------------------------------------------------------------------------------------- */

/* What is left out may be the last record of a process: its states go on up to there. */
static void
note_process(struct trace_filter *filter, const struct fxt_event *event)
{
    struct cut_process *process = row_table_find(&filter->recorders, &event->process);
    bool settings = event->category.id == STRING_TRACE && event->name.id == STRING_SETTINGS;
    if (process == NULL && settings) {
        process = row_table_get(&filter->recorders, &event->process);
        *process = (struct cut_process){event->process, event->provider, event->recording,
                                        event->pid, event->tid, event->ts_ns};
    }
    if (process != NULL && event->ts_ns > process->last_ns) process->last_ns = event->ts_ns;
}

static void
pass_cut(const struct trace_filter *filter, const struct cut_process *process)
{
    if (process->last_ns < filter->from_ns) return;
    const struct pool *pool = reader_pool(filter->reader);
    const struct fxt_event cut = {
        .type = FXT_EVENT_INSTANT, .provider = process->provider, .recording = process->recording,
        .process = process->process, .pid = process->pid, .tid = process->tid,
        .category = pool_string(pool, STRING_TRACE), .name = pool_string(pool, STRING_CUT)};
    pass_at(filter, &cut, clamped(filter, process->last_ns), 0);
}

/* Events about the trace. */
static void
filter_trace(struct trace_filter *filter, const struct fxt_event *event)
{
    switch (event->name.id) {
      case STRING_SETTINGS:
      case STRING_MORE_SETTINGS:
      case STRING_HOST:
      case STRING_JIT:
        if (event->ts_ns < filter->to_ns || filter->to_ns == INT64_MAX)
            pass_at(filter, event, clamped(filter, event->ts_ns), 0);
        return;
      case STRING_SITE:
      case STRING_COUNTER:
      case STRING_STATES:
      case STRING_INTERPRETED:
        if (filter->picks && !sum_picked(filter, event)) return;
        /* fall through */
      case STRING_CALLS:
      case STRING_COUNTS:
      case STRING_SUMMARY:
        if (!filter->cuts) pass_at(filter, event, event->ts_ns, 0); /* of the whole trace */
        return;
      default:
        if (inside(filter, event->ts_ns)) pass_at(filter, event, event->ts_ns, 0);
    }
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct trace_filter *filter = context;
    note_time(filter, event->ts_ns);
    if (event->type == FXT_EVENT_DURATION_COMPLETE) note_time(filter, event->end_ns);
    note_process(filter, event);
    if (event->category.id == STRING_TRACE && event->type == FXT_EVENT_INSTANT) {
        filter_trace(filter, event);
        return;
    }
    if (!event_of_thread(filter, event) || !event_picked(filter, event)) return;
    switch (event->type) {
      case FXT_EVENT_DURATION_BEGIN: filter_begin(filter, durations_of(filter, event), event); return;
      case FXT_EVENT_DURATION_END: filter_end(filter, durations_of(filter, event), event); return;
      case FXT_EVENT_DURATION_COMPLETE:
        if (inside(filter, event->ts_ns) || (event->ts_ns < filter->from_ns && event->end_ns > filter->from_ns))
            pass_at(filter, event, clamped(filter, event->ts_ns), clamped(filter, event->end_ns));
        return;
      default:
        if (inside(filter, event->ts_ns)) pass_at(filter, event, event->ts_ns, event->end_ns);
    }
}

/* Of a switch between two threads one may be wanted. */
static void
on_sched(void *context, const struct fxt_sched *sched)
{
    struct trace_filter *filter = context;
    note_time(filter, sched->ts_ns);
    if (filter->picks) return;
    struct fxt_sched moved = *sched;
    moved.ts_ns = clamped(filter, sched->ts_ns);
    if (sched->type == FXT_SCHED_LEGACY_SWITCH) {
        if (!thread_wanted(filter, sched->recording, sched->out_pid, (uint32_t)sched->out_tid)) moved.out_tid = 0;
        if (!thread_wanted(filter, sched->recording, sched->in_pid, (uint32_t)sched->in_tid)) moved.in_tid = 0;
        if (moved.out_tid == 0 && moved.in_tid == 0) return;
    }
    else if (!thread_wanted(filter, sched->recording, ANY_PROCESS, (uint32_t)sched->out_tid)) return;
    if (filter->inner.sched) filter->inner.sched(filter->inner.context, &moved);
}

static void
on_object(void *context, const struct fxt_object *object)
{
    struct trace_filter *filter = context;
    if (object->type == FXT_OBJECT_THREAD && filter->choice.thread != NULL) {
        struct fxt_string name = cpu_track_p(object->tid) ? cpu_track_thread_name(object->name) : object->name;
        bool fits = name_fits(filter, name);
        uint32_t id = pool_id(reader_pool(filter->reader), name);
        filter->found |= fits;
        if (native_tid_p(object->tid) && id != STRING_NONE) row_table_get(&filter->names, &id);
        map_set(&filter->wanted_threads, key_of(object->recording, object->pid, object->tid), fits);
        map_set(&filter->wanted_threads, key_of(object->recording, ANY_PROCESS, object->tid), fits);
    }
    if (filter->inner.object) filter->inner.object(filter->inner.context, object);
}

static void
on_blob(void *context, const struct fxt_blob *blob)
{
    struct trace_filter *filter = context;
    if (filter->inner.blob) filter->inner.blob(filter->inner.context, blob); /* its samples: trace_filter_samples */
}

static void
on_chunk(void *context, uint32_t provider, struct fxt_string name, uint64_t offset)
{
    struct trace_filter *filter = context;
    if (filter->inner.chunk) filter->inner.chunk(filter->inner.context, provider, name, offset);
}

bool
trace_filter_sample(struct trace_filter *filter, const struct time_sample *sample)
{
    if (!filter->cuts && !filter->picks) return true;
    note_time(filter, sample->ts_ns);
    return !filter->picks && inside(filter, sample->ts_ns) &&
           thread_wanted(filter, sample->recording, sample->pid, sample->tid);
}

static bool
passes(void *context, const struct time_sample *sample)
{
    return trace_filter_sample(context, sample);
}

void
trace_filter_samples(struct trace_filter *filter, struct time_samples *samples)
{
    samples->filter = filter;
    samples->passes = passes;
}

static bool
picks(void *context, uint32_t reason, uint32_t label)
{
    return trace_filter_picks(context, reason, label);
}

void
trace_filter_profile(struct trace_filter *filter, struct profile *profile)
{
    if (!filter->picks) return;
    filter->sums = true;
    profile->picks = picks;
    profile->picks_context = filter;
}

/* --- all --------------------------------------------------------------------------------------------- */

void
trace_filter_name(const struct trace_choice *choice, struct reader *reader)
{
    char *text = choice_text(choice);
    reader_choose(reader, text != NULL ? xformat("only %s", text) : NULL);
    free(text);
}

void
trace_filter_init(struct trace_filter *filter, const struct trace_choice *choice, struct reader *reader)
{
    const char *thread = choice->thread != NULL ? choice->thread : "";
    bool is_tid = thread[0] != '\0' && thread[strspn(thread, "0123456789")] == '\0';
    trace_filter_name(choice, reader);
    *filter = (struct trace_filter){
        .choice = *choice, .cuts = choice_cuts(choice), .picks = choice_picks(choice), .reader = reader,
        .from_ns = choice->since_ns, .to_ns = choice->until_ns,
        .tid = is_tid ? strtoull(thread, NULL, 10) : UINT64_MAX,
        .reason = {.pattern = choice->reason, .matches = reason_matches},
        .method = {.pattern = choice->method, .matches = label_matches}};
    frame_owners_init(&filter->owners, reader_pool(reader));
    row_table_init(&filter->durations, sizeof(struct held_durations), 2, UINT32_MAX);
    row_table_init(&filter->recorders, sizeof(struct cut_process), 1, UINT32_MAX);
    row_table_init(&filter->names, sizeof(uint32_t), 1, NAMES_MAX);
}

void
trace_filter_restart(struct trace_filter *filter)
{
    filter->begun = false;
    filter->first_ns = filter->last_ns = 0;
}

enum status
trace_filter_status(const struct trace_filter *filter, const char *command)
{
    if (!filter->begun) return STATUS_FINE;
    const struct choice_seen seen = {
        .pool = reader_pool(filter->reader), .length_ns = trace_filter_length_ns(filter), .thread = filter->found,
        .threads = filter->names.rows, .thread_count = filter->names.count,
        .reason = &filter->reason, .method = &filter->method};
    return choice_check(command, &filter->choice, &seen);
}

int64_t
trace_filter_length_ns(const struct trace_filter *filter)
{
    return filter->last_ns - filter->first_ns;
}

/* What was held of a file. */
static void
free_held(struct trace_filter *filter)
{
    for (uint32_t i = 0; i < filter->durations.count; i++) {
        struct held_durations *held = row_table_at(&filter->durations, i);
        free(held->before);
    }
    row_table_free(&filter->durations);
    row_table_free(&filter->recorders);
    map_free(&filter->wanted_threads);
}

void
trace_filter_free(struct trace_filter *filter)
{
    free_held(filter);
    row_table_free(&filter->names);
    frame_owners_free(&filter->owners);
    glob_free(&filter->reason);
    glob_free(&filter->method);
}

struct fxt_visitor
trace_filter_visitor(struct trace_filter *filter, const struct fxt_visitor *inner)
{
    if (!filter->cuts && !filter->picks) return *inner;
    filter->inner = *inner;
    return (struct fxt_visitor){.context = filter, .event = on_event, .object = on_object, .sched = on_sched,
                                .blob = on_blob, .chunk = on_chunk};
}

static void
on_file_begin(void *context, const char *path)
{
    struct trace_filter *filter = context;
    if (filter->bounds.begin != NULL) filter->bounds.begin(filter->inner.context, path);
}

static void
on_file_end(void *context)
{
    struct trace_filter *filter = context;
    trace_filter_file_end(filter);
    if (filter->bounds.end != NULL) filter->bounds.end(filter->inner.context);
}

struct file_bounds
trace_filter_bounds(struct trace_filter *filter, const struct file_bounds *inner)
{
    filter->bounds = *inner;
    return filter->cuts || filter->picks ? (struct file_bounds){on_file_begin, on_file_end} : *inner;
}

void
trace_filter_file_end(struct trace_filter *filter)
{
    for (uint32_t i = 0; i < filter->durations.count; i++) pass_held(filter, row_table_at(&filter->durations, i));
    for (uint32_t i = 0; i < filter->recorders.count && filter->cuts; i++)
        pass_cut(filter, row_table_at(&filter->recorders, i));
    free_held(filter);
}
