/* report_syscalls.c - the tables of a report about system calls: by name, by the Ruby method that made them,
 * by thread, and their errors. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/report_tables.h"
#include "render/report_view.h"
#include "render/syscall_text.h"

/* What the tables have in common. */
struct syscalls_view {
    const struct view *view;
    struct row_table names; /* of struct syscall_sum, of all threads, by time */
    struct syscall_totals sum;
    uint64_t all_ns;   /* of the threads with system calls */
    bool all;          /* all tables, not only the first ones */
};

/* A thread's own sums: rows of struct syscall_sum with name 0. */
static struct row_table
group_threads(const struct report *report)
{
    struct row_table rows;
    row_table_init(&rows, sizeof(struct syscall_sum), SYSCALL_SUM_KEYS, SYSCALL_ROWS_MAX);
    for (uint32_t i = 0; i < report->kernel.syscalls.sums.count; i++) {
        const struct syscall_sum *sum = row_table_at(&report->kernel.syscalls.sums, i);
        const uint32_t key[SYSCALL_SUM_KEYS] = {sum->thread, 0};
        struct syscall_sum *row = row_table_get(&rows, key); /* not more than there are sums */
        syscall_totals_add(&row->totals, &sum->totals);
    }
    return rows;
}

static struct syscalls_view
syscalls_view(const struct view *view, bool all)
{
    struct report *report = view->report;
    struct syscalls_view syscalls = {.view = view, .all = all};
    syscalls.names = syscalls_by_name(&report->kernel.syscalls, report->pool);
    for (uint32_t i = 0; i < syscalls.names.count; i++) {
        const struct syscall_sum *sum = row_table_at(&syscalls.names, i);
        syscall_totals_add(&syscalls.sum, &sum->totals);
    }
    struct row_table threads = group_threads(report);
    for (uint32_t i = 0; i < threads.count; i++) {
        const struct syscall_sum *thread = row_table_at(&threads, i);
        syscalls.all_ns += report_thread_ns(report, thread->thread, thread->totals.total_ns);
    }
    row_table_free(&threads);
    return syscalls;
}

/* "; 12 shorter ones are not recorded" */
static struct fxt_string
left_out_text(const struct view *view, uint64_t left_out)
{
    char number[NUMBER_TEXT];
    if (left_out == 0) return text_of("");
    return document_text(view->document, "; %s shorter one%s not recorded", with_commas(number, left_out),
                         left_out == 1 ? " is" : "s are");
}

/* --- by name ---------------------------------------------------------------------------------------- */

enum { S_TOTAL, S_SHARE, S_CALLS, S_MAX, S_ERRORS, S_ERRNO, S_ERRNO_COUNT, S_OPEN, S_NAME, SYSCALL_CELLS };

static void
put_totals(const struct syscalls_view *syscalls, struct cell *cells, const struct syscall_totals *totals)
{
    cells[S_TOTAL] = cell_number(totals->total_ns);
    cells[S_SHARE] = cell_share(totals->total_ns, syscalls->all_ns);
    cells[S_CALLS] = cell_number(totals->calls);
    cells[S_ERRORS] = cell_number(totals->errors);
    cells[S_OPEN] = cell_number(totals->open);
}

