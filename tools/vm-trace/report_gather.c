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
    bool fallback = event->category.id == WORD_FALLBACK;
    uint32_t location = event_text(report->pool, event, WORD_FRAME_0);
    const uint32_t key[PLACE_KEYS] = {
        thread->process,
        event->category.id,
        pool_id(report->pool, event->name),
        location,
        event_text(report->pool, event, WORD_INSN),
        (uint32_t)event_uint(event, WORD_VERSION, 0),
        inlined_into(report, event, location),
    };
    if (!place_wanted(report, key[2], key[3])) return;
    *(fallback ? &thread->fallbacks : &thread->exits) += weight;
    struct report_process *process = report_process(report, thread->process);
    process->recorded++;
    if (weight != 1) process->sampled = true;
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
        event_text(report->pool, event, WORD_REASON),
        location,
        event_text(report->pool, event, WORD_INSN),
        (uint32_t)event_uint(event, WORD_VERSION, 0),
        inlined_into(report, event, location),
    };
    report_process(report, number)->sites++;
    if (report->times_only || !place_wanted(report, key[2], key[3])) return;
    struct place *place = places_get(&report->places, key);
    if (place != NULL) place->hits += event_uint(event, WORD_HITS, 0);
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

static void
add_duration(struct report *report, uint32_t category, uint32_t name, bool outermost, uint64_t ns)
{
    struct group *group = category == WORD_INVALIDATION ? &report->invalidations
                          : category != WORD_COMPILE    ? &report->durations
                          : outermost                   ? &report->compiles
                                                        : &report->phases;
    /* The name of a whole compilation is that of the method: they are one row. */
    const uint32_t key[2] = {category, group == &report->compiles ? STRING_NONE : name};
    struct report_span *span = group_row(group, key);
    if (span != NULL) durations_add(&span->durations, ns);
    else report->untold++;
}

static void
on_span(void *context, const struct span_edge *begin, const struct span_edge *end)
{
    struct report *report = context;
    if (begin == NULL || !time_wanted(report, begin->ts_ns)) return;
    if (end == NULL) report->unended++;
    else if (begin->category != WORD_INVALIDATION || begin->outermost) add_duration(report, begin->category, begin->name, begin->outermost, (uint64_t)(end->ts_ns - begin->ts_ns));
}

static void
add_compiled(struct report *report, const struct fxt_event *event)
{
    if (event->category.id != WORD_COMPILE || fxt_event_arg(event, WORD_CODE_BYTES) == NULL) return;
    report->code_bytes += event_uint(event, WORD_CODE_BYTES, 0);
    if (event_uint(event, WORD_VERSION, 1) == 0) report->compiled_nothing++;
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
    if (event->type == FXT_EVENT_DURATION_COMPLETE && !report->exits_only) {
        add_duration(report, pool_id(report->pool, event->category), pool_id(report->pool, event->name), true,
                     (uint64_t)(event->end_ns - event->ts_ns));
    }
    if (event->type == FXT_EVENT_DURATION_END || event->type == FXT_EVENT_DURATION_COMPLETE) add_compiled(report, event);
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
    struct group *spans[] = {&report->compiles, &report->phases, &report->invalidations, &report->durations};
    for (unsigned i = 0; i < 4; i++) group_init(spans[i], sizeof(struct report_span), 2, REPORT_SPANS_MAX);
    return report;
}

void
report_free(struct report *report)
{
    struct group *spans[] = {&report->compiles, &report->phases, &report->invalidations, &report->durations};
    for (unsigned i = 0; i < 4; i++) {
        for (uint32_t row = 0; row < spans[i]->count; row++) {
            struct report_span *span = group_at(spans[i], row);
            durations_free(&span->durations);
        }
        group_free(spans[i]);
    }
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
    lives_file_end(&report->lives);
    return status;
}

static void
settle(struct report *report)
{
    lives_settle(&report->lives);
    for (uint32_t i = 0; i < report->processes.count; i++) {
        struct report_process *process = report_process(report, i);
        if (process->said_lost > process->lost) process->lost = process->said_lost;
        bool whole = process->summarized && (process->said_sites == UINT64_MAX || process->said_sites == process->sites);
        /* Of a snapshot that begins late the sites tell more than what it is of. */
        bool beyond = process->snapshot ? process->sampled && process->lost == 0 : process->sampled || process->lost > 0;
        process->exact = whole && !report->times_only && beyond;
    }
    for (uint32_t i = 0; i < report->places.group.count; i++) {
        struct place *place = group_at(&report->places.group, i);
        struct report_process *process = report_process(report, place->process);
        place->count = process->exact ? place->hits : place->weighted;
        *(place->category == WORD_FALLBACK ? &process->fallbacks : &process->exits) += place->count;
    }
}

enum status
report_read_all(struct report *report, uint64_t max_faults, int file_count, char **files)
{
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++) status = worse(status, read_one(report, files[i], max_faults));
    settle(report);
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
