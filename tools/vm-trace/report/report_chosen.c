/* report_chosen.c - see report_chosen.h */
#include <stdlib.h>

#include "topics/kernel/cpu_tracks.h"
#include "report/report_chosen.h"
#include "base/xalloc.h"

/* The end of the last event, from the first one on. */
static int64_t
length_of(const struct report *report)
{
    int64_t last_ns = report->start_ns;
    if (report->chooses) return trace_filter_length_ns(&report->choice);
    for (uint32_t i = 0; i < report->file_count; i++) {
        if (report->files[i].last_ns > last_ns) last_ns = report->files[i].last_ns;
    }
    for (uint32_t i = 0; i < report->threads.count; i++) {
        if (report_thread(report, i)->last_ns > last_ns) last_ns = report_thread(report, i)->last_ns;
    }
    return last_ns - report->start_ns;
}

/* Whether it is a thread with a name; others are tracks beside one. */
static bool
named_p(const struct report_thread *thread)
{
    return thread->name != STRING_NONE && (thread->runs != STRING_NONE || native_tid_p(thread->tid));
}

static enum status
check(const char *command, struct report *report, struct choice_seen *seen, uint32_t from, uint32_t to)
{
    const struct trace_choice *choice = report->chooses ? &report->choice.choice : &report->filter;
    uint32_t *names = xcalloc(report->threads.count + 1, sizeof *names);
    seen->pool = report->pool;
    seen->threads = names;
    for (uint32_t i = 0; i < report->threads.count; i++) {
        const struct report_thread *thread = report_thread(report, i);
        uint32_t file = report_process(report, thread->process)->file;
        if (file < from || file >= to) continue;
        seen->thread |= report_thread_wanted(report, i);
        if (named_p(thread)) names[seen->thread_count++] = thread->name;
    }
    enum status status = choice_check(command, choice, seen);
    free(names);
    return status;
}

enum status
report_check_chosen(const char *command, const char *where, struct report *report)
{
    struct choice_seen seen = {
        .where = where, .length_ns = length_of(report), .reason = &report->reason_glob, .method = &report->method_glob};
    bool any = report->has_events || (report->chooses && report->choice.begun);
    for (uint32_t i = 0; i < report->calls.sums.count && report->filter.reason == NULL; i++) {
        const struct call_sum *call = row_table_at(&report->calls.sums, i);
        glob_matches(&report->method_glob, report->pool, call->name); /* not all have been tried yet */
    }
    return any ? check(command, report, &seen, 0, report->file_count) : STATUS_FINE;
}

enum status
report_check_thread(const char *command, const char *where, struct report *report, uint32_t from, uint32_t to)
{
    struct choice_seen seen = {.where = where, .length_ns = INT64_MAX};
    return check(command, report, &seen, from, to);
}
