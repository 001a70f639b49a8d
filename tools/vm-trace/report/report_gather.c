/* report_gather.c - reads traces for a report, and hands what is in them to the topics (topic.h). See report_data.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "analysis/label.h"
#include "analysis/origin.h"
#include "base/xalloc.h"
#include "fxt/read_files.h"
#include "topics/exits/reason.h"
#include "topics/report_data.h"
#include "topics/threads/blocked_stacks.h"

/* --- who takes what ---------------------------------------------------------------------------------- */

/* Calls a function of all topics that have it. */
#define EACH_TOPIC(function, ...) \
    for (unsigned topic_number = 0; topic_number < topics_count; topic_number++) { \
        if (topics[topic_number]->function != NULL) topics[topic_number]->function(__VA_ARGS__); \
    }

/* Of a set of topics, all of which have the function. */
#define EACH_TAKER(takers, function, ...) \
    for (uint32_t left = (takers); left != 0; left &= left - 1) topics[__builtin_ctz(left)]->function(__VA_ARGS__)

/* Topics by what they take of a category, each set a bit for each. */
struct takers {
    uint32_t any, of_thread, wanted, pair, single;
};

/* Of known categories; the first is for all others. */
static struct takers takers[KNOWN_STRINGS_END];

static const struct takers *
takers_of(uint32_t category)
{
    return &takers[category < KNOWN_STRINGS_END ? category : KNOWN_STRINGS_BEGIN];
}

static void
find_takers(void)
{
    for (unsigned i = 0; i < topics_count; i++) {
        const struct topic *topic = topics[i];
        for (unsigned n = 0; n < TOPIC_CATEGORIES_MAX && topic->categories[n] != STRING_NONE; n++) {
            struct takers *events = &takers[topic->categories[n]];
            events->any |= (uint32_t)(topic->any != NULL) << i;
            events->of_thread |= (uint32_t)(topic->of_thread != NULL) << i;
            events->wanted |= (uint32_t)(topic->wanted != NULL) << i;
        }
        for (unsigned n = 0; n < TOPIC_CATEGORIES_MAX && topic->durations[n] != STRING_NONE; n++) {
            struct takers *durations = &takers[topic->durations[n]];
            durations->pair |= (uint32_t)(topic->pair != NULL) << i;
            durations->single |= (uint32_t)(topic->single != NULL) << i;
        }
    }
    for (unsigned i = 0; i < topics_count; i++) {
        for (uint32_t category = 0; topics[i]->others && category < KNOWN_STRINGS_END; category++) {
            if (takers[category].pair == 0) takers[category].pair = takers[category].single = 1u << i;
        }
    }
}

/* --- events of category trace --------------------------------------------------------------------- */

struct setting_adder {
    struct report *report;
    uint32_t process;
};

static void
add_setting(void *context, uint32_t name, uint32_t value)
{
    struct setting_adder *adder = context;
    struct report *report = adder->report;
    struct report_process *process = report_process(report, adder->process);
    if (process->setting_count == REPORT_SETTINGS_MAX) return;
    make_room(report->settings, report->setting_count, report->setting_capacity);
    report->settings[report->setting_count++] =
        (struct report_setting){.process = adder->process, .name = name, .value = value};
    if (process->last_setting == 0) process->first_setting = report->setting_count;
    else report->settings[process->last_setting - 1].next = report->setting_count;
    process->last_setting = report->setting_count;
    process->setting_count++;
}

static void
add_each_setting(struct report *report, const struct fxt_event *event, uint32_t number)
{
    struct setting_adder adder = {report, number};
    for (unsigned i = 0; i < event->arg_count; i++)
        add_setting(&adder, pool_id(report->pool, event->args[i].name), arg_text(report->pool, &event->args[i]));
}

