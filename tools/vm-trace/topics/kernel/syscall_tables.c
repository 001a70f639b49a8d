/* syscall_tables.c - the tables of a report about system calls: by name, by the Ruby method that made them,
 * by thread, and their errors. */
#include "topics/report_view.h"
#include "topics/kernel/syscall_text.h"

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

enum { ERRNO, ERRNO_COUNT };

/* The error that a system call had most often. */
static struct cell
error_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct syscall_sum *sum = row;
    const struct syscall_error *error = syscalls_main_error(&def->view->report->kernel.syscalls, sum->name);
    if (error == NULL) return (struct cell){0};
    return own == ERRNO ? cell_text(view_name(def->view, error->error)) : cell_number(error->count);
}

static void
add_names(struct syscalls_view *syscalls)
{
    enum { ERRORS = 1 };
    static const struct table_column columns[] = {
        {"total_ns", "total", COLUMN_DURATION, SUMMED(syscall_sum, totals.total_ns)},
        {"share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("total_ns")},
        {"calls", "calls", COLUMN_COUNT, SUMMED(syscall_sum, totals.calls)},
        {"max_ns", "max", COLUMN_DURATION, MEMBER(syscall_sum, totals.max_ns)},
        {"errors", "errors", COLUMN_COUNT, SUMMED(syscall_sum, totals.errors), .people_if = ERRORS},
        {"errno", "most often", COLUMN_TEXT, OWN_CELL(ERRNO), .people_if = ERRORS},
        {"errno_count", NULL, COLUMN_COUNT, OWN_CELL(ERRNO_COUNT)},
        {"not_returned", NULL, COLUMN_COUNT, SUMMED(syscall_sum, totals.open)},
        {"syscall", "system call", COLUMN_TEXT, NAMED(syscall_sum, name)},
    };
    const struct view *view = syscalls->view;
    char count[NUMBER_TEXT], total[NUMBER_TEXT], all[NUMBER_TEXT];
    struct fxt_string title = document_text(
        view->document, "System calls: %s, which took %s of the %s of their threads (share: of the latter)%s",
        with_commas(count, syscalls->sum.calls), duration_text(total, syscalls->sum.total_ns),
        duration_text(all, syscalls->all_ns), left_out_text(view, view->report->kernel.syscalls_left_out).ptr);
    title = view_title(view, title, view->report->kernel.syscalls.uncounted, "names or threads");
    view_table(&(struct table_def){.view = view, .id = "syscalls", .title = title, .rows = &syscalls->names,
                                   COLUMNS_OF(columns), .cell = error_cell, .whole = syscalls->all_ns,
                                   .given = syscalls->sum.errors > 0 ? ERRORS : 0});
}

/* --- by method -------------------------------------------------------------------------------------- */

static struct cell
method_text(const struct view *view, uint32_t caller)
{
    return cell_text(caller == STRING_NONE ? text_of(OUTSIDE_OF_CALLS) : view_name(view, caller));
}

enum { METHOD, NAMES };

static struct cell
method_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct syscall_method *method = row;
    char names[SYSCALL_NAMES_TEXT];
    if (own == METHOD) return method_text(def->view, method->caller);
    return cell_text(document_text(def->view->document, "%s",
                                   syscall_names_text(names, def->view->report->pool, method)));
}

static void
add_methods(const struct syscalls_view *syscalls)
{
    static const struct table_column columns[] = {
        {"total_ns", "total", COLUMN_DURATION, SUMMED(syscall_method, total_ns)},
        {"share", "share", COLUMN_SHARE, SHARE_OF("total_ns")},
        {"calls", "calls", COLUMN_COUNT, SUMMED(syscall_method, calls)},
        {"syscalls", "system calls", COLUMN_TEXT, OWN_CELL(NAMES)},
        {"method", "method", COLUMN_TEXT, OWN_CELL(METHOD)},
    };
    const struct view *view = syscalls->view;
    struct report *report = view->report;
    struct row_table methods = syscall_methods_group(&report->kernel.callers, report->pool, &report->method_glob);
    struct fxt_string title = view_title(view, text_of("Methods that made system calls (share: of the time in these)"),
                                         report->kernel.callers.uncounted, "methods");
    view_table(&(struct table_def){.view = view, .id = "syscall_methods", .title = title, .rows = &methods,
                                   COLUMNS_OF(columns), .cell = method_cell});
    row_table_free(&methods);
}

