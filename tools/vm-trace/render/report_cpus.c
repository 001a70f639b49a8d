/* report_cpus.c - the tables of a report about the kernel's scheduler: how long threads had a CPU or waited for
 * one, and which tasks had it meanwhile. */
#include <string.h>

#include "analysis/cpu_tracks.h"
#include "render/report_tables.h"
#include "render/report_view.h"

static struct fxt_string
thread_name(const struct view *view, uint32_t track)
{
    const struct fxt_string name = cpu_track_thread_name(view_name(view, report_thread(view->report, track)->name));
    return document_text(view->document, "%.*s", (int)name.len, name.ptr);
}

enum {
    C_CPU, C_WAIT, C_PREEMPTED, C_WOKEN, C_LONGEST, C_RUNS, C_MIGRATIONS, C_HELD, C_PID, C_TID, C_THREAD, CPU_CELLS
};

static void
put_times(struct cell *cells, const struct cpu_thread *thread, const uint64_t *held_ns)
{
    cells[C_CPU] = cell_number(thread->cpu_ns);
    cells[C_WAIT] = cell_number(cpu_wait_ns(thread));
    cells[C_PREEMPTED] = cell_number(thread->preempted_ns);
    cells[C_WOKEN] = cell_number(thread->woken_ns);
    cells[C_RUNS] = cell_number(thread->runs);
    cells[C_MIGRATIONS] = cell_number(thread->migrations);
    if (held_ns != NULL) cells[C_HELD] = cell_number(*held_ns);
}

static void
add_times(struct cpu_thread *sum, const struct cpu_thread *thread)
{
    sum->cpu_ns += thread->cpu_ns;
    sum->preempted_ns += thread->preempted_ns;
    sum->woken_ns += thread->woken_ns;
    sum->runs += thread->runs;
    sum->migrations += thread->migrations;
}

/* "CPU: 3 threads had one for 1.2 s, and waited 31.0 ms for one; 12 shorter times are not recorded" */
static struct fxt_string
threads_title(const struct view *view, const struct cpu_thread *sum)
{
    const struct report *report = view->report;
    char threads[NUMBER_TEXT], ran[NUMBER_TEXT], waited[NUMBER_TEXT], shorter[NUMBER_TEXT];
    uint64_t left_out = report->kernel.slices_left_out;
    struct fxt_string title = document_text(
        view->document, "CPU: %s thread%s had one for %s and waited %s for one%s%s%s",
        with_commas(threads, report->kernel.cpus.threads.count), report->kernel.cpus.threads.count == 1 ? "" : "s",
        duration_text(ran, sum->cpu_ns), duration_text(waited, cpu_wait_ns(sum)), left_out > 0 ? "; " : "",
        left_out > 0 ? with_commas(shorter, left_out) : "", left_out > 0 ? " shorter times are not recorded" : "");
    return view_title(view, title, report->kernel.cpus.uncounted, "threads or tasks");
}