static void
add_settings(struct report *report, const struct fxt_event *event, uint32_t number)
{
    struct report_process *process = report_process(report, number);
    uint64_t exit_rate = event_uint(event, STRING_EXIT_RATE, 1),
             fallback_rate = event_uint(event, STRING_FALLBACK_RATE, 1);
    if (exit_rate > 1 || fallback_rate > 1) process->sampled = true;
    if (fxt_event_arg(event, STRING_SNAPSHOT) != NULL) process->snapshot = true;
    if (event_older_behind(report->pool, event)) duration_pairs_keeps_newest(report->pairs, process->whole);
    process->code = event_code_settings(event);
    process->timed |= text_has_word(fxt_event_text(event, STRING_FLAGS), "states");
    shown_origin_settings(&process->origin, event);
    add_each_setting(report, event, number);
}

static void
add_title(struct report *report, const struct fxt_object *object)
{
    uint32_t title = pool_id(report->pool, object->name);
    if (title == STRING_RUBY || object->name.len == 0) return;
    uint32_t number = report_process_of(report, object->recording, object->pid);
    struct report_setting *setting = report_setting_of(report, number, report->title);
    struct setting_adder adder = {report, number};
    if (setting != NULL) setting->value = title;
    else add_setting(&adder, report->title, title);
}

static void
on_object(void *context, const struct fxt_object *object)
{
    struct report *report = context;
    if (object->type == FXT_OBJECT_PROCESS) {
        add_title(report, object);
        return;
    }
    uint32_t row = report_thread_of(report, object->recording, object->pid, object->tid);
    struct report_thread *thread = report_thread(report, row);
    thread->name = pool_id(report->pool, object->name);
    thread->wanted = -1;
    duration_pairs_object(report->pairs, object);
}

/* The program turned a JIT on after the settings were written. Again at the end of a trace. */
static void
add_jit(struct report *report, const struct fxt_event *event, uint32_t number)
{
    static const char since[] = "jit since";
    struct report_process *process = report_process(report, number);
    uint32_t jit = event_text(report->pool, event, STRING_JIT);
    event_code_jit(&process->code, event);
    struct report_setting *setting = report_setting_of(report, number, STRING_JIT);
    if (setting == NULL || setting->value == jit) return;
    char text[96];
    int len = snprintf(text, sizeof text, "%.6f s: the program turned it on",
                       (double)(event->ts_ns - process->first_ns) / 1e9);
    setting->value = jit;
    struct setting_adder adder = {report, number};
    add_setting(&adder, pool_intern(report->pool, since, sizeof since - 1),
                pool_intern(report->pool, text, (size_t)len));
}

static void
add_origin(struct report *report, const struct fxt_event *event, uint32_t number)
{
    struct report_process *process = report_process(report, number);
    trace_host_event(&process->host, report->pool, event);
    struct setting_adder adder = {report, number};
    shown_origin_host(&process->origin, report->pool, event, add_setting, &adder);
}

/* Counters of streams, of the whole trace, which are in the summary, or in the event `counts` before it. */
static void
add_counts(const struct report *report, struct report_process *process, const struct fxt_event *event)
{
    if (report->windowed) return;
    process->calls_replaced += event_uint(event, STRING_CALLS_REPLACED, 0);
    process->samples_unhandled += event_uint(event, STRING_SAMPLES_UNHANDLED, 0);
    process->suspensions += event_uint(event, STRING_SUSPENSIONS, 0);
    process->without_callers += event_uint(event, STRING_SUSPENSIONS_WITHOUT_CALLERS, 0);
}

static void
add_trace_event(struct report *report, const struct fxt_event *event, uint32_t number)
{
    struct report_process *process = report_process(report, number);
    switch (event->name.id) {
      case STRING_SETTINGS:
        process->shown = true;
        add_settings(report, event, number);
        return;
      case STRING_MORE_SETTINGS: add_each_setting(report, event, number); return;
      case STRING_JIT: add_jit(report, event, number); return;
      case STRING_HOST: add_origin(report, event, number); return;
      case STRING_CUT: process->cut = true; return;
      case STRING_LOSS: {
        const uint32_t key[2] = {number, event_text(report->pool, event, STRING_REASON)};
        uint64_t lost = event_uint(event, STRING_LOST, 0);
        struct report_loss *loss = row_table_get(&report->losses, key);
        if (loss != NULL) loss->events += lost;
        process->lost += lost;
        return;
      }
      case STRING_SUMMARY:
        process->shown = process->summarized = true;
        process->summary_lost = event_uint(event, STRING_LOST, 0);
        process->summary_sites = event_uint(event, STRING_SITES, UINT64_MAX);
        add_counts(report, process, event);
        return;
      case STRING_COUNTS: add_counts(report, process, event); return;
    }
}

