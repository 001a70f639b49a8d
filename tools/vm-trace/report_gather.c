/* report_gather.c - see report.h */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "event_args.h"
#include "label.h"
#include "reason.h"
#include "report.h"
#include "report_settle.h"
#include "xalloc.h"

enum { NO_THREAD = UINT32_MAX };

/* --- filters ---------------------------------------------------------------------------- */

static bool
text_matches(const char *pattern, struct fxt_string text)
{
    return fnmatch(pattern, text.ptr, 0) == 0;
}

/* The whole label, or what stands before " (path:line)". */
static bool
label_matches(const char *pattern, struct fxt_string label)
{
    if (text_matches(pattern, label)) return true;
    char method[1024];
    size_t len = label_method_bytes(label);
    if (len >= sizeof method) return false;
    memcpy(method, label.ptr, len);
    method[len] = '\0';
    return fnmatch(pattern, method, 0) == 0;
}

static bool
glob_matches(struct report_glob *glob, const struct pool *pool, uint32_t id,
             bool (*matches)(const char *pattern, struct fxt_string text))
{
    if (glob->pattern == NULL) return true;
    if (id >= glob->size) {
        uint32_t size = pool_size(pool) * 2;
        glob->known = xrealloc(glob->known, size, 1);
        memset(glob->known + glob->size, 0, size - glob->size);
        glob->size = size;
    }
    if (glob->known[id] == GLOB_UNTRIED) glob->known[id] = matches(glob->pattern, pool_string(pool, id)) ? GLOB_MATCHES : GLOB_FAILS;
    return glob->known[id] == GLOB_MATCHES;
}

static bool
place_wanted(struct report *report, uint32_t reason, uint32_t location)
{
    return glob_matches(&report->reason_glob, report->pool, reason, reason_matches) &&
           glob_matches(&report->method_glob, report->pool, location, label_matches);
}

bool
report_place_wanted(struct report *report, const struct place *place)
{
    return place_wanted(report, place->reason, place->location);
}

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

/* --- processes and threads ------------------------------------------------------------------- */

/* The number of a process of the current file; of too many the last one stands for the rest. */
static uint32_t
process_of(struct report *report, uint32_t pid)
{
    const uint32_t key[2] = {report->file_count - 1, pid};
    uint32_t known = report->processes.count;
    struct report_process *process = group_row(&report->processes, key);
    if (process == NULL) return REPORT_PROCESSES_MAX - 1;
    if (report->processes.count > known) process->said_sites = UINT64_MAX;
    return (uint32_t)(process - (struct report_process *)report->processes.rows);
}

/* The number of a row; of too many the last one stands for the rest. */
static uint32_t
thread_row(struct report *report, uint32_t process, uint32_t tid, uint32_t runs)
{
    const uint32_t key[3] = {process, tid, runs};
    uint32_t known = report->threads.count;
    struct report_thread *thread = group_row(&report->threads, key);
    if (thread == NULL) return REPORT_THREADS_MAX - 1;
    if (report->threads.count > known) {
        thread->name = runs;
        thread->wanted = -1;
    }
    return (uint32_t)(thread - (struct report_thread *)report->threads.rows);
}

static uint32_t
thread_of(struct report *report, uint32_t pid, uint32_t tid)
{
    if (report->last_thread != NO_THREAD) {
        const struct report_thread *last = report_thread(report, report->last_thread);
        const struct report_process *process = report_process(report, last->process);
        if (last->tid == tid && process->pid == pid && process->file == report->file_count - 1) return report->last_thread;
    }
    return report->last_thread = thread_row(report, process_of(report, pid), tid, STRING_NONE);
}

static void
on_object(void *context, const struct fxt_object *object)
{
    struct report *report = context;
    if (object->type == FXT_OBJECT_PROCESS) return;
    struct report_thread *thread = report_thread(report, thread_of(report, object->pid, object->tid));
    thread->name = pool_id(report->pool, object->name);
    thread->wanted = -1;
}

static void
on_chunk(void *context, uint32_t id, struct fxt_string name, uint64_t offset)
{
    struct report *report = context;
    const uint32_t key[3] = {report->file_count - 1, id, pool_id(report->pool, name)};
    struct report_provider *provider = group_row(&report->providers, key);
    (void)offset;
    if (provider != NULL) provider->chunks++;
}

