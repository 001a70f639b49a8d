/* call_tables.c - the tables of a report about calls: methods by own time, their callers and callees,
 * threads, the slowest single calls. */
#define _GNU_SOURCE /* qsort_r */
#include <stdlib.h>
#include <string.h>

#include "base/portable.h"
#include "topics/report_view.h"

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

enum { CALLS_LEFT_OUT = 1 }; /* people see how many */
enum { TOTAL, CALLS, MAX, LEFT_OUT, LEFT_OUT_NS, METHOD };

/* The row for what is in no recorded call has a file, and only a time. */
static struct cell
method_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct call_row *method = row;
    const struct call_totals *totals = &method->totals;
    const uint64_t numbers[] = {[TOTAL] = totals->total_ns, [CALLS] = totals->calls, [MAX] = totals->max_ns,
                                [LEFT_OUT] = totals->left_out, [LEFT_OUT_NS] = totals->left_out_ns};
    bool outside = method->file > 0;
    if (own == METHOD) return cell_text(outside ? text_of(OUTSIDE) : view_name(def->view, method->name));
    return outside ? (struct cell){0} : cell_number(numbers[own]);
}

/* The wanted methods, and the row of what is in none, in their order. The caller frees them. */
static struct call_row *
rows_with_outside(const struct calls_view *calls, uint32_t *count_out)
{
    const struct call_row outside = {.file = 1, .totals.own_ns = (int64_t)calls->outside_ns};
    bool lacks = calls->view->report->filter.method == NULL && calls->outside_ns > 0;
    struct call_row *rows = xcalloc(calls->methods.count + 1, sizeof *rows);
    uint32_t count = 0;
    for (uint32_t i = 0; i < calls->methods.count; i++) {
        const struct call_row *row = row_table_at(&calls->methods, i);
        if (!method_wanted(calls->view, row->name)) continue;
        if (lacks && row->totals.own_ns < outside.totals.own_ns) lacks = false, rows[count++] = outside;
        rows[count++] = *row;
    }
    if (lacks) rows[count++] = outside;
    *count_out = count;
    return rows;
}