/* --- durations and states ------------------------------------------------------------------------- */

static int64_t
process_last_ns(void *context, uint32_t whole)
{
    return report_process(context, report_piece(context, whole))->last_ns;
}

static int64_t
thread_seen_ns(void *context, uint32_t number)
{
    return report_thread(context, number)->seen_ns;
}

static void
on_pair(void *context, const struct duration_edge *begin, const struct duration_edge *end)
{
    struct report *report = context;
    if (begin == NULL) return;
    bool wanted = begin->wanted && report_time_wanted(report, begin->ts_ns);
    /* A thread may be blocked until the trace ends. */
    if (end == NULL && wanted && begin->category != STRING_BLOCKED) report->unended++;
    EACH_TAKER(takers_of(begin->category)->pair, pair, report, begin, end, wanted);
}

static void
on_piece(void *context, const struct thread_times *times, enum thread_state state, int64_t from_ns, int64_t to_ns,
         uint64_t gc_ns)
{
    const struct interval time = {from_ns, to_ns};
    (void)gc_ns;
    EACH_TOPIC(piece, context, times, state, time);
}

static bool
on_change(void *context, const struct fxt_sched *sched, const struct sched_change_of *change,
          struct duration_edge *edge)
{
    struct report *report = context;
    edge->row = report_moment(report, sched->recording, change->pid, change->tid, sched->ts_ns);
    edge->process = report_thread(report, edge->row)->process;
    if (report_thread_wanted(report, edge->row) && report_time_wanted(report, sched->ts_ns))
        report_counts_in(report, sched->ts_ns, sched->ts_ns);
    return !report->exits_only;
}

/* --- records ---------------------------------------------------------------------------------------- */

static void
on_chunk(void *context, uint32_t id, struct fxt_string name, uint64_t offset)
{
    struct report *report = context;
    const uint32_t key[3] = {report->file_count - 1, id, pool_id(report->pool, name)};
    struct report_provider *provider = row_table_get(&report->providers, key);
    duration_pairs_chunk(report->pairs, offset);
    if (provider != NULL) provider->chunks++;
}

static void
on_sched(void *context, const struct fxt_sched *sched)
{
    struct report *report = context;
    duration_pairs_sched(report->pairs, sched);
}

static void
on_blob(void *context, const struct fxt_blob *blob)
{
    EACH_TOPIC(blob, context, blob);
}

/* Whether the event is paired. A duration in one record is so where it also is a state of its
 * thread. */
