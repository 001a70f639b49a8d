/* report_calls.c - the tables of a report about calls: methods by own time, their callers and callees,
 * threads, the slowest single calls. */
#include <inttypes.h>
#include <stdlib.h>

#include "render/report_tables.h"
#include "render/report_view.h"

#define OUTSIDE "(outside recorded calls)"

/* What the tables of calls have in common. */
struct calls_view {
    const struct view *view;
    struct row_table methods; /* of struct call_row, by own time */
    struct call_totals sum;    /* of all methods */
    uint64_t all_ns;          /* of the threads with calls */
    uint64_t outside_ns;      /* the part of it that is in no recorded call */
    uint64_t suspended_ns;    /* in recorded calls of fibers that did not run: no part of it */
    uint32_t wanted;          /* methods that pass --method */
    bool left_out;            /* some calls were left out */
};

static int
compare_methods(const void *left, const void *right, void *context)
{
    const struct call_row *a = left, *b = right;
    const struct pool *pool = context;
    if (a->totals.own_ns != b->totals.own_ns) return a->totals.own_ns > b->totals.own_ns ? -1 : 1;
    if (a->totals.total_ns != b->totals.total_ns) return a->totals.total_ns > b->totals.total_ns ? -1 : 1;
    return fxt_string_compare(pool_string(pool, a->name), pool_string(pool, b->name));
}

static bool
method_wanted(const struct view *view, uint32_t name)
{
    return glob_matches(&view->report->method_glob, view->report->pool, name);
}

static uint64_t
thread_ns(const struct report *report, const struct call_thread *thread)
{
    uint64_t suspended_ns = thread->suspended_ns;
    return report_thread_ns(report, thread->track, thread->recorded_ns + suspended_ns) - suspended_ns;
}

static struct calls_view
calls_view(const struct view *view)
{
    struct report *report = view->report;
    struct calls_view calls = {.view = view, .methods = calls_group(&report->calls, false)};
    row_table_sort(&calls.methods, compare_methods, report->pool);
    for (uint32_t i = 0; i < calls.methods.count; i++) {
        const struct call_row *row = row_table_at(&calls.methods, i);
        call_totals_add(&calls.sum, &row->totals);
        calls.wanted += method_wanted(view, row->name);
    }
    for (uint32_t i = 0; i < report->calls.threads.count; i++) {
        const struct call_thread *thread = row_table_at(&report->calls.threads, i);
        uint64_t ns = thread_ns(report, thread);
        calls.all_ns += ns;
        calls.outside_ns += ns - thread->recorded_ns;
        calls.suspended_ns += thread->suspended_ns;
    }
    calls.left_out = calls.sum.left_out > 0;
    return calls;
}

/* --- methods -------------------------------------------------------------------------------------- */

enum { M_OWN, M_SHARE, M_TOTAL, M_CALLS, M_MAX, M_LEFT_OUT, M_LEFT_OUT_NS, M_METHOD, METHOD_CELLS };

static void
put_times(const struct calls_view *calls, struct cell *cells, const struct call_totals *totals)
{
    cells[M_OWN] = cell_number(call_own_ns(totals->own_ns));
    cells[M_SHARE] = cell_share(call_own_ns(totals->own_ns), calls->all_ns);
    cells[M_CALLS] = cell_number(totals->calls);
    cells[M_LEFT_OUT] = cell_number(totals->left_out);
    cells[M_LEFT_OUT_NS] = cell_number(totals->left_out_ns);
}

static void
put_outside(const struct calls_view *calls, struct table *table)
{
    struct cell *cells = table_row(table);
    cells[M_OWN] = cell_number(calls->outside_ns);
    cells[M_SHARE] = cell_share(calls->outside_ns, calls->all_ns);
    cells[M_METHOD] = cell_text(text_of(OUTSIDE));
}