static struct cell
caller_cell(const struct table_def *def, unsigned own, const void *row)
{
    return method_text(def->view, ((const struct syscall_caller *)row)->caller);
}

static bool
caller_counts(const struct table_def *def, const void *row)
{
    struct report *report = def->view->report;
    return syscall_method_wanted(&report->method_glob, report->pool, ((const struct syscall_caller *)row)->caller);
}

/* Each system call of each method. */
static void
add_pairs(const struct syscalls_view *syscalls)
{
    static const struct table_column columns[] = {
        {"total_ns", "total", COLUMN_DURATION, SUMMED(syscall_caller, total_ns)},
        {"calls", "calls", COLUMN_COUNT, SUMMED(syscall_caller, calls)},
        {"syscall", "system call", COLUMN_TEXT, NAMED(syscall_caller, name)},
        {"method", "method", COLUMN_TEXT, OWN_CELL(0)},
        {"caller", NULL, COLUMN_TEXT, NAMED(syscall_caller, caller), .helper = true},
    };
    view_table(&(struct table_def){.view = syscalls->view, .id = "syscalls_by_method",
                                   .title = text_of("System calls by method"),
                                   .rows = &syscalls->view->report->kernel.callers.rows, COLUMNS_OF(columns),
                                   .sort = {"total_ns", "calls", "caller", "syscall"}, .counts = caller_counts,
                                   .cell = caller_cell,
                                   .data = !syscalls->all});
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

static struct cell
whole_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct syscall_sum *sum = row;
    return cell_number(report_thread_ns(def->view->report, sum->thread, sum->totals.total_ns));
}

static void
add_threads(const struct syscalls_view *syscalls)
{
    static const struct table_column columns[] = {
        {"total_ns", "total", COLUMN_DURATION, SUMMED(syscall_sum, totals.total_ns)},
        {"share", "share", COLUMN_SHARE, SHARE_IN_ROW("total_ns", "thread_ns")},
        {"thread_ns", "of", COLUMN_DURATION, OWN_CELL(0)},
        {"calls", "calls", COLUMN_COUNT, SUMMED(syscall_sum, totals.calls)},
        {"errors", "errors", COLUMN_COUNT, SUMMED(syscall_sum, totals.errors)},
        {"max_ns", "max", COLUMN_DURATION, MEMBER(syscall_sum, totals.max_ns)},
        THREAD_COLUMNS(syscall_sum, thread),
    };
    struct row_table threads = group_threads(syscalls->view->report);
    view_table(&(struct table_def){.view = syscalls->view, .id = "syscalls_by_thread",
                                   .title = text_of("System calls by thread (share: of its time)"), .rows = &threads,
                                   COLUMNS_OF(columns), .compare = compare_threads, .cell = whole_cell,
                                   .data = !syscalls->all});
    row_table_free(&threads);
}

/* --- errors ------------------------------------------------------------------------------------------ */

static void
add_errors(const struct syscalls_view *syscalls)
{
    static const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, SUMMED(syscall_error, count)},
        {"errno", "errno", COLUMN_TEXT, NAMED(syscall_error, error)},
        {"syscall", "system call", COLUMN_TEXT, NAMED(syscall_error, name)},
    };
    const struct view *view = syscalls->view;
    char count[NUMBER_TEXT];
    struct fxt_string title =
        document_text(view->document, "Errors of system calls: %s", with_commas(count, syscalls->sum.errors));
    view_table(&(struct table_def){.view = view, .id = "syscall_errors", .title = title,
                                   .rows = &view->report->kernel.syscalls.errors, COLUMNS_OF(columns),
                                   .sort = {"count", "syscall", "errno"}, .data = !syscalls->all});
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
syscalls_tables(const struct view *view)
{
    struct report *report = view->report;
    struct document *document = view->document;
    if (!recorded(report))
        document_line(document, "syscalls", view_nothing(view, TOPIC_syscalls));
    add_all(view, true);
}