static void
add_methods(const struct calls_view *calls)
{
    const struct view *view = calls->view;
    static const struct table_column columns[] = {
        {"own_ns", "own", COLUMN_DURATION, SUMMED(call_row, totals.own_ns)},
        {"own_share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("own_ns")},
        {"total_ns", "total", COLUMN_DURATION, OWN_CELL(TOTAL)}, /* those of several methods have parts in common */
        {"calls", "calls", COLUMN_COUNT, OWN_SUM(CALLS)},
        {"max_ns", "max", COLUMN_DURATION, OWN_CELL(MAX)},
        {"left_out", "left out", COLUMN_COUNT, OWN_SUM(LEFT_OUT), .people_if = CALLS_LEFT_OUT},
        {"left_out_ns", "in these", COLUMN_DURATION, OWN_SUM(LEFT_OUT_NS), .people_if = CALLS_LEFT_OUT},
        {"method", "method", COLUMN_TEXT, OWN_CELL(METHOD)},
    };
    char number[NUMBER_TEXT], recorded[NUMBER_TEXT], all[NUMBER_TEXT], suspended[NUMBER_TEXT];
    struct fxt_string title = document_text(
        view->document, "Calls by own time: %s call%s, which took %s of the %s of their threads (share: of the latter)",
        with_commas(number, calls->sum.calls), calls->sum.calls == 1 ? "" : "s",
        duration_text(recorded, calls->all_ns - calls->outside_ns), duration_text(all, calls->all_ns));
    if (calls->suspended_ns > 0) {
        title = document_text(view->document, "%s; their fibers were suspended for %s, which only total time includes",
                              title.ptr, duration_text(suspended, calls->suspended_ns));
    }
    title = view_title(view, title, view->report->calls.uncounted, "methods, callers or threads");
    uint32_t count;
    struct call_row *rows = rows_with_outside(calls, &count);
    struct row_table shown = ROWS_OF(rows, count);
    view_table(&(struct table_def){.view = view, .id = "calls", .title = title, .rows = &shown, COLUMNS_OF(columns),
                                   .cell = method_cell, .whole = calls->all_ns, .shown_empty = true,
                                   .given = calls->left_out ? CALLS_LEFT_OUT : 0});
    free(rows);
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
    uint64_t method_ns; /* of all pairs of the method, in whose table the pair is */
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

/* Numbers of pairs, those that are shown first. */
struct pair_order {
    uint32_t *rows, *more;
    uint32_t row_count, more_count;
};

/* Adds the pairs of one method, of which at most `most` are shown. */
static void
order_pairs(struct pair_order *order, struct row_table *pairs, uint32_t first, bool callers, uint64_t most)
{
    uint32_t end = first, name = method_of(row_table_at(pairs, first), callers);
    uint64_t sum_ns = 0;
    for (; end < pairs->count && method_of(row_table_at(pairs, end), callers) == name; end++) {
        sum_ns += ((const struct pair_row *)row_table_at(pairs, end))->total_ns;
        if (end - first < most) order->rows[order->row_count++] = end;
        else order->more[order->more_count++] = end;
    }
    for (uint32_t at = first; at < end; at++) ((struct pair_row *)row_table_at(pairs, at))->method_ns = sum_ns;
}

/* The method of the table, and the other one. */
static struct cell
pair_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct pair_row *pair = row;
    const bool callers = def->context != NULL;
    if (own == METHOD) return cell_text(view_name(def->view, method_of(pair, callers)));
    return cell_text(callers && pair->caller == STRING_NONE ? text_of(OUTSIDE)
                                                            : view_name(def->view, method_of(pair, !callers)));
}

/* The pairs in which the methods with the most own time are callees (their callers), or callers. */
static void
add_pairs(const struct calls_view *calls, struct row_table *pairs, bool callers)
{
    const struct view *view = calls->view;
    const struct table_column columns[] = {
        {"calls", "calls", COLUMN_COUNT, SUMMED(pair_row, calls)},
        {"total_ns", "total", COLUMN_DURATION, SUMMED(pair_row, total_ns)},
        {"of", NULL, COLUMN_DURATION, MEMBER(pair_row, method_ns), .helper = true},
        {"share", "share", COLUMN_SHARE, SHARE_IN_ROW("total_ns", "of")},
        {"own_ns", "own", COLUMN_DURATION, SUMMED(pair_row, own_ns)},
        {callers ? "method" : "caller", callers ? "method" : "caller", COLUMN_TEXT, OWN_CELL(METHOD)},
        {callers ? "caller" : "callee", callers ? "called by" : "calls", COLUMN_TEXT, OWN_CELL(METHOD + 1)},
    };
    row_table_sort(pairs, callers ? compare_by_callee : compare_by_caller, NULL);
    uint32_t *first = first_pairs(view, pairs, callers), methods = 0;
    struct pair_order order = {.rows = xcalloc(2 * (size_t)pairs->count + 1, sizeof *order.rows)};
    order.more = order.rows + pairs->count;
    for (uint32_t i = 0; i < calls->methods.count && methods < view->top; i++) {
        const struct call_row *method = row_table_at(&calls->methods, i);
        if (!method_wanted(view, method->name)) continue;
        methods++;
        if (first[method->name] > 0)
            order_pairs(&order, pairs, first[method->name] - 1, callers, view->top / 3 + 1);
    }
    memmove(order.rows + order.row_count, order.more, order.more_count * sizeof *order.more);
    const struct view cut = {view->report, view->document, order.row_count};
    view_table(&(struct table_def){
        .view = &cut, .id = callers ? "callers" : "callees", .rows = pairs, COLUMNS_OF(columns), .order = order.rows,
        .order_count = order.row_count + order.more_count, .cell = pair_cell, .context = callers ? pairs : NULL,
        .title = text_of(callers ? "Callers of the methods with the most own time (share: of their time)"
                                 : "What the methods with the most own time call (share: of the callees' time)")});
    free(order.rows);
    free(first);
}

/* --- threads -------------------------------------------------------------------------------------- */

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

enum { THREAD_NS, OUTSIDE_NS, THREAD_CALLS, BUSIEST_NS, BUSIEST };

static struct cell
thread_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct call_thread *thread = row;
    const struct call_sum *busiest;
    if (own == THREAD_NS) return cell_number(thread_ns(def->view->report, thread));
    if (own == OUTSIDE_NS) return cell_number(thread_ns(def->view->report, thread) - thread->recorded_ns);
    const uint64_t calls = calls_of(&def->view->report->calls, thread->track, &busiest);
    if (own == THREAD_CALLS) return cell_number(calls);
    if (busiest == NULL) return (struct cell){0};
    return own == BUSIEST ? cell_text(view_name(def->view, busiest->name))
                          : cell_number(call_own_ns(busiest->totals.own_ns));
}

