/* cpu_tables.c - the tables of a report about the kernel's scheduler: how long threads had a CPU or waited for
 * one, and which tasks had it meanwhile. */
#include "topics/kernel/cpu_tracks.h"
#include "topics/report_view.h"

static struct fxt_string
thread_name(const struct view *view, uint32_t track)
{
    const struct fxt_string name = cpu_track_thread_name(view_name(view, report_thread(view->report, track)->name));
    return document_text(view->document, "%.*s", (int)name.len, name.ptr);
}

/* "CPU: 3 threads had one for 1.2 s, and waited 31.0 ms for one; 12 shorter times are not recorded" */
static struct fxt_string
threads_title(const struct view *view, uint64_t cpu_ns, uint64_t wait_ns)
{
    const struct report *report = view->report;
    char threads[NUMBER_TEXT], ran[NUMBER_TEXT], waited[NUMBER_TEXT], shorter[NUMBER_TEXT];
    uint64_t left_out = report->kernel.slices_left_out;
    struct fxt_string title = document_text(
        view->document, "CPU: %s thread%s had one for %s and waited %s for one%s%s%s",
        with_commas(threads, report->kernel.cpus.threads.count), report->kernel.cpus.threads.count == 1 ? "" : "s",
        duration_text(ran, cpu_ns), duration_text(waited, wait_ns), left_out > 0 ? "; " : "",
        left_out > 0 ? with_commas(shorter, left_out) : "", left_out > 0 ? " shorter times are not recorded" : "");
    return view_title(view, title, report->kernel.cpus.uncounted, "threads or tasks");
}

enum { WAIT, HELD, THREAD };

static struct cell
thread_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct cpu_thread *thread = row;
    if (own == WAIT) return cell_number(cpu_wait_ns(thread));
    if (own == THREAD) return cell_text(thread_name(def->view, thread->track));
    const uint64_t *held_ns = cpu_times_held_ns(&def->view->report->kernel.cpus, thread);
    return held_ns != NULL ? cell_number(*held_ns) : (struct cell){0};
}

static void
add_threads(const struct view *view)
{
    enum { ANY_HELD = 1 };
    static const struct table_column columns[] = {
        {"cpu_ns", "on a CPU", COLUMN_DURATION, SUMMED(cpu_thread, cpu_ns)},
        {"wait_ns", NULL, COLUMN_DURATION, OWN_SUM(WAIT)}, /* the sum of the two that follow */
        {"preempted_ns", "preempted", COLUMN_DURATION, SUMMED(cpu_thread, preempted_ns)},
        {"woken_ns", "woken", COLUMN_DURATION, SUMMED(cpu_thread, woken_ns)},
        {"longest_wait_ns", "longest", COLUMN_DURATION, MEMBER(cpu_thread, longest_wait_ns)},
        {"runs", "runs", COLUMN_COUNT, SUMMED(cpu_thread, runs)},
        {"migrations", "migrations", COLUMN_COUNT, SUMMED(cpu_thread, migrations)},
        {"gvl_without_cpu_ns", "GVL, no CPU", COLUMN_DURATION, OWN_SUM(HELD), .people_if = ANY_HELD,
         .value_if = ANY_HELD},
        {"pid", NULL, COLUMN_NUMBER, PROCESS_PID(cpu_thread, process)},
        {"tid", "tid", COLUMN_NUMBER, MEMBER(cpu_thread, tid)},
        {"thread", "thread", COLUMN_TEXT, OWN_CELL(THREAD)},
    };
    struct cpu_times *cpus = &view->report->kernel.cpus;
    struct table_def def = {.view = view, .id = "cpu", .rows = &cpus->threads, COLUMNS_OF(columns),
                            .cell = thread_cell};
    cpu_times_sort(cpus, view->report->pool);
    for (uint32_t i = 0; i < cpus->threads.count; i++) {
        if (cpu_times_held_ns(cpus, row_table_at(&cpus->threads, i)) != NULL) def.given = ANY_HELD;
    }
    def.title = threads_title(view, view_table_sum(&def, "cpu_ns"), view_table_sum(&def, "wait_ns"));
    view_table(&def);
}

/* --- who had the CPU ---------------------------------------------------------------------------------- */

static struct cell
waiting_thread(const struct table_def *def, unsigned own, const void *row)
{
    return cell_text(thread_name(def->view, cpu_other_thread(&def->view->report->kernel.cpus, row)->track));
}

static void
add_others(const struct view *view)
{
    static const struct table_column columns[] = {
        {"total_ns", "waited", COLUMN_DURATION, SUMMED(cpu_other, total_ns)},
        {"share", "share", COLUMN_SHARE, SHARE_OF("total_ns")},
        {"waits", "waits", COLUMN_COUNT, SUMMED(cpu_other, waits)},
        {"other", "for", COLUMN_TEXT, NAMED(cpu_other, other)},
        {"pid", NULL, COLUMN_NUMBER, PROCESS_PID(cpu_other, process)},
        {"tid", "tid", COLUMN_NUMBER, MEMBER(cpu_other, tid)},
        {"thread", "thread", COLUMN_TEXT, OWN_CELL(0)},
    };
    view_table(&(struct table_def){.view = view, .id = "cpu_others", .rows = &view->report->kernel.cpus.others,
                                   .title = text_of("Tasks that had the CPU while threads waited for it"),
                                   COLUMNS_OF(columns), .cell = waiting_thread});
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
sched_tables(const struct view *view)
{
    struct report *report = view->report;
    struct document *document = view->document;
    if (report->kernel.cpus.threads.count == 0)
        document_line(document, "CPUs", view_nothing(view, TOPIC_sched));
    add_threads(view);
    add_others(view);
}
