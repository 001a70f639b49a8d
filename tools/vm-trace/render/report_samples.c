/* report_samples.c - the tables of a report about samples of time: what threads did, and where they ran or waited. */
#include <string.h>

#include "render/report_tables.h"
#include "render/report_view.h"

static void
add_times(struct sample_times *sum, const struct sample_times *times)
{
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++) sum->ns[state] += times->ns[state];
    sum->records += times->records;
}

/* --- threads ---------------------------------------------------------------------------------------- */

enum { T_TIME, T_NOT_SAMPLED, T_STATES, T_PID = T_STATES + TIME_SAMPLE_STATES, T_TID, T_THREAD, THREAD_CELLS };

static uint64_t
all_ns(const struct sample_times *times)
{
    return sample_times_ns(times, false) + sample_times_ns(times, true);
}

/* The time of a thread: that of its samples, and what has none. Samples of CPU time are of another clock. */
static uint64_t
thread_ns(const struct report *report, const struct sample_thread *thread)
{
    uint64_t ns = all_ns(&thread->times);
    return report->samples.all.cpu ? ns : report_thread_ns(report, thread->thread, ns);
}

static void
put_thread_times(struct cell *cells, const struct sample_times *times, uint64_t whole_ns)
{
    uint64_t ns = all_ns(times);
    cells[T_TIME] = cell_number(ns);
    cells[T_NOT_SAMPLED] = cell_number(whole_ns - ns);
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++)
        cells[T_STATES + state] = cell_share(times->ns[state], ns);
}

static int
by_time(const void *left, const void *right, void *context)
{
    const struct sample_thread *a = left, *b = right;
    (void)context;
    uint64_t a_ns = sample_times_ns(&a->times, false), b_ns = sample_times_ns(&b->times, false);
    if (a_ns != b_ns) return a_ns > b_ns ? -1 : 1;
    a_ns = all_ns(&a->times), b_ns = all_ns(&b->times);
    if (a_ns != b_ns) return a_ns > b_ns ? -1 : 1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

/* Columns of states that no thread had are not for people. */
static void
title_states(struct column *columns, const struct sample_times *sum)
{
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++) {
        columns[state] = (struct column){time_sample_names[state], time_sample_titles[state], COLUMN_SHARE};
        if (sum->ns[state] == 0) columns[state].title = NULL;
    }
}

static void
add_threads(const struct view *view)
{
    struct report *report = view->report;
    struct row_table *threads = &report->samples.threads;
    struct column columns[THREAD_CELLS] = {
        [T_TIME] = {"time_ns", "time", COLUMN_DURATION},
        [T_NOT_SAMPLED] = {"not_sampled_ns", "not sampled", COLUMN_DURATION},
        [T_PID] = {"pid", NULL, COLUMN_NUMBER},
        [T_TID] = {"tid", "tid", COLUMN_NUMBER},
        [T_THREAD] = {"thread", "thread", COLUMN_TEXT},
    };
    struct sample_times sum = {0}, rest = {0};
    uint64_t whole = 0, rest_ns = 0;
    row_table_sort(threads, by_time, NULL);
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct sample_thread *thread = row_table_at(threads, i);
        add_times(&sum, &thread->times);
        whole += thread_ns(report, thread);
    }
    title_states(&columns[T_STATES], &sum);
    char number[NUMBER_TEXT], time[NUMBER_TEXT], all[NUMBER_TEXT], of_all[NUMBER_TEXT + 24];
    if (!view_unseen_shown(whole - all_ns(&sum), whole)) columns[T_NOT_SAMPLED].title = NULL;
    snprintf(of_all, sizeof of_all, "the %s of these threads", duration_text(all, whole));
    bool periodic = report->samples.all.period_ns > 0;
    struct fxt_string title = document_text(
        view->document, "Samples by thread and state (%%: of the sampled time): %s of %s, %s%s",
        duration_text(time, all_ns(&sum)), report->samples.all.cpu ? "CPU time" : of_all, periodic ? "one each " : "",
        periodic ? duration_text(number, report->samples.all.period_ns) : with_commas(number, sum.records));
    if (!periodic) title = document_text(view->document, "%s records", title.ptr);
    title = view_title(view, title, report->samples.all.unknown, "definitions, which the trace lacks");
    struct table *table = document_table(view->document, "samples_by_thread", title, columns, THREAD_CELLS);
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct sample_thread *sampled = row_table_at(threads, i);
        const struct report_thread *thread = report_thread(report, sampled->thread);
        if (i >= view->top) {
            add_times(&rest, &sampled->times);
            rest_ns += thread_ns(report, sampled);
            continue;
        }
        struct cell *cells = table_row(table);
        put_thread_times(cells, &sampled->times, thread_ns(report, sampled));
        cells[T_PID] = cell_number(report_process(report, thread->process)->pid);
        cells[T_TID] = cell_number(thread->tid);
        cells[T_THREAD] = cell_text(view_name(view, thread->name));
    }
    if (threads->count <= view->top) return;
    table->more_rows = threads->count - view->top;
    put_thread_times(table_row(table), &rest, rest_ns);
}