/* The ISEQ that the event names, where that is another method than that of its frame. */
static uint32_t
inlined_into(struct report *report, const struct fxt_event *event, uint32_t location)
{
    uint32_t iseq = event_text(report->pool, event, WORD_ISEQ);
    if (iseq == STRING_NONE || label_without_line(report->pool, iseq) == label_without_line(report->pool, location)) return STRING_NONE;
    return iseq;
}

/* --- exits ------------------------------------------------------------------------------------- */

static void
add_exit(struct report *report, const struct fxt_event *event, struct report_thread *thread)
{
    uint64_t weight = event_uint(event, WORD_WEIGHT, 1);
    uint32_t location = event_text(report->pool, event, WORD_FRAME_0);
    const uint32_t key[PLACE_KEYS] = {
        thread->process,
        event->category.id,
        event_reason(report->pool, event),
        location,
        event_text(report->pool, event, WORD_INSN),
        (uint32_t)event_uint(event, WORD_VERSION, 0),
        inlined_into(report, event, location),
        event_text(report->pool, event, WORD_CALLEE),
    };
    bool fallback = event->category.id == WORD_FALLBACK;
    if (place_wanted(report, key[2], key[3])) *(fallback ? &thread->fallbacks : &thread->exits) += weight;
    if (weight != 1) report_process(report, thread->process)->sampled = true;
    struct place *place = places_get(&report->places, key);
    if (place == NULL) {
        report->places.untold += weight;
        return;
    }
    places_add(&report->places, place, event->ts_ns, weight);
    if (event->category.id == WORD_RECOMPILE_EXIT) {
        uint32_t outcome = event_text(report->pool, event, WORD_OUTCOME);
        bool known = outcome >= WORD_PROFILING && outcome <= WORD_VERSION_LIMIT;
        place->outcomes[known ? outcome - WORD_PROFILING + 1 : 0] += weight;
    }
}

/* --- events of category trace --------------------------------------------------------------------- */

static void
add_settings(struct report *report, const struct fxt_event *event, uint32_t number)
{
    struct report_process *process = report_process(report, number);
    uint64_t exit_rate = event_uint(event, WORD_EXIT_RATE, 1), fallback_rate = event_uint(event, WORD_FALLBACK_RATE, 1);
    if (exit_rate > 1 || fallback_rate > 1) process->sampled = true;
    if (fxt_event_arg(event, WORD_SNAPSHOT) != NULL) process->snapshot = true;
    process->code = event_code_settings(event);
    for (unsigned i = 0; i < event->arg_count && process->setting_count < REPORT_SETTINGS_MAX; i++) {
        const struct fxt_arg *arg = &event->args[i];
        make_room(report->settings, report->setting_count, report->setting_capacity);
        report->settings[report->setting_count++] =
            (struct report_setting){number, pool_id(report->pool, arg->name), arg_text(report->pool, arg)};
        process->setting_count++;
    }
}

static void
add_site(struct report *report, const struct fxt_event *event, uint32_t number)
{
    uint32_t location = event_text(report->pool, event, WORD_LOCATION);
    const uint32_t key[PLACE_KEYS] = {
        number,
        event_text(report->pool, event, WORD_KIND),
        event_reason(report->pool, event),
        location,
        event_text(report->pool, event, WORD_INSN),
        (uint32_t)event_uint(event, WORD_VERSION, 0),
        inlined_into(report, event, location),
        event_text(report->pool, event, WORD_CALLEE),
    };
    report_process(report, number)->sites++;
    if (report->times_only) return;
    struct place *place = places_get(&report->places, key);
    uint64_t hits = event_uint(event, WORD_HITS, 0);
    if (place != NULL) place->hits += hits;
    else report->places.untold_hits += hits;
}