static void
add_methods(const struct calls_view *calls)
{
    const struct view *view = calls->view;
    const struct column columns[METHOD_CELLS] = {
        [M_OWN] = {"own_ns", "own", COLUMN_DURATION},
        [M_SHARE] = {"own_share", "share", COLUMN_SHARE},
        [M_TOTAL] = {"total_ns", "total", COLUMN_DURATION},
        [M_CALLS] = {"calls", "calls", COLUMN_COUNT},
        [M_MAX] = {"max_ns", "max", COLUMN_DURATION},
        [M_LEFT_OUT] = {"left_out", calls->left_out ? "left out" : NULL, COLUMN_COUNT},
        [M_LEFT_OUT_NS] = {"left_out_ns", calls->left_out ? "in these" : NULL, COLUMN_DURATION},
        [M_METHOD] = {"method", "method", COLUMN_TEXT},
    };
    char count[NUMBER_TEXT], recorded[NUMBER_TEXT], all[NUMBER_TEXT], suspended[NUMBER_TEXT];
    struct fxt_string title = document_text(
        view->document, "Calls by own time: %s call%s, which took %s of the %s of their threads (share: of the latter)",
        with_commas(count, calls->sum.calls), calls->sum.calls == 1 ? "" : "s",
        duration_text(recorded, calls->all_ns - calls->outside_ns), duration_text(all, calls->all_ns));
    if (calls->suspended_ns > 0) {
        title = document_text(view->document, "%s; their fibers were suspended for %s, which only total time includes",
                              title.ptr, duration_text(suspended, calls->suspended_ns));
    }
    title = view_title(view, title, view->report->calls.uncounted, "methods, callers or threads");
    struct table *table = document_table(view->document, "calls", title, columns, METHOD_CELLS);
    bool outside = view->report->filter.method == NULL && calls->outside_ns > 0;
    uint32_t rows = calls->wanted + outside, shown = 0;
    struct call_totals rest = {0};
    for (uint32_t i = 0; i < calls->methods.count; i++) {
        const struct call_row *row = row_table_at(&calls->methods, i);
        if (!method_wanted(view, row->name)) continue;
        if (outside && row->totals.own_ns < (int64_t)calls->outside_ns) {
            outside = false;
            if (shown < view->top) put_outside(calls, table), shown++;
            else call_add_ns(&rest.own_ns, (int64_t)calls->outside_ns);
        }
        if (shown >= view->top) {
            call_totals_add(&rest, &row->totals);
            continue;
        }
        shown++;
        struct cell *cells = table_row(table);
        put_times(calls, cells, &row->totals);
        cells[M_TOTAL] = cell_number(row->totals.total_ns);
        cells[M_MAX] = cell_number(row->totals.max_ns);
        cells[M_METHOD] = cell_text(view_name(view, row->name));
    }
    if (outside && shown < view->top) put_outside(calls, table), shown++;
    else if (outside) call_add_ns(&rest.own_ns, (int64_t)calls->outside_ns);
    if (rows <= shown) return;
    table->more_rows = rows - shown;
    put_times(calls, table_row(table), &rest); /* total times of several methods have parts in common */
}

void
view_add_calls(const struct view *view)
{
    if (view->report->calls.sums.count == 0) return;
    struct calls_view calls = calls_view(view);
    if (calls.wanted > 0) add_methods(&calls);
    row_table_free(&calls.methods);
}

/* --- callers and callees -------------------------------------------------------------------------- */

/* Pairs of all files. */
struct pair_row {
    uint32_t caller, callee; /* the key */
    uint64_t calls, total_ns;
    int64_t own_ns;
};
enum { PAIR_KEYS = 2 };

/* Pairs of one method are together, those with the most time first. */
static int
compare_pairs(const struct pair_row *a, const struct pair_row *b, uint32_t a_method, uint32_t b_method)
{
    if (a_method != b_method) return a_method < b_method ? -1 : 1;
    if (a->total_ns != b->total_ns) return a->total_ns > b->total_ns ? -1 : 1;
    if (a->calls != b->calls) return a->calls > b->calls ? -1 : 1;
    if (a->caller != b->caller) return a->caller < b->caller ? -1 : 1;
    return (a->callee > b->callee) - (a->callee < b->callee);
}

static int
compare_by_callee(const void *left, const void *right, void *context)
{
    const struct pair_row *a = left, *b = right;
    (void)context;
    return compare_pairs(a, b, a->callee, b->callee);
}

static int
compare_by_caller(const void *left, const void *right, void *context)
{
    const struct pair_row *a = left, *b = right;
    (void)context;
    return compare_pairs(a, b, a->caller, b->caller);
}

