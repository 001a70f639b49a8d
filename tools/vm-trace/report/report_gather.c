/* report_gather.c - see report_data.h */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topics/kernel/cpu_tracks.h"
#include "analysis/event_args.h"
#include "analysis/label.h"
#include "analysis/origin.h"
#include "analysis/own_frame.h"
#include "topics/exits/reason.h"
#include "topics/report_data.h"
#include "report/report_resolve.h"
#include "base/xalloc.h"
#include "fxt/read_files.h"

enum { NO_THREAD = UINT32_MAX };

/* --- filters ---------------------------------------------------------------------------- */

static bool
time_wanted(const struct report *report, int64_t ts_ns)
{
    int64_t ns = ts_ns - report->start_ns;
    return ns >= report->filter.since_ns && (ns < report->filter.until_ns || report->filter.until_ns == INT64_MAX);
}

static bool
thread_wanted(struct report *report, struct report_thread *thread)
{
    const char *wanted = report->filter.thread;
    if (wanted == NULL) return true;
    if (thread->wanted < 0) {
        char tid[24];
        snprintf(tid, sizeof tid, "%" PRIu32, thread->tid);
        bool is_tid = thread->runs == STRING_NONE && strcmp(wanted, tid) == 0;
        thread->wanted = is_tid || fnmatch(wanted, pool_string(report->pool, thread->name).ptr, 0) == 0;
    }
    return thread->wanted;
}

bool
report_thread_wanted(struct report *report, uint32_t number)
{
    return thread_wanted(report, report_thread(report, number));
}