static void
add_threads(const struct view *view)
{
    static const struct column columns[CPU_CELLS] = {
        [C_CPU] = {"cpu_ns", "on a CPU", COLUMN_DURATION},
        [C_WAIT] = {"wait_ns", NULL, COLUMN_DURATION}, /* the sum of the two that follow */
        [C_PREEMPTED] = {"preempted_ns", "preempted", COLUMN_DURATION},
        [C_WOKEN] = {"woken_ns", "woken", COLUMN_DURATION},
        [C_LONGEST] = {"longest_wait_ns", "longest", COLUMN_DURATION},
        [C_RUNS] = {"runs", "runs", COLUMN_COUNT},
        [C_MIGRATIONS] = {"migrations", "migrations", COLUMN_COUNT},
        [C_HELD] = {"gvl_without_cpu_ns", "GVL, no CPU", COLUMN_DURATION},
        [C_PID] = {"pid", NULL, COLUMN_NUMBER},
        [C_TID] = {"tid", "tid", COLUMN_NUMBER},
        [C_THREAD] = {"thread", "thread", COLUMN_TEXT},
    };
    struct report *report = view->report;
    struct row_table *threads = &report->kernel.cpus.threads;
    struct cpu_thread sum = {0}, rest = {0};
    uint64_t rest_held_ns = 0;
    bool any_held = false;
    cpu_times_sort(&report->kernel.cpus, report->pool);
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct cpu_thread *thread = row_table_at(threads, i);
        add_times(&sum, thread);
        any_held |= cpu_times_held_ns(&report->kernel.cpus, thread) != NULL;
    }
    struct column shown[CPU_CELLS];
    memcpy(shown, columns, sizeof shown);
    if (!any_held) shown[C_HELD].title = NULL;
    struct table *table = document_table(view->document, "cpu", threads_title(view, &sum), shown, CPU_CELLS);
    table->data = threads->count == 0;
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct cpu_thread *thread = row_table_at(threads, i);
        const uint64_t *held_ns = cpu_times_held_ns(&report->kernel.cpus, thread);
        if (i >= view->top) {
            add_times(&rest, thread);
            rest_held_ns += held_ns != NULL ? *held_ns : 0;
            continue;
        }
        struct cell *cells = table_row(table);
        put_times(cells, thread, held_ns);
        cells[C_LONGEST] = cell_number(thread->longest_wait_ns);
        cells[C_PID] = cell_number(report_process(report, thread->process)->pid);
        cells[C_TID] = cell_number(thread->tid);
        cells[C_THREAD] = cell_text(thread_name(view, thread->track));
    }
    if (threads->count <= view->top) return;
    table->more_rows = threads->count - view->top;
    put_times(table_row(table), &rest, any_held ? &rest_held_ns : NULL);
}

/* --- who had the CPU ---------------------------------------------------------------------------------- */

static void
add_others(const struct view *view)
{
    static const struct column columns[] = {
        {"total_ns", "waited", COLUMN_DURATION}, {"share", "share", COLUMN_SHARE},
        {"waits", "waits", COLUMN_COUNT},        {"other", "for", COLUMN_TEXT},
        {"pid", NULL, COLUMN_NUMBER},            {"tid", "tid", COLUMN_NUMBER},
        {"thread", "thread", COLUMN_TEXT},
    };
    struct report *report = view->report;
    struct row_table *others = &report->kernel.cpus.others;
    uint64_t total_ns = 0, rest_ns = 0, rest_waits = 0;
    for (uint32_t i = 0; i < others->count; i++) total_ns += ((struct cpu_other *)row_table_at(others, i))->total_ns;
    struct table *table = document_table(view->document, "cpu_others",
                                         text_of("Tasks that had the CPU while threads waited for it"),
                                         COLUMNS(columns));
    table->data = others->count == 0;
    for (uint32_t i = 0; i < others->count; i++) {
        const struct cpu_other *other = row_table_at(others, i);
        const struct cpu_thread *thread = cpu_other_thread(&report->kernel.cpus, other);
        if (i >= view->top) {
            rest_ns += other->total_ns;
            rest_waits += other->waits;
            continue;
        }
        struct cell *cells = table_row(table);
        cells[0] = cell_number(other->total_ns);
        cells[1] = cell_share(other->total_ns, total_ns);
        cells[2] = cell_number(other->waits);
        cells[3] = cell_text(view_name(view, other->other));
        cells[4] = cell_number(report_process(report, other->process)->pid);
        cells[5] = cell_number(other->tid);
        cells[6] = cell_text(thread_name(view, thread->track));
    }
    if (others->count <= view->top) return;
    table->more_rows = others->count - view->top;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest_ns);
    cells[1] = cell_share(rest_ns, total_ns);
    cells[2] = cell_number(rest_waits);
}

/* --- all ---------------------------------------------------------------------------------------------- */

void
view_add_cpus(const struct view *view)
{
    if (view->report->kernel.cpus.threads.count == 0) return; /* not recorded */
    add_threads(view);
    add_others(view);
}

void
report_cpu_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    if (report->kernel.cpus.threads.count == 0)
        document_line(document, "CPUs", view_nothing(&view, REPORT_CPUS));
    add_threads(&view);
    add_others(&view);
}
