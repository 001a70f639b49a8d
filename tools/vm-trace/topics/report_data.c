/* report_data.c - see report_data.h: the rows of processes and threads, and what passes the filter. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/event_args.h"
#include "analysis/own_frame.h"
#include "topics/report_data.h"

/* --- filters ---------------------------------------------------------------------------- */

bool
report_thread_matches(struct report *report, struct report_thread *thread)
{
    const char *wanted = report->filter.thread;
    if (thread->wanted < 0) {
        char tid[24];
        snprintf(tid, sizeof tid, "%" PRIu32, thread->tid);
        bool is_tid = thread->runs == STRING_NONE && strcmp(wanted, tid) == 0;
        thread->wanted = is_tid || fnmatch(wanted, pool_string(report->pool, thread->name).ptr, 0) == 0;
    }
    return thread->wanted;
}

bool
report_exit_wanted(struct report *report, uint32_t reason, uint32_t location)
{
    /* Both are asked: glob.h reports what nothing matches. */
    bool method = glob_matches(&report->method_glob, report->pool, location);
    return glob_matches(&report->reason_glob, report->pool, reason) && method;
}

bool
report_step_wanted(struct report *report, const struct version_step *step)
{
    return report_time_wanted(report, step->ts_ns) && glob_matches(&report->method_glob, report->pool, step->iseq);
}

bool
report_iseq_wanted(struct report *report, uint32_t iseq)
{
    if (report->filter.app_only && !frame_of_app(&report->owners, iseq)) return false;
    return report->filter.reason == NULL && glob_matches(&report->method_glob, report->pool, iseq);
}

uint32_t
report_frame(struct report *report, const struct fxt_event *event)
{
    return report->filter.app_only ? event_app_frame(&report->owners, event)
                                   : event_text(report->pool, event, STRING_FRAME_0);
}

uint32_t
report_own_frame(struct report *report, const struct fxt_event *event)
{
    return report->filter.app_only ? event_app_frame(&report->owners, event) : event_own_frame(report->pool, event);
}

/* A time relative to the first event as an absolute one. */
static int64_t
absolute_ns(const struct report *report, int64_t ns)
{
    int64_t sum;
    if (ns == INT64_MIN || ns == INT64_MAX) return ns;
    return __builtin_add_overflow(report->start_ns, ns, &sum) ? (ns < 0 ? INT64_MIN : INT64_MAX) : sum;
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

uint32_t
report_process_of(struct report *report, uint32_t recording, uint32_t pid)
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

uint32_t
report_thread_of(struct report *report, uint32_t recording, uint32_t pid, uint32_t tid)
{
    if (report->last_thread != REPORT_NO_THREAD && report->last_recording == recording) {
        const struct report_thread *last = report_thread(report, report->last_thread);
        if (last->tid == tid && report_process(report, last->process)->pid == pid) return report->last_thread;
    }
    uint32_t whole = report_whole(report, report_process_of(report, recording, pid));
    report->last_recording = recording;
    return report->last_thread = thread_row(report, whole, tid, STRING_NONE);
}

uint32_t
report_thread_running(struct report *report, uint32_t whole, uint32_t runs)
{
    return thread_row(report, whole, 0, runs);
}

/* The time of the first event is known: so the window is. */
static void
begin_time(struct report *report, int64_t ts_ns)
{
    report->has_events = true;
    report->start_ns = ts_ns;
    report->states.from_ns = absolute_ns(report, report->filter.since_ns);
    report->states.to_ns = absolute_ns(report, report->filter.until_ns);
    const struct interval window = {report->states.from_ns, report->states.to_ns};
    for (unsigned i = 0; i < topics_count; i++) {
        if (topics[i]->window != NULL) topics[i]->window(report, window);
    }
}

uint32_t
report_note(struct report *report, uint32_t recording, uint32_t pid, uint32_t tid, struct interval time,
            int64_t seen_ns)
{
    struct report_file *file = &report->files[report->file_count - 1];
    if (!report->has_events) begin_time(report, time.from_ns);
    if (time.from_ns < file->first_ns) file->first_ns = time.from_ns;
    if (time.from_ns > file->last_ns) file->last_ns = time.from_ns;
    uint32_t native = report_thread_of(report, recording, pid, tid);
    struct report_thread *thread = report_thread(report, native);
    struct report_process *process = report_process(report, report_piece(report, thread->process));
    process->shown = true;
    if (time.from_ns < process->first_ns) process->first_ns = time.from_ns;
    if (time.from_ns > process->last_ns) process->last_ns = time.from_ns;
    if (seen_ns > thread->seen_ns) thread->seen_ns = seen_ns;
    if (time.from_ns < thread->first_ns) thread->first_ns = time.from_ns;
    if (time.to_ns > thread->last_ns) thread->last_ns = time.to_ns;
    return native;
}

uint32_t
report_moment(struct report *report, uint32_t recording, uint32_t pid, uint32_t tid, int64_t ts_ns)
{
    return report_note(report, recording, pid, tid, (struct interval){ts_ns, ts_ns}, ts_ns);
}

uint64_t
report_thread_ns(const struct report *report, uint32_t number, uint64_t of_stream_ns)
{
    const struct report_thread *thread = report_thread(report, number);
    const struct thread_states *window = &report->states;
    int64_t first_ns = thread->first_ns > window->from_ns ? thread->first_ns : window->from_ns;
    int64_t last_ns = thread->last_ns < window->to_ns ? thread->last_ns : window->to_ns;
    uint64_t ns = last_ns > first_ns ? (uint64_t)(last_ns - first_ns) : 0;
    return ns > of_stream_ns ? ns : of_stream_ns;
}

/* --- settings -------------------------------------------------------------------------------- */

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

bool
report_timed(const struct report *report)
{
    for (uint32_t i = 0; i < report->processes.count; i++) {
        if (report_process(report, i)->timed) return true;
    }
    return false;
}