static void
add_trace_event(struct report *report, const struct fxt_event *event, uint32_t number)
{
    struct report_process *process = report_process(report, number);
    switch (event->name.id) {
      case WORD_SETTINGS:
        process->ours = true;
        add_settings(report, event, number);
        return;
      case WORD_CUT: process->cut = true; return;
      case WORD_SITE: add_site(report, event, number); return;
      case WORD_LOSS: {
        const uint32_t key[2] = {number, event_text(report->pool, event, WORD_REASON)};
        uint64_t lost = event_uint(event, WORD_LOST, 0);
        struct report_loss *loss = group_row(&report->losses, key);
        if (loss != NULL) loss->events += lost;
        process->lost += lost;
        return;
      }
      case WORD_SUMMARY:
        process->ours = process->summarized = true;
        process->said_lost = event_uint(event, WORD_LOST, 0);
        process->said_sites = event_uint(event, WORD_SITES, UINT64_MAX);
        return;
    }
}

/* --- durations -------------------------------------------------------------------------------------- */

/* What was violated may be named by its address. */
static void
add_duration(struct report *report, uint32_t category, uint32_t name, uint64_t ns)
{
    if (category == WORD_INVALIDATION) name = pool_without_addresses(report->pool, name);
    const uint32_t key[NAMED_DURATIONS_KEYS] = {category, name};
    struct named_durations *span = group_row(category == WORD_INVALIDATION ? &report->invalidations : &report->durations, key);
    if (span != NULL) durations_add(&span->durations, ns);
    else report->untold++;
}

static void
on_span(void *context, const struct span_edge *begin, const struct span_edge *end)
{
    struct report *report = context;
    if (begin == NULL) return;
    bool wanted = time_wanted(report, begin->ts_ns);
    if (begin->category == WORD_COMPILE) compiles_span(&report->compiles, begin, end, wanted);
    if (!wanted) return;
    if (end == NULL) report->unended++;
    else if (begin->category == WORD_COMPILE) return;
    else if (begin->category != WORD_INVALIDATION || begin->outermost) {
        add_duration(report, begin->category, begin->name, (uint64_t)(end->ts_ns - begin->ts_ns));
    }
}

/* A duration that is one record. */
static void
add_complete(struct report *report, const struct fxt_event *event)
{
    struct span_edge edge = span_edge_of(report->pool, event);
    uint64_t ns = (uint64_t)(event->end_ns - event->ts_ns);
    if (edge.category == WORD_COMPILE) compiles_single(&report->compiles, &edge, ns);
    else add_duration(report, edge.category, edge.name, ns);
}

/* --- events ------------------------------------------------------------------------------------------- */

static void
on_event(void *context, const struct fxt_event *event)
{
    struct report *report = context;
    if (!report->has_events) {
        report->has_events = true;
        report->start_ns = event->ts_ns;
    }
    struct report_file *file = &report->files[report->file_count - 1];
    if (event->ts_ns < file->first_ns) file->first_ns = event->ts_ns;
    if (event->ts_ns > file->last_ns) file->last_ns = event->ts_ns;
    uint32_t native = thread_of(report, event->pid, event->tid), row = native;
    uint32_t process = report_thread(report, native)->process;
    report_process(report, process)->ours = true;
    bool instant = event->type == FXT_EVENT_INSTANT;
    /* What a trace says of itself holds for all of it. */
    if (instant && event->category.id == WORD_TRACE) add_trace_event(report, event, process);
    uint32_t runs = event_text(report->pool, event, WORD_THREAD);
    if (runs != STRING_NONE) row = thread_row(report, process, 0, runs);
    struct report_thread *thread = report_thread(report, row);
    if (!thread_wanted(report, report_thread(report, native)) && !thread_wanted(report, thread)) return;
    lives_event(&report->lives, report->pool, process, event);
    bool edge = event->type == FXT_EVENT_DURATION_BEGIN || event->type == FXT_EVENT_DURATION_END;
    if (edge && !report->exits_only) spans_add(report->spans, report->pool, event); /* a duration counts when it began in time */
    if (!time_wanted(report, event->ts_ns)) return;

    thread->events++;
    int64_t end_ns = event->type == FXT_EVENT_DURATION_COMPLETE ? event->end_ns : event->ts_ns;
    if (event->ts_ns < report->first_ns) report->first_ns = event->ts_ns;
    if (end_ns > report->last_ns) report->last_ns = end_ns;
    if (event->type == FXT_EVENT_DURATION_COMPLETE && !report->exits_only) add_complete(report, event);
    if (!instant) return;
    switch (event->category.id) {
      case WORD_SIDE_EXIT:
      case WORD_RECOMPILE_EXIT:
      case WORD_FALLBACK: add_exit(report, event, thread); break;
    }
}