static void
add_threads(const struct calls_view *all)
{
    static const struct table_column columns[] = {
        {"thread_ns", "time", COLUMN_DURATION, OWN_SUM(THREAD_NS)},
        {"recorded_ns", "in calls", COLUMN_DURATION, SUMMED(call_thread, recorded_ns)},
        {"outside_ns", "outside", COLUMN_DURATION, OWN_SUM(OUTSIDE_NS)},
        {"calls", "calls", COLUMN_COUNT, OWN_CELL(THREAD_CALLS)},
        THREAD_COLUMNS(call_thread, track),
        {"number", NULL, COLUMN_NUMBER, MEMBER(call_thread, track), .helper = true},
        {"method_own_ns", "own", COLUMN_DURATION, OWN_CELL(BUSIEST_NS)},
        {"method", "busiest method", COLUMN_TEXT, OWN_CELL(BUSIEST)},
    };
    view_table(&(struct table_def){.view = all->view, .id = "calls_by_thread",
                                   .title = text_of("Calls by thread (outside: of recorded calls)"),
                                   .rows = &all->view->report->calls.threads, COLUMNS_OF(columns),
                                   .sort = {"recorded_ns", "number"}, .cell = thread_cell, .shown_empty = true});
}

static int
compare_sums(const void *left, const void *right, void *rows)
{
    const struct call_sum *a = row_table_at(rows, *(const uint32_t *)left);
    const struct call_sum *b = row_table_at(rows, *(const uint32_t *)right);
    if (a->totals.own_ns != b->totals.own_ns) return a->totals.own_ns > b->totals.own_ns ? -1 : 1;
    if (a->track != b->track) return a->track < b->track ? -1 : 1;
    return (a->name > b->name) - (a->name < b->name);
}

/* Methods in each thread. */
static void
add_methods_of_threads(const struct calls_view *all)
{
    static const struct table_column columns[] = {
        {"own_ns", "own", COLUMN_DURATION, SUMMED(call_sum, totals.own_ns)},
        {"total_ns", "total", COLUMN_DURATION, MEMBER(call_sum, totals.total_ns)},
        {"calls", "calls", COLUMN_COUNT, SUMMED(call_sum, totals.calls)},
        {"max_ns", "max", COLUMN_DURATION, MEMBER(call_sum, totals.max_ns)},
        {"tid", NULL, COLUMN_NUMBER, AT(SOURCE_TID, call_sum, track)},
        THREAD_COLUMN(call_sum, track),
        {"method", "method", COLUMN_TEXT, NAMED(call_sum, name)},
    };
    const struct view *view = all->view;
    struct row_table *sums = &view->report->calls.sums;
    uint32_t *order = xcalloc(sums->count + 1, sizeof *order), count = 0;
    for (uint32_t i = 0; i < sums->count; i++) {
        if (method_wanted(view, ((const struct call_sum *)row_table_at(sums, i))->name)) order[count++] = i;
    }
    qsort_r(order, count, sizeof *order, compare_sums, sums);
    view_table(&(struct table_def){.view = view, .id = "calls_by_thread_and_method",
                                   .title = text_of("Calls by thread and method"), .rows = sums, COLUMNS_OF(columns),
                                   .order = order, .order_count = count, .shown_empty = true,
                                   .data = view->report->calls.threads.count < 2});
    free(order);
}

/* --- single calls --------------------------------------------------------------------------------- */

static struct cell
slow_cell(const struct table_def *def, unsigned own, const void *row)
{
    return ((const struct slow_call *)row)->ended ? cell_text(text_of("not returned")) : (struct cell){0};
}

static void
add_slowest(const struct calls_view *all, const struct slowest *slowest, const char *id, const char *title)
{
    static const struct table_column columns[] = {
        {"total_ns", "time", COLUMN_DURATION, MEMBER(slow_call, total_ns)},
        {"own_ns", "own", COLUMN_DURATION, MEMBER(slow_call, own_ns)},
        {"start_ns", "start", COLUMN_TIME, SINCE_START(slow_call, begin_ns)},
        {"left_out", "left out", COLUMN_COUNT, MEMBER(slow_call, left_out), .people_if = CALLS_LEFT_OUT},
        {"tid", NULL, COLUMN_NUMBER, AT(SOURCE_TID, slow_call, track)},
        THREAD_COLUMN(slow_call, track),
        {"state", "", COLUMN_TEXT, OWN_CELL(0), .unless_empty = true},
        {"method", "method", COLUMN_TEXT, NAMED(slow_call, name)},
    };
    uint32_t count = slowest->count < all->view->top ? slowest->count : (uint32_t)all->view->top;
    struct row_table rows = ROWS_OF(slowest->heap, count);
    view_table(&(struct table_def){.view = all->view, .id = id, .title = text_of(title), .rows = &rows,
                                   COLUMNS_OF(columns), .cell = slow_cell,
                                   .given = all->left_out ? CALLS_LEFT_OUT : 0});
}

/* --- all ------------------------------------------------------------------------------------------ */

void
calls_tables(const struct view *view)
{
    struct report *report = view->report;
    struct document *document = view->document;
    struct calls_view calls = calls_view(view);
    if (report->calls.sums.count == 0)
        document_line(document, "calls", view_nothing(view, TOPIC_calls));
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