static struct row_table
group_pairs(const struct report *report)
{
    struct row_table rows;
    row_table_init(&rows, sizeof(struct pair_row), PAIR_KEYS, CALL_PAIRS_MAX);
    for (uint32_t i = 0; i < report->calls.pairs.count; i++) {
        const struct call_pair *pair = row_table_at(&report->calls.pairs, i);
        const uint32_t key[PAIR_KEYS] = {pair->caller, pair->callee};
        struct pair_row *row = row_table_get(&rows, key);
        row->calls += pair->calls;
        row->total_ns += pair->total_ns;
        call_add_ns(&row->own_ns, pair->own_ns);
    }
    return rows;
}

static struct fxt_string
caller_text(const struct view *view, uint32_t name)
{
    return name == STRING_NONE ? text_of(OUTSIDE) : view_name(view, name);
}

/* The callers of a method, or what it calls. */
static uint32_t
method_of(const struct pair_row *pair, bool callers)
{
    return callers ? pair->callee : pair->caller;
}

/* By method, the first of its pairs + 1. */
static uint32_t *
first_pairs(const struct view *view, const struct row_table *pairs, bool callers)
{
    uint32_t *first = xcalloc(pool_size(view->report->pool) + 1, sizeof *first);
    for (uint32_t at = pairs->count; at-- > 0;) first[method_of(row_table_at(pairs, at), callers)] = at + 1;
    return first;
}

/* The rows of one method, at most `most`; the others are added to the rest. Returns how many these are. */
static uint64_t
add_pairs_of(const struct view *view, struct table *table, const struct row_table *pairs, uint32_t first,
             bool callers, uint64_t most, struct pair_row *rest)
{
    uint32_t end = first, name = method_of(row_table_at(pairs, first), callers);
    uint64_t sum_ns = 0;
    for (; end < pairs->count; end++) {
        const struct pair_row *pair = row_table_at(pairs, end);
        if (method_of(pair, callers) != name) break;
        sum_ns += pair->total_ns;
        if (end - first < most) continue;
        rest->calls += pair->calls;
        rest->total_ns += pair->total_ns;
        call_add_ns(&rest->own_ns, pair->own_ns);
    }
    for (uint32_t at = first; at < end && at - first < most; at++) {
        const struct pair_row *pair = row_table_at(pairs, at);
        struct cell *cells = table_row(table);
        cells[0] = cell_number(pair->calls);
        cells[1] = cell_number(pair->total_ns);
        cells[2] = cell_share(pair->total_ns, sum_ns);
        cells[3] = cell_number(call_own_ns(pair->own_ns));
        cells[4] = cell_text(view_name(view, name));
        cells[5] = cell_text(callers ? caller_text(view, pair->caller) : view_name(view, pair->callee));
    }
    return end - first > most ? end - first - most : 0;
}

/* The pairs in which the methods with the most own time are callees (their callers), or callers. */
static void
add_pairs(const struct calls_view *calls, struct row_table *pairs, bool callers)
{
    const struct view *view = calls->view;
    const struct column columns[] = {
        {"calls", "calls", COLUMN_COUNT},
        {"total_ns", "total", COLUMN_DURATION},
        {"share", "share", COLUMN_SHARE},
        {"own_ns", "own", COLUMN_DURATION},
        {callers ? "method" : "caller", callers ? "method" : "caller", COLUMN_TEXT},
        {callers ? "caller" : "callee", callers ? "called by" : "calls", COLUMN_TEXT},
    };
    struct table *table =
        document_table(view->document, callers ? "callers" : "callees",
                       text_of(callers ? "Callers of the methods with the most own time (share: of their time)"
                                       : "What the methods with the most own time call (share: of the callees' time)"),
                       COLUMNS(columns));
    row_table_sort(pairs, callers ? compare_by_callee : compare_by_caller, NULL);
    uint32_t *first = first_pairs(view, pairs, callers);
    struct pair_row rest = {0};
    uint64_t most = view->top / 3 + 1; /* rows of one method */
    uint32_t methods = 0;
    for (uint32_t i = 0; i < calls->methods.count && methods < view->top; i++) {
        const struct call_row *method = row_table_at(&calls->methods, i);
        if (!method_wanted(view, method->name)) continue;
        methods++;
        if (first[method->name] > 0)
            table->more_rows +=
                add_pairs_of(view, table, pairs, first[method->name] - 1, callers, most, &rest);
    }
    free(first);
    table->data = table->row_count == 0;
    if (table->more_rows == 0) return;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest.calls);
    cells[1] = cell_number(rest.total_ns);
    cells[3] = cell_number(call_own_ns(rest.own_ns));
}