static void
add_names(const struct syscalls_view *syscalls)
{
    static const struct column columns[SYSCALL_CELLS] = {
        [S_TOTAL] = {"total_ns", "total", COLUMN_DURATION},
        [S_SHARE] = {"share", "share", COLUMN_SHARE},
        [S_CALLS] = {"calls", "calls", COLUMN_COUNT},
        [S_MAX] = {"max_ns", "max", COLUMN_DURATION},
        [S_ERRORS] = {"errors", "errors", COLUMN_COUNT},
        [S_ERRNO] = {"errno", "most often", COLUMN_TEXT},
        [S_ERRNO_COUNT] = {"errno_count", NULL, COLUMN_COUNT},
        [S_OPEN] = {"not_returned", NULL, COLUMN_COUNT},
        [S_NAME] = {"syscall", "system call", COLUMN_TEXT},
    };
    const struct view *view = syscalls->view;
    struct column shown[SYSCALL_CELLS];
    memcpy(shown, columns, sizeof shown);
    if (syscalls->sum.errors == 0) shown[S_ERRORS].title = shown[S_ERRNO].title = NULL;
    char count[NUMBER_TEXT], total[NUMBER_TEXT], all[NUMBER_TEXT];
    struct fxt_string title = document_text(
        view->document, "System calls: %s, which took %s of the %s of their threads (share: of the latter)%s",
        with_commas(count, syscalls->sum.calls), duration_text(total, syscalls->sum.total_ns),
        duration_text(all, syscalls->all_ns), left_out_text(view, view->report->kernel.syscalls_left_out).ptr);
    title = view_title(view, title, view->report->kernel.syscalls.uncounted, "names or threads");
    struct table *table = document_table(view->document, "syscalls", title, shown, SYSCALL_CELLS);
    table->data = syscalls->names.count == 0;
    struct syscall_totals rest = {0};
    for (uint32_t i = 0; i < syscalls->names.count; i++) {
        const struct syscall_sum *sum = row_table_at(&syscalls->names, i);
        if (i >= view->top) {
            syscall_totals_add(&rest, &sum->totals);
            continue;
        }
        const struct syscall_error *error = syscalls_main_error(&view->report->kernel.syscalls, sum->name);
        struct cell *cells = table_row(table);
        put_totals(syscalls, cells, &sum->totals);
        cells[S_MAX] = cell_number(sum->totals.max_ns);
        cells[S_NAME] = cell_text(view_name(view, sum->name));
        if (error == NULL) continue;
        cells[S_ERRNO] = cell_text(view_name(view, error->error));
        cells[S_ERRNO_COUNT] = cell_number(error->count);
    }
    if (syscalls->names.count <= view->top) return;
    table->more_rows = syscalls->names.count - view->top;
    put_totals(syscalls, table_row(table), &rest);
}

/* --- by method -------------------------------------------------------------------------------------- */

static struct fxt_string
method_text(const struct view *view, uint32_t caller)
{
    return caller == STRING_NONE ? text_of(OUTSIDE_OF_CALLS) : view_name(view, caller);
}

static void
add_methods(const struct syscalls_view *syscalls)
{
    static const struct column columns[] = {
        {"total_ns", "total", COLUMN_DURATION}, {"share", "share", COLUMN_SHARE},
        {"calls", "calls", COLUMN_COUNT},       {"syscalls", "system calls", COLUMN_TEXT},
        {"method", "method", COLUMN_TEXT},
    };
    const struct view *view = syscalls->view;
    struct report *report = view->report;
    struct row_table methods = syscall_methods_group(&report->kernel.callers, report->pool, &report->method_glob);
    uint64_t total_ns = 0, rest_ns = 0, rest_calls = 0;
    for (uint32_t i = 0; i < methods.count; i++) {
        const struct syscall_method *method = row_table_at(&methods, i);
        total_ns += method->total_ns;
    }
    struct fxt_string title = view_title(view, text_of("Methods that made system calls (share: of the time in these)"),
                                         report->kernel.callers.uncounted, "methods");
    struct table *table = document_table(view->document, "syscall_methods", title, COLUMNS(columns));
    table->data = methods.count == 0;
    for (uint32_t i = 0; i < methods.count; i++) {
        const struct syscall_method *method = row_table_at(&methods, i);
        char names[SYSCALL_NAMES_TEXT];
        if (i >= view->top) {
            rest_ns += method->total_ns;
            rest_calls += method->calls;
            continue;
        }
        struct cell *cells = table_row(table);
        cells[0] = cell_number(method->total_ns);
        cells[1] = cell_share(method->total_ns, total_ns);
        cells[2] = cell_number(method->calls);
        cells[3] = cell_text(document_text(view->document, "%s", syscall_names_text(names, report->pool, method)));
        cells[4] = cell_text(method_text(view, method->caller));
    }
    if (methods.count > view->top) {
        table->more_rows = methods.count - view->top;
        struct cell *cells = table_row(table);
        cells[0] = cell_number(rest_ns);
        cells[1] = cell_share(rest_ns, total_ns);
        cells[2] = cell_number(rest_calls);
    }
    row_table_free(&methods);
}

