/* trace_filter.c - see trace_filter.h */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/advice.h"
#include "analysis/cpu_tracks.h"
#include "analysis/reason.h"
#include "base/escape.h"
#include "base/xalloc.h"
#include "cli/trace_filter.h"

enum { THREADS_NAMED = 6 };

bool
trace_filter_window(const char *command, int64_t since_ns, int64_t until_ns)
{
    if ((since_ns > 0 ? since_ns : 0) < until_ns) return true;
    fprintf(stderr, "vm-trace: %s: --since is not before --until: the range is empty\n", command);
    return false;
}

/* The end of the last event, from the first one on. */
static int64_t
length_of(const struct report *report)
{
    int64_t last_ns = report->start_ns;
    for (uint32_t i = 0; i < report->file_count; i++) {
        if (report->files[i].last_ns > last_ns) last_ns = report->files[i].last_ns;
    }
    for (uint32_t i = 0; i < report->threads.count; i++) {
        if (report_thread(report, i)->last_ns > last_ns) last_ns = report_thread(report, i)->last_ns;
    }
    return last_ns - report->start_ns;
}

/* --- messages ------------------------------------------------------------------------------------------ */

static void
print_unmatched(const char *command, const char *what, const char *pattern)
{
    fprintf(stderr, "vm-trace: %s: no %s", command, what);
    print_escaped(stderr, text_of(pattern));
}

/* "; did you mean NAME?" */
static void
print_nearest(struct fxt_string name)
{
    fputs("; did you mean ", stderr);
    print_escaped(stderr, name);
    fputs("?\n", stderr);
}

/* --- threads --------------------------------------------------------------------------------------------- */

/* Its name, if it is a thread; others are tracks beside one. */
static struct fxt_string
thread_name(const struct report *report, uint32_t number)
{
    const struct report_thread *thread = report_thread(report, number);
    bool thread_p = thread->runs != STRING_NONE || native_tid_p(thread->tid);
    return thread_p && thread->name != STRING_NONE ? pool_string(report->pool, thread->name) : (struct fxt_string){0};
}

/* Prints the first names, each once. */
static void
print_threads(const struct report *report)
{
    unsigned named = 0;
    for (uint32_t i = 0; i < report->threads.count && named <= THREADS_NAMED; i++) {
        struct fxt_string name = thread_name(report, i);
        bool repeated = name.len == 0;
        for (uint32_t before = 0; before < i && !repeated; before++)
            repeated = report_thread(report, before)->name == report_thread(report, i)->name;
        if (repeated) continue;
        fputs(named == 0 ? "; there are " : ", ", stderr);
        if (named++ < THREADS_NAMED) print_escaped(stderr, name);
        else fputs("...", stderr);
    }
    fputs(named > 0 ? "\n" : "; the trace names none\n", stderr);
}

static bool
check_thread(const char *command, struct report *report)
{
    bool any = report->filter.thread == NULL;
    for (uint32_t i = 0; i < report->threads.count && !any; i++) any = report_thread_wanted(report, i);
    if (any) return true;
    struct nearest nearest = nearest_to(report->filter.thread);
    for (uint32_t i = 0; i < report->threads.count; i++) {
        struct fxt_string name = thread_name(report, i);
        if (name.len > 0) nearest_try(&nearest, name.ptr);
    }
    print_unmatched(command, "thread matches --thread=", report->filter.thread);
    if (nearest.name != NULL) print_nearest(text_of(nearest.name));
    else print_threads(report);
    return false;
}

/* --- reasons and methods ----------------------------------------------------------------------------------- */

/* Whether a JIT has such a reason. */
static bool
reason_known(const char *pattern)
{
    struct reason_names names;
    uint32_t *chosen = xcalloc(advice_count(), sizeof *chosen);
    bool known = advice_choose(pattern, chosen);
    free(chosen);
    for (size_t i = 0; !known && reason_at(i, &names); i++) known = reason_matches(pattern, text_of(names.trace));
    return known;
}

static enum status
check_reason(const char *command, const struct report *report)
{
    const struct glob *glob = &report->reason_glob;
    if (glob_matched_any(glob)) return STATUS_FINE;
    print_unmatched(command, "event has the reason ", glob->pattern);
    if (reason_known(glob->pattern)) {
        fputc('\n', stderr);
        return STATUS_FINE;
    }
    struct nearest nearest = nearest_to(glob->pattern);
    for (uint32_t id = 0; id < glob->size; id++) {
        if (glob->known[id] == GLOB_FAILS) nearest_try(&nearest, pool_string(report->pool, id).ptr);
    }
    reason_nearest(&nearest);
    if (nearest.name != NULL) print_nearest(text_of(nearest.name));
    else fputs("; vm-trace explain lists all\n", stderr);
    return STATUS_USAGE;
}

static enum status
check_method(const char *command, const struct report *report)
{
    const struct glob *glob = &report->method_glob;
    if (glob_matched_any(glob)) return STATUS_FINE;
    struct fxt_string nearest = glob_nearest_method(glob, report->pool);
    print_unmatched(command, "event is in a method ", glob->pattern);
    if (nearest.len > 0) print_nearest(nearest);
    else fputs("; a glob such as '*name*' matches part of a name\n", stderr);
    return STATUS_USAGE;
}

enum status
trace_filter_check(const char *command, struct report *report)
{
    if (!report->has_events) return STATUS_FINE;
    if (!trace_filter_window_in(command, report->filter.since_ns, length_of(report))) return STATUS_USAGE;
    if (!check_thread(command, report)) return STATUS_USAGE;
    enum status status = check_reason(command, report);
    return worse(status, check_method(command, report));
}