/* --- threads -------------------------------------------------------------------------------------- */

static int
compare_threads(const void *left, const void *right, void *context)
{
    const struct call_thread *a = left, *b = right;
    (void)context;
    if (a->recorded_ns != b->recorded_ns) return a->recorded_ns > b->recorded_ns ? -1 : 1;
    return (a->track > b->track) - (a->track < b->track);
}

/* Of a thread: the number of its calls, and the method with the most own time. */
static uint64_t
calls_of(const struct calls *calls, uint32_t track, const struct call_sum **busiest_out)
{
    uint64_t count = 0;
    *busiest_out = NULL;
    for (uint32_t i = 0; i < calls->sums.count; i++) {
        const struct call_sum *sum = row_table_at(&calls->sums, i);
        if (sum->track != track) continue;
        count += sum->totals.calls;
        if (*busiest_out == NULL || sum->totals.own_ns > (*busiest_out)->totals.own_ns) *busiest_out = sum;
    }
    return count;
}

static void
add_threads(const struct calls_view *all)
{
    static const struct column columns[] = {
        {"thread_ns", "time", COLUMN_DURATION},
        {"recorded_ns", "in calls", COLUMN_DURATION},
        {"outside_ns", "outside", COLUMN_DURATION},
        {"calls", "calls", COLUMN_COUNT},
        {"pid", NULL, COLUMN_NUMBER},
        {"tid", "tid", COLUMN_NUMBER},
        {"thread", "thread", COLUMN_TEXT},
        {"method_own_ns", "own", COLUMN_DURATION},
        {"method", "busiest method", COLUMN_TEXT},
    };
    const struct view *view = all->view;
    struct report *report = view->report;
    struct row_table *threads = &report->calls.threads;
    row_table_sort(threads, compare_threads, NULL);
    struct table *table = document_table(view->document, "calls_by_thread",
                                         text_of("Calls by thread (outside: of recorded calls)"), COLUMNS(columns));
    uint64_t rest[4] = {0};
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct call_thread *thread = row_table_at(threads, i);
        const struct report_thread *named = report_thread(report, thread->track);
        uint64_t ns = thread_ns(report, thread);
        const uint64_t times[3] = {ns, thread->recorded_ns, ns - thread->recorded_ns};
        if (i >= view->top) {
            for (unsigned n = 0; n < 3; n++) rest[n] += times[n];
            continue;
        }
        const struct call_sum *busiest;
        uint64_t count = calls_of(&report->calls, thread->track, &busiest);
        struct cell *cells = table_row(table);
        for (unsigned n = 0; n < 3; n++) cells[n] = cell_number(times[n]);
        cells[3] = cell_number(count);
        cells[4] = cell_number(report_process(report, named->process)->pid);
        cells[5] = cell_number(named->tid);
        cells[6] = cell_text(view_name(view, named->name));
        if (busiest == NULL) continue;
        cells[7] = cell_number(call_own_ns(busiest->totals.own_ns));
        cells[8] = cell_text(view_name(view, busiest->name));
    }
    if (threads->count <= view->top) return;
    table->more_rows = threads->count - view->top;
    struct cell *cells = table_row(table);
    for (unsigned n = 0; n < 3; n++) cells[n] = cell_number(rest[n]);
}

static int
compare_sums(const void *left, const void *right)
{
    const struct call_sum *a = *(const struct call_sum *const *)left, *b = *(const struct call_sum *const *)right;
    if (a->totals.own_ns != b->totals.own_ns) return a->totals.own_ns > b->totals.own_ns ? -1 : 1;
    if (a->track != b->track) return a->track < b->track ? -1 : 1;
    return (a->name > b->name) - (a->name < b->name);
}