/* A time relative to the first event as an absolute one. */
static int64_t
absolute_ns(const struct report *report, int64_t ns)
{
    int64_t sum;
    if (ns == INT64_MIN || ns == INT64_MAX) return ns;
    return __builtin_add_overflow(report->start_ns, ns, &sum) ? (ns < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* Takes the time of an event or scheduling record, whatever the filter. */
static void
note_time(struct report *report, int64_t ts_ns)
{
    struct report_file *file = &report->files[report->file_count - 1];
    if (!report->has_events) {
        report->has_events = true;
        report->start_ns = ts_ns;
        report->states.from_ns = absolute_ns(report, report->filter.since_ns);
        report->states.to_ns = absolute_ns(report, report->filter.until_ns);
        report->calls.nesting.from_ns = report->states.from_ns;
        report->calls.nesting.to_ns = report->states.to_ns;
        const struct interval window = {report->states.from_ns, report->states.to_ns};
        kernel_sums_set_window(&report->kernel, window);
    }
    if (ts_ns < file->first_ns) file->first_ns = ts_ns;
    if (ts_ns > file->last_ns) file->last_ns = ts_ns;
}

/* --- processes and threads ------------------------------------------------------------------- */

/* The process as a whole, one of whose pieces has this number. */
static uint32_t
whole_of(struct report *report, uint32_t recording, uint32_t pid, uint32_t number)
{
    const uint32_t key[2] = {recording, pid};
    uint32_t known = report->wholes.count;
    struct report_whole *whole = row_table_get(&report->wholes, key); /* not more than there are processes */
    if (report->wholes.count > known) whole->process = number;
    return whole->process;
}

/* Returns the number of a process of the current file; with too many, the last one collects the
 * rest. */
static uint32_t
process_of(struct report *report, uint32_t recording, uint32_t pid)
{
    const uint32_t key[REPORT_PROCESS_KEYS] = {report->traces, recording, pid};
    uint32_t known = report->processes.count;
    struct report_process *process = row_table_get(&report->processes, key);
    if (process == NULL) return REPORT_PROCESSES_MAX - 1;
    if (report->processes.count > known) {
        process->file = report->file_count - 1;
        process->whole = whole_of(report, key[1], pid, known);
        report_process(report, process->whole)->latest = known;
        process->summary_sites = UINT64_MAX;
        process->first_ns = INT64_MAX;
        process->last_ns = INT64_MIN;
    }
    return (uint32_t)(process - (struct report_process *)report->processes.rows);
}

/* Returns the number of a row; with too many, the last one collects the rest. */
static uint32_t
thread_row(struct report *report, uint32_t process, uint32_t tid, uint32_t runs)
{
    const uint32_t key[3] = {process, tid, runs};
    uint32_t known = report->threads.count;
    struct report_thread *thread = row_table_get(&report->threads, key);
    if (thread == NULL) return REPORT_THREADS_MAX - 1;
    if (report->threads.count > known) {
        thread->name = runs;
        thread->wanted = -1;
        thread->first_ns = INT64_MAX;
        thread->last_ns = thread->seen_ns = INT64_MIN;
    }
    return (uint32_t)(thread - (struct report_thread *)report->threads.rows);
}

static uint32_t
thread_of(struct report *report, uint32_t recording, uint32_t pid, uint32_t tid)
{
    if (report->last_thread != NO_THREAD && report->last_recording == recording) {
        const struct report_thread *last = report_thread(report, report->last_thread);
        if (last->tid == tid && report_process(report, last->process)->pid == pid) return report->last_thread;
    }
    uint32_t whole = report_whole(report, process_of(report, recording, pid));
    report->last_recording = recording;
    return report->last_thread = thread_row(report, whole, tid, STRING_NONE);
}

static void
on_chunk(void *context, uint32_t id, struct fxt_string name, uint64_t offset)
{
    struct report *report = context;
    const uint32_t key[3] = {report->file_count - 1, id, pool_id(report->pool, name)};
    struct report_provider *provider = row_table_get(&report->providers, key);
    duration_pairs_chunk(report->pairs, offset);
    if (provider != NULL) provider->chunks++;
}

/* The key of an exit's row, from its event or from its site. */
struct exit_key {
    uint32_t words[EXIT_ROW_KEYS];
};

static struct exit_key
exit_key(struct pool *pool, const struct fxt_event *event, uint32_t process, uint32_t kind, uint32_t location)
{
    uint32_t iseq = event_text(pool, event, STRING_ISEQ);
    bool inlined = iseq != STRING_NONE && label_without_line(pool, iseq) != label_without_line(pool, location);
    return (struct exit_key){{
        process, kind, event_reason(pool, event), location, event_insn(pool, event),
        (uint32_t)event_uint(event, STRING_VERSION, 0), inlined ? iseq : STRING_NONE,
        event_text(pool, event, STRING_CALLEE),
    }};
}

/* --- endpoints ------------------------------------------------------------------------------------ */

struct endpoint_thread_key {
    uint32_t words[ENDPOINT_THREAD_KEYS];
};

static struct endpoint_thread_key
endpoint_key(const struct report *report, const struct report_thread *thread)
{
    const struct report_process *process = report_process(report, thread->process);
    return (struct endpoint_thread_key){{process->recording, process->pid, thread->tid}};
}

/* Whether it is the track of a fiber: "main fiber 3", with an id that no thread has. */
static bool
fiber_track(const struct report *report, const struct report_thread *track, struct fxt_string *thread_name_out)
{
    static const char fiber[] = " fiber ";
    const uint32_t first = 3u << 29, end = 1u << 31; /* doc/internals/events.md */
    struct fxt_string name = pool_string(report->pool, track->name);
    if (track->tid < first || track->tid >= end || track->name == STRING_NONE) return false;
    for (uint32_t at = name.len; at-- > 0;) {
        if (at + strlen(fiber) > name.len || memcmp(name.ptr + at, fiber, strlen(fiber)) != 0) continue;
        *thread_name_out = (struct fxt_string){.ptr = name.ptr, .len = at};
        return true;
    }
    return false;
}

/* The thread of that name in a process; 0 if there is none, or more than one, or too many to look at for each fiber. */
static uint32_t
tid_of_name(const struct report *report, uint32_t process, struct fxt_string name)
{
    enum { THREADS_LOOKED_AT = 10 * 1000 };
    uint32_t tid = 0;
    if (report->threads.count > THREADS_LOOKED_AT) return 0;
    for (uint32_t i = 0; i < report->threads.count; i++) {
        const struct report_thread *thread = report_thread(report, i);
        if (thread->process != process || thread->name == STRING_NONE || thread->runs != STRING_NONE) continue;
        if (!fxt_string_equal(pool_string(report->pool, thread->name), name)) continue;
        if (tid != 0) return 0;
        tid = thread->tid;
    }
    return tid;
}

static void
add_endpoint(struct report *report, const struct duration_edge *begin, const struct duration_edge *end)
{
    uint32_t endpoint = end != NULL && end->category == STRING_MARKER && end->endpoint != STRING_NONE ? end->endpoint
                                                                                                     : begin->endpoint;
    if (!begin->outermost && endpoint == STRING_NONE) return;
    if (end == NULL) {
        report->endpoints->unended++;
        return;
    }
    const struct report_thread *thread = report_thread(report, begin->row);
    struct endpoint_thread_key key = endpoint_key(report, thread);
    struct fxt_string of_name;
    bool fiber = fiber_track(report, thread, &of_name);
    const struct endpoint_found found = {
        .fiber = fiber,
        .of_tid = fiber && endpoints_fiber_new_p(report->endpoints, key.words)
                      ? tid_of_name(report, thread->process, of_name) : 0,
        .endpoint = endpoint != STRING_NONE ? endpoint : begin->name,
        .id = begin->id != STRING_NONE || end->category != STRING_MARKER ? begin->id : end->id,
        .thread_name = thread->name,
        .file = report->file_count - 1,
        .failed = end->category == STRING_MARKER && end->failed,
        .marked = endpoint != STRING_NONE,
        .time = {begin->ts_ns, end->ts_ns},
    };
    endpoints_span(report->endpoints, key.words, &found);
}

static bool
adds_costs(const struct report *report)
{
    return report->endpoints != NULL && report->endpoints->complete;
}

static void
add_cost(struct report *report, uint32_t native, int64_t at_ns, enum endpoint_cost cost, uint64_t amount,
         uint32_t label)
{
    if (!adds_costs(report)) return;
    uint32_t owner = report->by_gem ? frame_owner(&report->owners, label) : STRING_NONE;
    struct endpoint_thread_key key = endpoint_key(report, report_thread(report, native));
    endpoints_add(report->endpoints, key.words, at_ns, cost, amount, owner);
}

static void
add_time(struct report *report, uint32_t native, struct interval time, enum endpoint_cost cost)
{
    if (!adds_costs(report)) return;
    struct endpoint_thread_key key = endpoint_key(report, report_thread(report, native));
    endpoints_add_time(report->endpoints, key.words, time, cost);
}

/* --- exits ------------------------------------------------------------------------------------- */

/* The frame that counts: the innermost one, or that of the application. */
static uint32_t
counted_frame(struct report *report, const struct fxt_event *event)
{
    return report->filter.app_only ? event_app_frame(&report->owners, event)
                                   : event_text(report->pool, event, STRING_FRAME_0);
}

/* The same outside of Ruby's own files. */
static uint32_t
counted_own_frame(struct report *report, const struct fxt_event *event)
{
    return report->filter.app_only ? event_app_frame(&report->owners, event) : event_own_frame(report->pool, event);
}

static void
add_exit(struct report *report, const struct fxt_event *event, uint32_t native, struct report_thread *thread)
{
    uint32_t process = report_piece(report, thread->process);
    uint64_t weight = event_uint(event, STRING_WEIGHT, 1);
    uint32_t location = counted_frame(report, event);
    const struct exit_key key = exit_key(report->pool, event, process, event->category.id, location);
    uint32_t reason = key.words[2];
    bool fallback = event->category.id == STRING_FALLBACK;
    bool wanted = report_exit_wanted(report, reason, location);
    if (wanted) {
        *(fallback ? &thread->fallbacks : &thread->exits) += weight;
        seen_table_add(&report->seen, report->pool, event, reason, location, weight);
        if (!fallback) add_cost(report, native, event->ts_ns, ENDPOINT_EXITS, weight, location);
        if (!fallback && fxt_event_arg(event, STRING_LOST_NS) != NULL)
            add_cost(report, native, event->ts_ns, ENDPOINT_LOST, event_uint(event, STRING_LOST_NS, 0) * weight, location);
    }
    throws_exit(&report->throws, report->pool, event, native, wanted);
    if (weight != 1) report_process(report, process)->sampled = true;
    struct exit_row *exit_row = exit_table_row(&report->exits, key.words);
    if (exit_row == NULL) {
        report->exits.uncounted += weight;
        return;
    }
    exit_table_add(&report->exits, exit_row, event->ts_ns, weight);
    if (fxt_event_arg(event, STRING_LOST_NS) != NULL) report_process(report, process)->timed = true;
    exit_row_add_lost(exit_row, event_uint(event, STRING_LOST_NS, 0), weight);
    if (event->category.id == STRING_RECOMPILE_EXIT) {
        uint32_t outcome = event_text(report->pool, event, STRING_OUTCOME);
        bool known = outcome >= STRING_PROFILING && outcome <= STRING_VERSION_LIMIT;
        exit_row->outcomes[known ? outcome - STRING_PROFILING + 1 : 0] += weight;
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
add_settings(struct report *report, const struct fxt_event *event, uint32_t number)
{
    struct report_process *process = report_process(report, number);
    uint64_t exit_rate = event_uint(event, STRING_EXIT_RATE, 1),
             fallback_rate = event_uint(event, STRING_FALLBACK_RATE, 1);
    if (exit_rate > 1 || fallback_rate > 1) process->sampled = true;
    if (fxt_event_arg(event, STRING_SNAPSHOT) != NULL) process->snapshot = true;
    if (event_older_behind(report->pool, event)) duration_pairs_keeps_newest(report->pairs, process->whole);
    call_nesting_settings(&report->calls.nesting, event);
    process->code = event_code_settings(event);
    time_samples_settings(&report->samples.all, event);
    process->timed |= text_has_word(fxt_event_text(event, STRING_FLAGS), "states");
    shown_origin_settings(&process->origin, event);
    struct setting_adder adder = {report, number};
    for (unsigned i = 0; i < event->arg_count; i++)
        add_setting(&adder, pool_id(report->pool, event->args[i].name), arg_text(report->pool, &event->args[i]));
}

struct report_setting *
report_setting_of(const struct report *report, uint32_t process, uint32_t name)
{
    for (uint32_t number = report_process(report, process)->first_setting; number != 0;) {
        struct report_setting *setting = &report->settings[number - 1];
        if (setting->name == name) return setting;
        number = setting->next;
    }
    return NULL;
}

/* The title of a process is a setting that may change. A process without one has the name "ruby". */
static void
add_title(struct report *report, const struct fxt_object *object)
{
    uint32_t title = pool_id(report->pool, object->name);
    if (title == STRING_RUBY || object->name.len == 0) return;
    uint32_t number = process_of(report, object->recording, object->pid);
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
    uint32_t row = thread_of(report, object->recording, object->pid, object->tid);
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

static void
add_site(struct report *report, const struct fxt_event *event, uint32_t number)
{
    uint32_t location = event_text(report->pool, event, STRING_LOCATION);
    const struct exit_key key =
        exit_key(report->pool, event, number, event_text(report->pool, event, STRING_KIND), location);
    report_process(report, number)->sites++;
    if (report->times_only) return;
    struct exit_row *exit_row = exit_table_row(&report->exits, key.words);
    uint64_t hits = event_uint(event, STRING_HITS, 0);
    if (exit_row == NULL) {
        report->exits.uncounted_hits += hits;
        return;
    }
    uint64_t max_ns = event_uint(event, STRING_LOST_MAX_NS, 0);
    exit_row->hits += hits;
    exit_row->site_lost_ns += event_uint(event, STRING_LOST_NS, 0);
    if (max_ns > exit_row->lost_max_ns) exit_row->lost_max_ns = max_ns;
}

/* Sums of threads and ISEQs are of the whole trace. */
static void
add_execution(struct report *report, const struct fxt_event *event, uint32_t native)
{
    struct report_thread *thread = report_thread(report, native);
    report_process(report, report_piece(report, thread->process))->timed = true;
    if (report->windowed) return;
    if (event->name.id == STRING_STATES) {
        if (thread_wanted(report, thread)) execution_add_thread(&report->execution, native, event);
    }
    else if (report->filter.thread == NULL) {
        execution_add_iseq(&report->execution, report->pool, thread->process, event);
    }
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
    kernel_sums_trace(&report->kernel, process->whole, event);
    switch (event->name.id) {
      case STRING_SETTINGS:
        process->shown = true;
        add_settings(report, event, number);
        return;
      case STRING_JIT: add_jit(report, event, number); return;
      case STRING_HOST: add_origin(report, event, number); return;
      case STRING_CUT: process->cut = true; return;
      case STRING_SITE: add_site(report, event, number); return;
      case STRING_COUNTER:
        report->recorded[REPORT_COUNTERS] = true;
        if (!report->times_only && report_exit_wanted(report, event_text(report->pool, event, STRING_COUNTER),
                                                      event_text(report->pool, event, STRING_LOCATION)))
            jit_counters_add(&report->counters, report->pool, event, process->file);
        return;
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

/* --- durations -------------------------------------------------------------------------------------- */

/* The reason of an invalidation may contain an address. */
static void
add_duration(struct report *report, uint32_t category, uint32_t name, uint64_t ns)
{
    if (category == STRING_INVALIDATION) name = pool_without_addresses(report->pool, name);
    const uint32_t key[NAMED_DURATIONS_KEYS] = {category, name};
    struct named_durations *named =
        row_table_get(category == STRING_INVALIDATION ? &report->invalidations : &report->durations, key);
    if (named != NULL) durations_add(&named->durations, ns);
    else report->uncounted++;
}

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

/* The thread of a stack: its name at that time. */
static uint32_t
root_of(struct report *report, uint32_t row)
{
    const struct report_thread *thread = report_thread(report, row);
    return profile_thread(report->blocked_stacks, thread->name, thread->tid);
}

/* The begin of a `blocked` duration has the innermost frame, and its end the callers, if it was long:
 * returns the label of the frame, or the node of the callers (0: none). */
static uint32_t
blocked_stack(void *context, const struct fxt_event *event, uint32_t row, bool end)
{
    struct report *report = context;
    if (end) {
        uint32_t root = root_of(report, row), node = profile_stack(report->blocked_stacks, root, event, 1);
        return node == root ? 0 : node;
    }
    uint32_t frame = event_text(report->pool, event, STRING_FRAME_0);
    return frame != STRING_NONE ? frame : pool_id(report->pool, event->name);
}

static void
add_blocked_stack(struct report *report, const struct duration_edge *begin, const struct duration_edge *end,
                  struct interval time, uint64_t ns)
{
    struct profile *profile = report->blocked_stacks;
    uint32_t node = end != NULL && end->category == STRING_BLOCKED ? end->stack : 0;
    if (node == 0) {
        uint32_t none = pool_intern(report->pool, PROFILE_NO_STACK, sizeof PROFILE_NO_STACK - 1);
        node = profile_child(profile, root_of(report, begin->row), none, true);
    }
    node = profile_end_of(profile, profile_child(profile, node, begin->stack, false));
    profile_add(profile, node, ns);
    if (report->blocked_added != NULL) report->blocked_added(report->blocked_context, node, begin->ts_ns, time);
}

/* Counts what a thread blocked in up to where it was woken, and only what lies in the wanted time:
 * so it adds up to the blocked time of its thread. */
static void
add_blocked(struct report *report, const struct duration_edge *begin, const struct duration_edge *end)
{
    int64_t last_ns = thread_states_last_ns(&report->states, report_thread(report, begin->row)->process);
    struct interval time = thread_states_blocked(&report->states, begin, end, last_ns);
    uint64_t ns = thread_states_within(&report->states, time.from_ns, time.to_ns);
    if (!begin->wanted || !begin->outermost || (ns == 0 && !time_wanted(report, begin->ts_ns))) return;
    if (report->blocked_stacks != NULL) add_blocked_stack(report, begin, end, time, ns);
    uint32_t class_name = begin->class_name;
    if (class_name == STRING_NONE && end != NULL && end->category == STRING_BLOCKED) class_name = end->class_name;
    const uint32_t key[REPORT_BLOCKED_KEYS] = {begin->row, begin->name, class_name};
    struct report_blocked *blocked = row_table_get(&report->blocked, key);
    if (blocked != NULL) durations_add(&blocked->durations, ns);
    else report->uncounted++;
}

static void
add_preempted(struct report *report, const struct fxt_event *event, uint32_t thread)
{
    const uint32_t key[REPORT_PREEMPTED_KEYS] = {thread, counted_own_frame(report, event)};
    struct report_preempted *preempted = row_table_get(&report->preempted, key);
    if (preempted != NULL) preempted->count++;
    else report->uncounted++;
}

static bool
is_fate(const struct fxt_event *event)
{
    return event->category.id == STRING_ALLOCATION &&
           (event->name.id == STRING_FREED || event->name.id == STRING_ALIVE);
}

/* What the event of a sample says, or of its fate in a save. False: the filter leaves it out. */
static bool
read_allocation(struct report *report, const struct fxt_event *event, uint32_t process, struct allocation *allocation)
{
    *allocation = (struct allocation){
        .process = process,
        .file = report->file_count - 1,
        .sample = event_uint(event, STRING_SAMPLE, UINT64_MAX),
        .class_name = event_reason(report->pool, event),
        .frame = counted_own_frame(report, event),
        .size_bytes = event_uint(event, STRING_SIZE, 0),
        .weight_bytes = event_uint(event, STRING_WEIGHT, 0),
        .ts_ns = event->ts_ns,
        .untracked = event_uint(event, STRING_UNTRACKED, 0) != 0,
    };
    return report->filter.reason == NULL && glob_matches(&report->method_glob, report->pool, allocation->frame);
}

/* By method or by class; there is no reason. */
static void
add_allocation(struct report *report, const struct fxt_event *event, uint32_t process)
{
    struct allocation allocation;
    if (read_allocation(report, event, process, &allocation)) allocations_add(&report->allocations, &allocation);
}

/* Another thread may collect the object, at another time. */
static void
add_fate(struct report *report, const struct fxt_event *event, uint32_t process)
{
    struct allocation allocation;
    struct allocation_fate fate = {
        .process = process,
        .sample = event_uint(event, STRING_SAMPLE, UINT64_MAX),
        .alive = event->name.id == STRING_ALIVE,
        .ts_ns = event->ts_ns,
        .survived = event_uint(event, STRING_SURVIVED, 0),
        .malloc_bytes = event_uint(event, STRING_MALLOC_BYTES, UINT64_MAX),
    };
    /* Which thread allocated it is not there. */
    bool described = event_uint(event, STRING_WEIGHT, 0) > 0 && report->filter.thread == NULL;
    if (described && read_allocation(report, event, process, &allocation)) {
        uint64_t age_ns = event_uint(event, STRING_AGE_NS, 0);
        allocation.class_name = pool_without_addresses(report->pool, event_text(report->pool, event, STRING_CLASS));
        allocation.ts_ns -= age_ns < INT64_MAX ? (int64_t)age_ns : INT64_MAX;
        if (time_wanted(report, allocation.ts_ns)) fate.allocation = &allocation;
    }
    allocations_fate(&report->allocations, &fate);
}

static bool
call_wanted(void *context, uint32_t name)
{
    struct report *report = context;
    return glob_matches(&report->method_glob, report->pool, name);
}

static bool
call_hidden(void *context, uint32_t name)
{
    struct report *report = context;
    return !frame_of_app(&report->owners, name);
}

static void
add_gc(struct report *report, const struct duration_edge *begin, const struct duration_edge *end, bool wanted)
{
    const struct interval time = {begin->ts_ns, end->ts_ns};
    if (begin->outermost) add_time(report, begin->row, time, ENDPOINT_GC);
    uint32_t process = report_thread(report, begin->row)->process;
    gc_pauses_add(&report->gc, process, report_piece(report, process), begin, end, wanted);
}

static void
on_pair(void *context, const struct duration_edge *begin, const struct duration_edge *end)
{
    struct report *report = context;
    if (begin == NULL) return;
    bool wanted = begin->wanted && time_wanted(report, begin->ts_ns);
    if (begin->category == STRING_BLOCKED) {
        add_blocked(report, begin, end);
        return;
    }
    if (begin->category == STRING_GC && end != NULL) {
        add_gc(report, begin, end, wanted);
        return;
    }
    if (begin->category == STRING_MARKER && wanted && report->endpoints != NULL && !report->endpoints->complete)
        add_endpoint(report, begin, end);
    if (begin->category == STRING_COMPILE) compilations_pair(&report->compilations, begin, end, wanted);
    if (!wanted) return;
    if (end == NULL) report->unended++;
    else if (begin->category == STRING_COMPILE) return;
    else if (begin->category != STRING_INVALIDATION || begin->outermost) {
        add_duration(report, begin->category, begin->name, (uint64_t)(end->ts_ns - begin->ts_ns));
    }
}

/* A duration in a single record. */
static void
add_complete(struct report *report, const struct fxt_event *event)
{
    struct duration_edge edge = duration_edge_of(report->pool, event);
    uint64_t ns = (uint64_t)(event->end_ns - event->ts_ns);
    if (edge.category == STRING_COMPILE) compilations_single(&report->compilations, &edge, ns);
    else add_duration(report, edge.category, edge.name, ns);
}

/* --- system calls and CPUs ----------------------------------------------------------------------------- */

/* Calls and system calls have no reason. */
static void
add_call(struct report *report, const struct fxt_event *event, uint32_t native, uint32_t process)
{
    if (report->filter.reason != NULL) return;
    call_nesting_event(&report->calls.nesting, native, report->pool, event);
    kernel_sums_call(&report->kernel, report->pool, process, native, event);
}

static void
add_syscall(struct report *report, const struct fxt_event *event, uint32_t native, uint32_t process)
{
    bool of_methods = report->filter.method != NULL; /* which are known for callers only */
    if (report->filter.reason != NULL) return;
    kernel_sums_syscall(&report->kernel, report->pool, process, native, of_methods, event);
}

/* --thread names the thread of a CPU's track, too. */
static bool
cpu_wanted(struct report *report, struct report_thread *track)
{
    if (track->wanted < 0 && report->filter.thread != NULL) {
        struct fxt_string name = cpu_track_thread_name(pool_string(report->pool, track->name));
        struct report_thread thread = {.tid = cpu_track_native_tid(track->tid), .wanted = -1};
        thread.name = pool_intern(report->pool, name.ptr, name.len);
        if (thread_wanted(report, &thread)) track->wanted = 1;
    }
    return thread_wanted(report, track);
}

static void
add_cpu(struct report *report, const struct fxt_event *event, uint32_t track, uint32_t process)
{
    if (report->exits_only || !cpu_wanted(report, report_thread(report, track))) return;
    kernel_sums_cpu(&report->kernel, report->pool, process, track, event);
    if (!time_wanted(report, event->ts_ns)) return;
    if (event->ts_ns < report->first_ns) report->first_ns = event->ts_ns;
    if (event->end_ns > report->last_ns) report->last_ns = event->end_ns;
}

static void
on_piece(void *context, const struct thread_times *times, enum thread_state state, int64_t from_ns, int64_t to_ns,
         uint64_t gc_ns)
{
    struct report *report = context;
    const struct report_thread *thread = report_thread(report, times->row);
    const struct interval held = {from_ns, to_ns};
    (void)gc_ns;
    if (state == THREAD_RUNNING || state == THREAD_IN_GC)
        kernel_sums_held(&report->kernel, thread->process, thread->tid, held);
    static const struct {
        bool shown;
        enum endpoint_cost cost;
    } costs[THREAD_STATE_COUNT] = {
        [THREAD_RUNNING] = {true, ENDPOINT_RAN},
        [THREAD_IN_GC] = {true, ENDPOINT_RAN},
        [THREAD_WAITING] = {true, ENDPOINT_WAITED},
        [THREAD_BLOCKED] = {true, ENDPOINT_BLOCKED},
    };
    if (costs[state].shown) add_time(report, times->row, held, costs[state].cost);
}

/* --- events ------------------------------------------------------------------------------------------- */

static void
note_process_time(struct report_process *process, int64_t ts_ns)
{
    process->shown = true;
    if (ts_ns < process->first_ns) process->first_ns = ts_ns;
    if (ts_ns > process->last_ns) process->last_ns = ts_ns;
}

static void
note_thread_time(struct report_thread *thread, int64_t ts_ns, int64_t end_ns, int64_t seen_ns)
{
    if (seen_ns > thread->seen_ns) thread->seen_ns = seen_ns;
    if (ts_ns < thread->first_ns) thread->first_ns = ts_ns;
    if (end_ns > thread->last_ns) thread->last_ns = end_ns;
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

static bool
on_change(void *context, const struct fxt_sched *sched, const struct sched_change_of *change,
          struct duration_edge *edge)
{
    struct report *report = context;
    note_time(report, sched->ts_ns);
    edge->row = thread_of(report, sched->recording, change->pid, change->tid);
    edge->process = report_thread(report, edge->row)->process;
    note_process_time(report_process(report, report_piece(report, edge->process)), sched->ts_ns);
    note_thread_time(report_thread(report, edge->row), sched->ts_ns, sched->ts_ns, sched->ts_ns);
    if (report_thread_wanted(report, edge->row) && time_wanted(report, sched->ts_ns)) {
        if (sched->ts_ns < report->first_ns) report->first_ns = sched->ts_ns;
        if (sched->ts_ns > report->last_ns) report->last_ns = sched->ts_ns;
    }
    return !report->exits_only;
}

static void
on_sched(void *context, const struct fxt_sched *sched)
{
    struct report *report = context;
    duration_pairs_sched(report->pairs, sched);
}

static void
on_event(void *context, const struct fxt_event *event)
{
    struct report *report = context;
    note_time(report, event->ts_ns);
    uint32_t native = thread_of(report, event->recording, event->pid, event->tid), row = native;
    uint32_t whole = report_thread(report, native)->process, process = report_piece(report, whole);
    note_process_time(report_process(report, process), event->ts_ns);
    int64_t end_ns = event->type == FXT_EVENT_DURATION_COMPLETE ? event->end_ns : event->ts_ns;
    note_thread_time(report_thread(report, native), event->ts_ns, end_ns, fxt_event_seen_ns(event));
    bool instant = event->type == FXT_EVENT_INSTANT;
    /* Events about the trace hold for all of it, whatever the filter. */
    if (instant && event->category.id == STRING_TRACE) add_trace_event(report, event, process);
    bool execution = event->name.id == STRING_STATES || event->name.id == STRING_INTERPRETED;
    if (instant && event->category.id == STRING_TRACE && execution) add_execution(report, event, native);
    if (instant && is_fate(event)) add_fate(report, event, process);
    if (event->category.id == STRING_SCHED && event->type == FXT_EVENT_DURATION_COMPLETE) {
        report->recorded[REPORT_CPUS] = true;
        add_cpu(report, event, native, whole); /* its track is that of no thread */
        return;
    }
    uint32_t runs = event_text(report->pool, event, STRING_THREAD);
    if (runs != STRING_NONE) row = thread_row(report, whole, 0, runs);
    struct report_thread *thread = report_thread(report, row);
    bool wanted = thread_wanted(report, report_thread(report, native)) || thread_wanted(report, thread);
    bool call = event->category.id == STRING_CALL, syscall = event->category.id == STRING_SYSCALL;
    report->recorded[REPORT_CALLS] |= call;
    report->recorded[REPORT_SYSCALLS] |= syscall;
    /* All threads: any may hold the GVL. It counts if it is wanted and begins in time. */
    if (is_edge(event) && !report->exits_only)
        duration_pairs_add(report->pairs, report->pool, event, whole, native, wanted);
    if (!wanted) return;
    if (call) add_call(report, event, native, whole); /* counts as far as it lies in the window */
    if (syscall) add_syscall(report, event, native, whole);
    version_history_event(&report->history, report->pool, whole, event);
    if (!time_wanted(report, event->ts_ns)) return;
    if (event->category.id == STRING_EXECUTION) return; /* only the long ones: their sums are in trace/states */

    thread->events++;
    if (event->ts_ns < report->first_ns) report->first_ns = event->ts_ns;
    if (end_ns > report->last_ns) report->last_ns = end_ns;
    bool complete = event->type == FXT_EVENT_DURATION_COMPLETE && !is_edge(event) && !call && !syscall;
    if (complete && !report->exits_only) add_complete(report, event);
    if (event->category.id == STRING_THROW) throws_flow(&report->throws, event, native);
    if (!instant) return;
    switch (event->category.id) {
      case STRING_SIDE_EXIT:
      case STRING_RECOMPILE_EXIT:
      case STRING_FALLBACK: add_exit(report, event, native, thread); break;
      case STRING_PREEMPTED:
        if (!report->exits_only) add_preempted(report, event, native);
        break;
      case STRING_ALLOCATION:
        if (is_fate(event)) break;
        add_allocation(report, event, process);
        add_cost(report, native, event->ts_ns, ENDPOINT_ALLOCATED, event_uint(event, STRING_WEIGHT, 0),
                 counted_own_frame(report, event));
        break;
    }
}

/* --- samples of time ----------------------------------------------------------------------------------- */

static bool
sample_wanted(void *context, const struct time_sample *sample)
{
    struct report *report = context;
    note_time(report, sample->ts_ns);
    uint32_t native = thread_of(report, sample->recording, sample->pid, sample->tid);
    uint32_t process = report_piece(report, report_thread(report, native)->process);
    note_process_time(report_process(report, process), sample->ts_ns);
    note_thread_time(report_thread(report, native), sample->ts_ns, sample->ts_ns, sample->ts_ns);
    report->recorded[REPORT_SAMPLES] = true;
    return !report->exits_only && report_thread_wanted(report, native) && time_wanted(report, sample->ts_ns);
}

static void
sample_added(void *context, const struct time_sample *sample)
{
    struct report *report = context;
    uint32_t native = thread_of(report, sample->recording, sample->pid, sample->tid);
    struct sample_thread *thread = row_table_get(&report->samples.threads, &native);
    if (thread != NULL) sample_times_add(&thread->times, sample->state, sample->ns, 1);
    const uint32_t key[SAMPLE_PLACE_KEYS] = {report->file_count - 1, report->samples.profile.nodes[sample->node].text,
                                             sample->state};
    if (!time_sample_waits(sample->state))
        add_cost(report, native, sample->ts_ns, ENDPOINT_SAMPLED, sample->ns, key[1]);
    struct sample_place *place = row_table_get(&report->samples.places, key);
    if (place != NULL) place->ns += sample->ns;
    if (sample->ts_ns < report->first_ns) report->first_ns = sample->ts_ns;
    if (sample->ts_ns > report->last_ns) report->last_ns = sample->ts_ns;
}

static void
on_blob(void *context, const struct fxt_blob *blob)
{
    struct report *report = context;
    time_samples_blob(&report->samples.all, blob);
}

static void
init_samples(struct report *report)
{
    struct report_samples *samples = &report->samples;
    profile_init(&samples->profile, report->reader, PROFILE_SAMPLES, true);
    time_samples_init(&samples->all, report->reader, &samples->profile);
    samples->all.context = report;
    samples->all.wanted = sample_wanted;
    samples->all.added = sample_added;
    row_table_init(&samples->threads, sizeof(struct sample_thread), 1, REPORT_THREADS_MAX);
    row_table_init(&samples->places, sizeof(struct sample_place), SAMPLE_PLACE_KEYS, SAMPLE_ROWS_MAX);
}

static void
free_samples(struct report_samples *samples)
{
    time_samples_free(&samples->all);
    profile_free(&samples->profile);
    row_table_free(&samples->threads);
    row_table_free(&samples->places);
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
    report->last_thread = NO_THREAD;
    exit_table_init(&report->exits);
    throws_init(&report->throws);
    jit_counters_init(&report->counters);
    seen_table_init(&report->seen);
    row_table_init(&report->processes, sizeof(struct report_process), REPORT_PROCESS_KEYS, REPORT_PROCESSES_MAX);
    row_table_init(&report->wholes, sizeof(struct report_whole), 2, REPORT_PROCESSES_MAX);
    row_table_init(&report->threads, sizeof(struct report_thread), 3, REPORT_THREADS_MAX);
    row_table_init(&report->losses, sizeof(struct report_loss), 2, REPORT_PROCESSES_MAX);
    row_table_init(&report->providers, sizeof(struct report_provider), 3, REPORT_PROCESSES_MAX);
    row_table_init(&report->preempted, sizeof(struct report_preempted), REPORT_PREEMPTED_KEYS, REPORT_PREEMPTED_MAX);
    row_table_init(&report->blocked, sizeof(struct report_blocked), REPORT_BLOCKED_KEYS, REPORT_BLOCKED_MAX);
    const struct thread_states_visitor visitor = {
        .context = report, .last_ns = process_last_ns, .seen_ns = thread_seen_ns, .piece = on_piece};
    thread_states_init(&report->states, &visitor);
    gc_pauses_init(&report->gc, report->pool);
    allocations_init(&report->allocations);
    execution_init(&report->execution);
    calls_init(&report->calls, report, call_wanted);
    kernel_sums_init(&report->kernel);
    init_samples(report);
    if (filter->app_only) {
        report->calls.hidden = call_hidden;
        report->calls.outside = report->owners.outside;
        report->samples.profile.app_only = &report->owners;
    }
    compilations_init(&report->compilations);
    struct row_table *tables[] = {&report->invalidations, &report->durations};
    for (unsigned i = 0; i < 2; i++)
        row_table_init(tables[i], sizeof(struct named_durations), NAMED_DURATIONS_KEYS, REPORT_DURATIONS_MAX);
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
    struct row_table *tables[] = {&report->invalidations, &report->durations};
    for (unsigned i = 0; i < 2; i++) {
        for (uint32_t row = 0; row < tables[i]->count; row++) {
            struct named_durations *named = row_table_at(tables[i], row);
            durations_free(&named->durations);
        }
        row_table_free(tables[i]);
    }
    for (uint32_t row = 0; row < report->blocked.count; row++) {
        struct report_blocked *blocked = row_table_at(&report->blocked, row);
        durations_free(&blocked->durations);
    }
    row_table_free(&report->blocked);
    row_table_free(&report->preempted);
    thread_states_free(&report->states);
    gc_pauses_free(&report->gc);
    allocations_free(&report->allocations);
    execution_free(&report->execution);
    calls_free(&report->calls);
    kernel_sums_free(&report->kernel);
    free_samples(&report->samples);
    compilations_free(&report->compilations);
    version_history_free(&report->history);
    exit_table_free(&report->exits);
    throws_free(&report->throws);
    jit_counters_free(&report->counters);
    seen_table_free(&report->seen);
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
    report->last_thread = NO_THREAD;
    struct duration_pair_visitor pair_visitor = {.context = report, .pair = on_pair, .change = on_change};
    if (report->blocked_stacks != NULL) pair_visitor.stack = blocked_stack;
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
    calls_file_end(&report->calls);
    kernel_sums_file_end(&report->kernel);
    execution_file_end(&report->execution);
    time_samples_file_end(&report->samples.all);
    duration_pairs_free(report->pairs);
    compilations_file_end(&report->compilations);
    version_history_file_end(&report->history);
    return status;
}

static void
begin_file(struct report *report, const char *name)
{
    make_room(report->files, report->file_count, report->file_capacity);
    report->calls.file = report->file_count;
    trace_filter_restart(&report->choice);
    report->files[report->file_count++] =
        (struct report_file){.name = name, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
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
    allocations_resolve(&report->allocations);
    calls_sort_slowest(&report->calls);
    if (report->last_ns > report->states.to_ns) report->last_ns = report->states.to_ns; /* what is open then ends later */
    report_resolve(report);
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

uint64_t
report_thread_ns(const struct report *report, uint32_t number, uint64_t of_stream_ns)
{
    const struct report_thread *thread = report_thread(report, number);
    const struct call_nesting *window = &report->calls.nesting;
    int64_t first_ns = thread->first_ns > window->from_ns ? thread->first_ns : window->from_ns;
    int64_t last_ns = thread->last_ns < window->to_ns ? thread->last_ns : window->to_ns;
    uint64_t ns = last_ns > first_ns ? (uint64_t)(last_ns - first_ns) : 0;
    return ns > of_stream_ns ? ns : of_stream_ns;
}

bool
report_step_wanted(struct report *report, const struct version_step *step)
{
    return time_wanted(report, step->ts_ns) && glob_matches(&report->method_glob, report->pool, step->iseq);
}

bool
report_timed(const struct report *report)
{
    for (uint32_t i = 0; i < report->processes.count; i++) {
        if (report_process(report, i)->timed) return true;
    }
    return false;
}

bool
report_iseq_wanted(struct report *report, uint32_t iseq)
{
    if (report->filter.app_only && !frame_of_app(&report->owners, iseq)) return false;
    return report->filter.reason == NULL && glob_matches(&report->method_glob, report->pool, iseq);
}

bool
report_readable(const struct report *report)
{
    for (uint32_t i = 0; i < report->file_count; i++) {
        if (report->files[i].counts.records > 0) return true;
    }
    return false;
}