static int
compare_callers(const void *left, const void *right, void *context)
{
    const struct syscall_caller *a = left, *b = right;
    const struct pool *pool = context;
    if (a->total_ns != b->total_ns) return a->total_ns > b->total_ns ? -1 : 1;
    if (a->calls != b->calls) return a->calls > b->calls ? -1 : 1;
    int order = pool_compare(pool, a->caller, b->caller);
    return order != 0 ? order : pool_compare(pool, a->name, b->name);
}

/* Each system call of each method. */
static void
add_pairs(const struct syscalls_view *syscalls)
{
    static const struct column columns[] = {
        {"total_ns", "total", COLUMN_DURATION},
        {"calls", "calls", COLUMN_COUNT},
        {"syscall", "system call", COLUMN_TEXT},
        {"method", "method", COLUMN_TEXT},
    };
    const struct view *view = syscalls->view;
    struct report *report = view->report;
    struct row_table *callers = &report->kernel.callers.rows;
    uint64_t shown = 0, rest_ns = 0, rest_calls = 0;
    row_table_sort(callers, compare_callers, report->pool);
    struct table *table = document_table(view->document, "syscalls_by_method",
                                         text_of("System calls by method"), COLUMNS(columns));
    for (uint32_t i = 0; i < callers->count; i++) {
        const struct syscall_caller *caller = row_table_at(callers, i);
        if (!syscall_method_wanted(&report->method_glob, report->pool, caller->caller)) continue;
        if (shown++ >= view->top) {
            rest_ns += caller->total_ns;
            rest_calls += caller->calls;
            continue;
        }
        struct cell *cells = table_row(table);
        cells[0] = cell_number(caller->total_ns);
        cells[1] = cell_number(caller->calls);
        cells[2] = cell_text(view_name(view, caller->name));
        cells[3] = cell_text(method_text(view, caller->caller));
    }
    table->data = shown == 0 || !syscalls->all;
    if (shown <= view->top) return;
    table->more_rows = shown - view->top;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest_ns);
    cells[1] = cell_number(rest_calls);
}

/* --- by thread -------------------------------------------------------------------------------------- */

static int
compare_threads(const void *left, const void *right, void *context)
{
    const struct syscall_sum *a = left, *b = right;
    (void)context;
    int order = syscall_totals_compare(&a->totals, &b->totals);
    return order != 0 ? order : (a->thread > b->thread) - (a->thread < b->thread);
}