/* Methods in each thread. */
static void
add_methods_of_threads(const struct calls_view *all)
{
    static const struct column columns[] = {
        {"own_ns", "own", COLUMN_DURATION}, {"total_ns", "total", COLUMN_DURATION},
        {"calls", "calls", COLUMN_COUNT},   {"max_ns", "max", COLUMN_DURATION},
        {"tid", NULL, COLUMN_NUMBER},       {"thread", "thread", COLUMN_TEXT},
        {"method", "method", COLUMN_TEXT},
    };
    const struct view *view = all->view;
    const struct row_table *sums = &view->report->calls.sums;
    const struct call_sum **order = xcalloc(sums->count + 1, sizeof *order);
    uint32_t count = 0;
    for (uint32_t i = 0; i < sums->count; i++) {
        const struct call_sum *sum = row_table_at(sums, i);
        if (method_wanted(view, sum->name)) order[count++] = sum;
    }
    qsort(order, count, sizeof *order, compare_sums);
    struct table *table = document_table(view->document, "calls_by_thread_and_method",
                                         text_of("Calls by thread and method"), COLUMNS(columns));
    table->data = view->report->calls.threads.count < 2;
    struct call_totals rest = {0};
    for (uint32_t i = 0; i < count; i++) {
        const struct call_totals *totals = &order[i]->totals;
        if (i >= view->top) {
            call_totals_add(&rest, totals);
            continue;
        }
        const struct report_thread *thread = report_thread(view->report, order[i]->track);
        struct cell *cells = table_row(table);
        cells[0] = cell_number(call_own_ns(totals->own_ns));
        cells[1] = cell_number(totals->total_ns);
        cells[2] = cell_number(totals->calls);
        cells[3] = cell_number(totals->max_ns);
        cells[4] = cell_number(thread->tid);
        cells[5] = cell_text(view_name(view, thread->name));
        cells[6] = cell_text(view_name(view, order[i]->name));
    }
    free(order);
    if (count <= view->top) return;
    table->more_rows = count - view->top;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(call_own_ns(rest.own_ns));
    cells[2] = cell_number(rest.calls);
}

/* --- single calls --------------------------------------------------------------------------------- */

static void
add_slowest(const struct calls_view *all, const struct slowest *slowest, const char *id, const char *title)
{
    const struct view *view = all->view;
    struct report *report = view->report;
    bool open = false;
    for (uint32_t i = 0; i < slowest->count && i < view->top; i++) open |= slowest->heap[i].ended;
    const struct column columns[] = {
        {"total_ns", "time", COLUMN_DURATION},
        {"own_ns", "own", COLUMN_DURATION},
        {"start_ns", "start", COLUMN_TIME},
        {"left_out", all->left_out ? "left out" : NULL, COLUMN_COUNT},
        {"tid", NULL, COLUMN_NUMBER},
        {"thread", "thread", COLUMN_TEXT},
        {"state", open ? "" : NULL, COLUMN_TEXT},
        {"method", "method", COLUMN_TEXT},
    };
    struct table *table = document_table(view->document, id, text_of(title), COLUMNS(columns));
    for (uint32_t i = 0; i < slowest->count && i < view->top; i++) {
        const struct slow_call *call = &slowest->heap[i];
        const struct report_thread *thread = report_thread(report, call->track);
        struct cell *cells = table_row(table);
        cells[0] = cell_number(call->total_ns);
        cells[1] = cell_number(call_own_ns(call->own_ns));
        cells[2] = cell_time(call->begin_ns - report->start_ns);
        cells[3] = cell_number(call->left_out);
        cells[4] = cell_number(thread->tid);
        cells[5] = cell_text(view_name(view, thread->name));
        if (call->ended) cells[6] = cell_text(text_of("not returned"));
        cells[7] = cell_text(view_name(view, call->name));
    }
    table->data = table->row_count == 0;
}

/* --- all ------------------------------------------------------------------------------------------ */

void
report_call_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    struct calls_view calls = calls_view(&view);
    if (report->calls.sums.count == 0)
        document_line(document, "calls", view_nothing(&view, REPORT_CALLS));
    struct row_table pairs = group_pairs(report);
    add_methods(&calls);
    add_pairs(&calls, &pairs, true);
    add_pairs(&calls, &pairs, false);
    add_threads(&calls);
    add_methods_of_threads(&calls);
    add_slowest(&calls, &report->calls.by_total, "slowest_calls", "Slowest single calls");
    add_slowest(&calls, &report->calls.by_own, "slowest_calls_by_own_time", "Single calls with the most own time");
    row_table_free(&pairs);
    row_table_free(&calls.methods);
}