/* --- methods and lines -------------------------------------------------------------------------------- */

enum { M_OWN, M_SHARE, M_ERROR, M_STATES, M_TOTAL = M_STATES + TIME_SAMPLE_STATES, M_METHOD, METHOD_CELLS };

struct place_table {
    const char *id;
    const char *title; /* followed by the whole time */
    bool waits;
    bool total; /* by total time; else by own time, and only with own time */
};

static void
put_own(struct cell *cells, const struct sample_times *own, bool waits, uint64_t whole)
{
    uint64_t ns = sample_times_ns(own, waits);
    cells[M_OWN] = cell_number(ns);
    cells[M_SHARE] = cell_share(ns, whole);
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++) {
        if (time_sample_waits((enum time_sample_state)state) == waits)
            cells[M_STATES + state] = cell_share(own->ns[state], ns);
    }
}

static void
add_places(const struct view *view, struct row_table *rows, const struct place_table *places)
{
    struct report *report = view->report;
    bool waits = places->waits;
    uint64_t whole = sample_threads_ns(&report->samples.threads, waits), period_ns = report->samples.all.period_ns;
    uint64_t sampled = whole + sample_threads_ns(&report->samples.threads, !waits);
    if (whole == 0) return;
    struct column columns[METHOD_CELLS] = {
        [M_OWN] = {"own_ns", "own", COLUMN_DURATION},
        [M_SHARE] = {"own_share", "share", COLUMN_SHARE},
        [M_ERROR] = {"own_error_ns", period_ns > 0 && !waits ? "\302\261" : NULL, COLUMN_DURATION},
        [M_TOTAL] = {"total_ns", "total", COLUMN_DURATION},
        [M_METHOD] = {"method", "method", COLUMN_TEXT},
    };
    struct sample_times sum = {0}, rest = {0};
    sample_sums_sort(rows, report->pool, waits, places->total);
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct sample_row *row = row_table_at(rows, i);
        add_times(&sum, &row->own);
        count += (places->total ? row->total_ns[waits] : sample_times_ns(&row->own, waits)) > 0;
    }
    title_states(&columns[M_STATES], &sum);
    for (unsigned state = 0; state < TIME_SAMPLE_STATES; state++) {
        if (time_sample_waits((enum time_sample_state)state) != waits) columns[M_STATES + state].title = NULL;
    }
    char time[NUMBER_TEXT];
    struct fxt_string title = document_text(
        view->document, "%s, %s in all (share: of these; %% of states: of own)", places->title, duration_text(time, whole));
    struct table *table = document_table(view->document, places->id, title, columns, METHOD_CELLS);
    for (uint32_t i = 0; i < count; i++) {
        const struct sample_row *row = row_table_at(rows, i);
        if (i >= view->top) {
            add_times(&rest, &row->own);
            continue;
        }
        struct cell *cells = table_row(table);
        uint64_t own_ns = sample_times_ns(&row->own, waits);
        put_own(cells, &row->own, waits, whole);
        /* A wait has one sample for many periods, which says how long it was. */
        if (period_ns > 0 && !waits)
            cells[M_ERROR] = cell_number((uint64_t)sample_error_ns(own_ns, sampled, period_ns));
        cells[M_TOTAL] = cell_number(row->total_ns[waits]);
        cells[M_METHOD] = cell_text(view_name(view, row->text));
    }
    if (count <= view->top) return;
    table->more_rows = count - view->top;
    put_own(table_row(table), &rest, waits, whole); /* total times of several methods have parts in common */
}

static const struct place_table
    ran_by_method = {"samples_by_method", "Samples by method: where threads ran", false, false},
    ran_by_line = {"samples_by_line", "Samples by line: where threads ran", false, false},
    ran_in_all = {"samples_by_total", "Samples by total time of methods: where threads ran", false, true},
    waited_by_method = {"sampled_waits_by_method", "Samples by method: where threads waited", true, false},
    waited_by_line = {"sampled_waits_by_line", "Samples by line: where threads waited", true, false};

void
view_add_samples(const struct view *view)
{
    struct report_samples *samples = &view->report->samples;
    if (samples->threads.count == 0) return;
    view_thread_pools(view, add_threads, "time_ns", "time_ns");
    struct row_table methods = sample_sums(&samples->all, false);
    add_places(view, &methods, &ran_by_method);
    add_places(view, &methods, &waited_by_method);
    row_table_free(&methods);
}

void
report_sample_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    if (report->samples.threads.count == 0) {
        document_line(document, "samples", view_nothing(&view, REPORT_SAMPLES));
        return;
    }
    view_thread_pools(&view, add_threads, "time_ns", "time_ns");
    struct row_table methods = sample_sums(&report->samples.all, false);
    struct row_table lines = sample_sums(&report->samples.all, true);
    add_places(&view, &methods, &ran_by_method);
    add_places(&view, &lines, &ran_by_line);
    add_places(&view, &methods, &ran_in_all);
    add_places(&view, &methods, &waited_by_method);
    add_places(&view, &lines, &waited_by_line);
    row_table_free(&methods);
    row_table_free(&lines);
}