static bool
is_edge(const struct fxt_event *event)
{
    bool state = event->category.id == STRING_GC || event->category.id == STRING_BLOCKED;
    return event->type == FXT_EVENT_DURATION_BEGIN || event->type == FXT_EVENT_DURATION_END ||
           (event->type == FXT_EVENT_DURATION_COMPLETE && state);
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct report *report = context;
    uint32_t category = event->category.id;
    const struct takers *taken = takers_of(category);
    bool complete = event->type == FXT_EVENT_DURATION_COMPLETE;
    const struct interval time = {event->ts_ns, complete ? event->end_ns : event->ts_ns};
    struct topic_event of = {.event = event};
    of.native = report_note(report, event->recording, event->pid, event->tid, time, fxt_event_seen_ns(event));
    of.whole = report_thread(report, of.native)->process;
    of.process = report_piece(report, of.whole);
    if (category == STRING_TRACE && event->type == FXT_EVENT_INSTANT) {
        add_trace_event(report, event, of.process);
        EACH_TOPIC(about_trace, report, &of);
    }
    report->has[category < KNOWN_STRINGS_END ? category : KNOWN_STRINGS_BEGIN] = true;
    EACH_TAKER(taken->any, any, report, &of);
    if (category == STRING_SCHED && complete) return; /* its track is that of no thread */
    uint32_t runs = event_text(report->pool, event, STRING_THREAD);
    of.thread = runs != STRING_NONE ? report_thread_running(report, of.whole, runs) : of.native;
    bool wanted = report_thread_wanted(report, of.native) || report_thread_wanted(report, of.thread);
    /* All threads: any may hold the GVL. It counts if it is wanted and begins in time. */
    if (is_edge(event) && !report->exits_only)
        duration_pairs_add(report->pairs, report->pool, event, of.whole, of.native, wanted);
    if (!wanted) return;
    EACH_TAKER(taken->of_thread, of_thread, report, &of);
    if (!report_time_wanted(report, event->ts_ns)) return;
    if (category == STRING_EXECUTION) return; /* only the long ones: their sums are in trace/states */

    report_thread(report, of.thread)->events++;
    report_counts_in(report, time.from_ns, time.to_ns);
    bool duration = complete && !is_edge(event) && category != STRING_CALL && category != STRING_SYSCALL &&
                    category != STRING_FIBER;
    if (duration && !report->exits_only) {
        const struct duration_edge edge = duration_edge_of(report->pool, event);
        EACH_TAKER(taken->single, single, report, &edge, (uint64_t)(event->end_ns - event->ts_ns));
    }
    EACH_TAKER(taken->wanted, wanted, report, &of);
}

/* --- all ----------------------------------------------------------------------------------------------- */

struct report *
report_new(size_t memory_bytes, const struct trace_choice *filter)
{
    struct report *report = xcalloc(1, sizeof *report);
    report->reader = reader_new(memory_bytes);
    report->pool = reader_pool(report->reader);
    report->title = pool_intern(report->pool, "title", 5);
    report->filter = *filter;
    report->reason_glob = (struct glob){.pattern = filter->reason, .matches = reason_matches};
    report->method_glob = (struct glob){.pattern = filter->method, .matches = label_matches};
    report->windowed = filter->since_ns != INT64_MIN || filter->until_ns != INT64_MAX;
    report->times_only = report->windowed || filter->thread != NULL || filter->app_only;
    frame_owners_init(&report->owners, report->pool);
    report->exits_only = filter->reason != NULL || filter->method != NULL;
    report->first_ns = INT64_MAX;
    report->last_ns = INT64_MIN;
    report->last_thread = REPORT_NO_THREAD;
    row_table_init(&report->processes, sizeof(struct report_process), REPORT_PROCESS_KEYS, REPORT_PROCESSES_MAX);
    row_table_init(&report->wholes, sizeof(struct report_whole), 2, REPORT_PROCESSES_MAX);
    row_table_init(&report->threads, sizeof(struct report_thread), 3, REPORT_THREADS_MAX);
    row_table_init(&report->losses, sizeof(struct report_loss), 2, REPORT_PROCESSES_MAX);
    row_table_init(&report->providers, sizeof(struct report_provider), 3, REPORT_PROCESSES_MAX);
    const struct thread_states_visitor visitor = {
        .context = report, .last_ns = process_last_ns, .seen_ns = thread_seen_ns, .piece = on_piece};
    thread_states_init(&report->states, &visitor);
    find_takers();
    EACH_TOPIC(init, report);
    return report;
}

struct report *
report_new_chosen(size_t memory_bytes, const struct trace_choice *choice)
{
    struct trace_choice without_time = *choice;
    without_time.since_ns = INT64_MIN, without_time.until_ns = INT64_MAX;
    struct report *report = report_new(memory_bytes, &without_time);
    trace_filter_init(&report->choice, choice, report->reader);
    trace_filter_samples(&report->choice, &report->samples.all);
    report->chooses = report->choice.cuts;
    report->choice.picks = false;
    return report;
}

void
report_free(struct report *report)
{
    trace_filter_free(&report->choice);
    frame_owners_free(&report->owners);
    EACH_TOPIC(free, report);
    thread_states_free(&report->states);
    row_table_free(&report->processes);
    row_table_free(&report->wholes);
    row_table_free(&report->losses);
    row_table_free(&report->providers);
    row_table_free(&report->threads);
    free(report->settings);
    free(report->files);
    glob_free(&report->reason_glob);
    glob_free(&report->method_glob);
    reader_free(report->reader);
    free(report);
}