/* --- all ----------------------------------------------------------------------------------------------- */

struct report *
report_new(size_t memory_bytes, const struct report_filter *filter)
{
    struct report *report = xcalloc(1, sizeof *report);
    report->reader = reader_new(memory_bytes);
    report->pool = reader_pool(report->reader);
    report->filter = *filter;
    report->reason_glob.pattern = filter->reason;
    report->method_glob.pattern = filter->method;
    report->times_only = filter->since_ns != INT64_MIN || filter->until_ns != INT64_MAX || filter->thread != NULL;
    report->exits_only = filter->reason != NULL || filter->method != NULL;
    report->first_ns = INT64_MAX;
    report->last_ns = INT64_MIN;
    report->last_thread = NO_THREAD;
    places_init(&report->places);
    group_init(&report->processes, sizeof(struct report_process), 2, REPORT_PROCESSES_MAX);
    group_init(&report->threads, sizeof(struct report_thread), 3, REPORT_THREADS_MAX);
    group_init(&report->losses, sizeof(struct report_loss), 2, REPORT_PROCESSES_MAX);
    group_init(&report->providers, sizeof(struct report_provider), 3, REPORT_PROCESSES_MAX);
    compiles_init(&report->compiles);
    struct group *spans[] = {&report->invalidations, &report->durations};
    for (unsigned i = 0; i < 2; i++) group_init(spans[i], sizeof(struct named_durations), NAMED_DURATIONS_KEYS, REPORT_SPANS_MAX);
    return report;
}

void
report_free(struct report *report)
{
    struct group *spans[] = {&report->invalidations, &report->durations};
    for (unsigned i = 0; i < 2; i++) {
        for (uint32_t row = 0; row < spans[i]->count; row++) {
            struct named_durations *span = group_at(spans[i], row);
            durations_free(&span->durations);
        }
        group_free(spans[i]);
    }
    compiles_free(&report->compiles);
    lives_free(&report->lives);
    places_free(&report->places);
    group_free(&report->processes);
    group_free(&report->losses);
    group_free(&report->providers);
    group_free(&report->threads);
    free(report->settings);
    free(report->files);
    free(report->reason_glob.known);
    free(report->method_glob.known);
    reader_free(report->reader);
    free(report);
}

static enum status
read_one(struct report *report, const char *file, uint64_t max_faults)
{
    report->files = xrealloc(report->files, report->file_count + 1, sizeof *report->files);
    report->files[report->file_count++] = (struct report_file){.name = file, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    report->last_thread = NO_THREAD;
    struct span_visitor span_visitor = {.context = report, .span = on_span};
    report->spans = spans_new(&span_visitor);
    struct diag diag = diag_new(file, max_faults);
    struct fxt_visitor visitor = {.context = report, .event = on_event, .object = on_object, .chunk = on_chunk};
    enum status status = STATUS_CANNOT_READ;
    if (read_file(report->reader, file, &visitor, &diag)) {
        status = diag_finish(&diag);
        report->files[report->file_count - 1].counts = *reader_counts(report->reader);
        spans_finish(report->spans);
    }
    spans_free(report->spans);
    compiles_file_end(&report->compiles);
    lives_file_end(&report->lives);
    return status;
}

enum status
report_read_all(struct report *report, uint64_t max_faults, int file_count, char **files)
{
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++) status = worse(status, read_one(report, files[i], max_faults));
    report_settle(report);
    return status;
}

bool
report_step_wanted(struct report *report, const struct life_step *step)
{
    return time_wanted(report, step->ts_ns) && glob_matches(&report->method_glob, report->pool, step->iseq, label_matches);
}

bool
report_readable(const struct report *report)
{
    for (uint32_t i = 0; i < report->file_count; i++) {
        if (report->files[i].counts.records > 0) return true;
    }
    return false;
}
