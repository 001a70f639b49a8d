/* kernel_gather.c - gathers system calls and times on CPUs for a report. */
#include "topics/kernel/cpu_tracks.h"
#include "topics/report_data.h"

TOPIC_CALL(init, kernel_sums_init(&report->kernel))
TOPIC_CALL(free_all, kernel_sums_free(&report->kernel))

static void
window(struct report *report, struct interval window)
{
    kernel_sums_set_window(&report->kernel, window);
}

static void
file_end(struct report *report)
{
    report->recorded[TOPIC_syscalls] = report->has[STRING_SYSCALL];
    kernel_sums_file_end(&report->kernel);
}

static void
about_trace(struct report *report, const struct topic_event *of)
{
    kernel_sums_trace(&report->kernel, of->whole, of->event);
}

/* Calls and system calls have no reason. */
static void
of_thread(struct report *report, const struct topic_event *of)
{
    bool of_methods = report->filter.method != NULL; /* which are known for callers only */
    if (report->filter.reason != NULL) return;
    if (of->event->category.id == STRING_CALL)
        kernel_sums_call(&report->kernel, report->pool, of->whole, of->native, of->event);
    else kernel_sums_syscall(&report->kernel, report->pool, of->whole, of->native, of_methods, of->event);
}

static void
piece(struct report *report, const struct thread_times *times, enum thread_state state, struct interval time)
{
    const struct report_thread *thread = report_thread(report, times->row);
    if (state == THREAD_RUNNING || state == THREAD_IN_GC)
        kernel_sums_held(&report->kernel, thread->process, thread->tid, time);
}

const struct topic topic_syscalls = {
    .init = init,
    .free = free_all,
    .window = window,
    .file_end = file_end,
    .categories = {STRING_CALL, STRING_SYSCALL},
    .about_trace = about_trace,
    .of_thread = of_thread,
    .piece = piece,
    .tables = syscalls_tables,
};

/* --- CPUs, whose sums are a part of the same -------------------------------------------------------- */

/* --thread names the thread of a CPU's track, too. */
static bool
cpu_wanted(struct report *report, struct report_thread *track)
{
    if (track->wanted < 0 && report->filter.thread != NULL) {
        struct fxt_string name = cpu_track_thread_name(pool_string(report->pool, track->name));
        struct report_thread thread = {.tid = cpu_track_native_tid(track->tid), .wanted = -1};
        thread.name = pool_intern(report->pool, name.ptr, name.len);
        if (report_thread_passes(report, &thread)) track->wanted = 1;
    }
    return report_thread_passes(report, track);
}

static void
any_cpu(struct report *report, const struct topic_event *of)
{
    if (of->event->type != FXT_EVENT_DURATION_COMPLETE) return;
    report->recorded[TOPIC_sched] = true;
    if (report->exits_only || !cpu_wanted(report, report_thread(report, of->native))) return;
    kernel_sums_cpu(&report->kernel, report->pool, of->whole, of->native, of->event);
    if (report_time_wanted(report, of->event->ts_ns)) report_counts_in(report, of->event->ts_ns, of->event->end_ns);
}

const struct topic topic_sched = {
    .categories = {STRING_SCHED},
    .any = any_cpu,
    .tables = sched_tables,
};