static void
add_file_counts(struct fxt_counts *sum, const struct fxt_counts *counts)
{
    sum->bytes += counts->bytes;
    sum->records += counts->records;
    sum->events += counts->events;
    sum->chunks += counts->chunks;
    sum->padding_bytes += counts->padding_bytes;
}

static enum status
read_trace(struct report *report, const char *path, uint64_t max_faults)
{
    report->traces++;
    report->last_thread = REPORT_NO_THREAD;
    struct duration_pair_visitor pair_visitor = {.context = report, .pair = on_pair, .change = on_change};
    if (report->blocked_stacks != NULL) pair_visitor.stack = blocked_stack_of;
    report->pairs = duration_pairs_new(&pair_visitor, &report->states);
    struct fault_report faults = fault_report_new(path, max_faults);
    struct fxt_visitor visitor = {
        .context = report, .event = on_event, .object = on_object, .sched = on_sched, .blob = on_blob,
        .chunk = on_chunk};
    if (report->chooses) visitor = trace_filter_visitor(&report->choice, &visitor);
    enum status status = STATUS_CANNOT_READ;
    bool read = report->silent ? reader_read(report->reader, path, &visitor) == 0
                               : read_file(report->reader, path, &visitor, &faults);
    if (report->chooses) trace_filter_file_end(&report->choice);
    report->files[report->file_count - 1].stopped |= reader_stopped(report->reader);
    if (read) {
        status = fault_report_finish(&faults);
        add_file_counts(&report->files[report->file_count - 1].counts, reader_counts(report->reader));
    }
    duration_pairs_file_end(report->pairs, reader_stopped(report->reader));
    EACH_TOPIC(file_end, report);
    duration_pairs_free(report->pairs);
    return status;
}

static void
begin_file(struct report *report, const char *name)
{
    make_room(report->files, report->file_count, report->file_capacity);
    trace_filter_restart(&report->choice);
    report->files[report->file_count++] =
        (struct report_file){.name = name, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    EACH_TOPIC(file_begin, report);
}

enum status
report_read_one(struct report *report, uint64_t max_faults, const char *file)
{
    begin_file(report, file);
    return read_trace(report, file, max_faults);
}

enum status
report_read(struct report *report, uint64_t max_faults, const char *name, int path_count, char **paths)
{
    enum status status = STATUS_FINE;
    begin_file(report, name);
    reader_new_recording(report->reader);
    for (int i = 0; i < path_count; i++) status = worse(status, read_trace(report, paths[i], max_faults));
    return status;
}

void
report_read_end(struct report *report)
{
    if (report->last_ns > report->states.to_ns) report->last_ns = report->states.to_ns; /* what is open then ends later */
    EACH_TOPIC(resolve, report);
}

enum status
report_read_all(struct report *report, uint64_t max_faults, int file_count, char **files)
{
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++) status = worse(status, report_read_one(report, max_faults, files[i]));
    report_read_end(report);
    return status;
}

const char *
report_why_no_requests(const struct trace_choice *filter, int file_count, char **files)
{
    if (filter->reason != NULL || filter->method != NULL) return "--reason and --method choose exits, not requests";
    for (int i = 0; i < file_count; i++) {
        if (strcmp(files[i], "-") == 0) return "it reads traces twice: give a file, not standard input";
    }
    return NULL;
}

void
report_read_requests(struct report *report, size_t memory_bytes, int file_count, char **files)
{
    if (report->endpoints->marked == 0) return;
    endpoints_spans_end(report->endpoints);
    struct report *again = report_new(memory_bytes, &report->filter);
    again->silent = true;
    again->endpoints = report->endpoints;
    report_read_all(again, 0, file_count, files);
    report_free(again);
}

bool
report_readable(const struct report *report)
{
    for (uint32_t i = 0; i < report->file_count; i++) {
        if (report->files[i].counts.records > 0) return true;
    }
    return false;
}