static void
add_threads(const struct syscalls_view *syscalls)
{
    static const struct column columns[] = {
        {"total_ns", "total", COLUMN_DURATION}, {"share", "share", COLUMN_SHARE},
        {"thread_ns", "of", COLUMN_DURATION},   {"calls", "calls", COLUMN_COUNT},
        {"errors", "errors", COLUMN_COUNT},     {"max_ns", "max", COLUMN_DURATION},
        {"pid", NULL, COLUMN_NUMBER},           {"tid", "tid", COLUMN_NUMBER},
        {"thread", "thread", COLUMN_TEXT},
    };
    const struct view *view = syscalls->view;
    struct report *report = view->report;
    struct row_table threads = group_threads(report);
    struct syscall_totals rest = {0};
    row_table_sort(&threads, compare_threads, NULL);
    struct table *table = document_table(view->document, "syscalls_by_thread",
                                         text_of("System calls by thread (share: of its time)"), COLUMNS(columns));
    table->data = threads.count == 0 || !syscalls->all;
    for (uint32_t i = 0; i < threads.count; i++) {
        const struct syscall_sum *sum = row_table_at(&threads, i);
        const struct report_thread *thread = report_thread(report, sum->thread);
        if (i >= view->top) {
            syscall_totals_add(&rest, &sum->totals);
            continue;
        }
        uint64_t ns = report_thread_ns(report, sum->thread, sum->totals.total_ns);
        struct cell *cells = table_row(table);
        cells[0] = cell_number(sum->totals.total_ns);
        cells[1] = cell_share(sum->totals.total_ns, ns);
        cells[2] = cell_number(ns);
        cells[3] = cell_number(sum->totals.calls);
        cells[4] = cell_number(sum->totals.errors);
        cells[5] = cell_number(sum->totals.max_ns);
        cells[6] = cell_number(report_process(report, thread->process)->pid);
        cells[7] = cell_number(thread->tid);
        cells[8] = cell_text(view_name(view, thread->name));
    }
    if (threads.count > view->top) {
        table->more_rows = threads.count - view->top;
        struct cell *cells = table_row(table);
        cells[0] = cell_number(rest.total_ns);
        cells[3] = cell_number(rest.calls);
        cells[4] = cell_number(rest.errors);
    }
    row_table_free(&threads);
}

/* --- errors ------------------------------------------------------------------------------------------ */

static int
compare_errors(const void *left, const void *right, void *context)
{
    const struct syscall_error *a = left, *b = right;
    const struct pool *pool = context;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    int order = pool_compare(pool, a->name, b->name);
    return order != 0 ? order : pool_compare(pool, a->error, b->error);
}

static void
add_errors(const struct syscalls_view *syscalls)
{
    static const struct column columns[] = {
        {"count", "count", COLUMN_COUNT},
        {"errno", "errno", COLUMN_TEXT},
        {"syscall", "system call", COLUMN_TEXT},
    };
    const struct view *view = syscalls->view;
    struct row_table *errors = &view->report->kernel.syscalls.errors;
    uint64_t rest = 0;
    char count[NUMBER_TEXT];
    row_table_sort(errors, compare_errors, view->report->pool);
    struct fxt_string title =
        document_text(view->document, "Errors of system calls: %s", with_commas(count, syscalls->sum.errors));
    struct table *table = document_table(view->document, "syscall_errors", title, COLUMNS(columns));
    table->data = errors->count == 0 || !syscalls->all;
    for (uint32_t i = 0; i < errors->count; i++) {
        const struct syscall_error *error = row_table_at(errors, i);
        if (i >= view->top) {
            rest += error->count;
            continue;
        }
        struct cell *cells = table_row(table);
        cells[0] = cell_number(error->count);
        cells[1] = cell_text(view_name(view, error->error));
        cells[2] = cell_text(view_name(view, error->name));
    }
    if (errors->count <= view->top) return;
    table->more_rows = errors->count - view->top;
    table_row(table)[0] = cell_number(rest);
}

/* --- all ---------------------------------------------------------------------------------------------- */

static void
add_all(const struct view *view, bool all)
{
    struct syscalls_view syscalls = syscalls_view(view, all);
    add_names(&syscalls);
    add_methods(&syscalls);
    add_pairs(&syscalls);
    add_threads(&syscalls);
    add_errors(&syscalls);
    row_table_free(&syscalls.names);
}

static bool
recorded(const struct report *report)
{
    return report->kernel.syscalls.sums.count + report->kernel.callers.rows.count > 0;
}

void
view_add_syscalls(const struct view *view)
{
    if (recorded(view->report)) add_all(view, false);
}

void
report_syscall_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    if (!recorded(report))
        document_line(document, "syscalls", view_nothing(&view, REPORT_SYSCALLS));
    add_all(&view, true);
}
