/* report_threads.c - the tables of a report about what kept threads from running: states, what they
 * blocked in, and who held the GVL meanwhile. */
#include <string.h>

#include "base/map.h"
#include "render/report_view.h"

static const struct thread_times *
times_at(const struct view *view, uint32_t row)
{
    return row_table_at(&view->report->states.threads, row);
}

/* Pid, tid and name, the last cells of a row. */
static void
put_thread(const struct view *view, struct cell *cells, uint32_t number)
{
    const struct report_thread *thread = report_thread(view->report, number);
    cells[0] = cell_number(report_process(view->report, thread->process)->pid);
    if (thread->runs == STRING_NONE) cells[1] = cell_number(thread->tid);
    cells[2] = cell_text(view_name(view, thread->name));
}

/* Whether names do not tell the threads apart, so that people need their numbers. */
static bool
numbers_needed(const struct view *view)
{
    struct map seen = {0};
    bool needed = false;
    for (uint32_t i = 0; i < view->report->states.threads.count && !needed; i++) {
        uint32_t name = report_thread(view->report, times_at(view, i)->row)->name;
        needed = name == STRING_NONE || map_get(&seen, name) != MAP_NONE;
        map_set(&seen, name, i);
    }
    map_free(&seen);
    return needed;
}

/* Whether a thread collected garbage: otherwise the stream is probably off. */
static bool
has_gc(const struct view *view)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < view->report->states.threads.count; i++) ns += times_at(view, i)->ns[THREAD_IN_GC];
    return ns > 0;
}

/* Copies columns of a table with threads, without the titles that people do not need. */
static void
choose_columns(const struct view *view, struct column *to, const struct column *from, unsigned count)
{
    bool numbers = numbers_needed(view), gc = has_gc(view);
    for (unsigned i = 0; i < count; i++) {
        to[i] = from[i];
        if (strcmp(from[i].id, "tid") == 0 && !numbers) to[i].title = NULL;
        if (strstr(from[i].id, "gc_") != NULL && !gc) to[i].title = NULL;
    }
}

static int
compare_ids(const struct view *view, uint32_t left, uint32_t right)
{
    const struct report_thread *a = report_thread(view->report, left), *b = report_thread(view->report, right);
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    return (a->tid > b->tid) - (a->tid < b->tid);
}

/* --- states ----------------------------------------------------------------------------------- */

/* Waiting first: it is what another thread is to blame for. */
static int
compare_waiting(const void *left, const void *right, void *context)
{
    const struct thread_times *a = left, *b = right;
    uint64_t a_ns[] = {a->ns[THREAD_WAITING], thread_life_ns(a)}, b_ns[] = {b->ns[THREAD_WAITING], thread_life_ns(b)};
    for (unsigned i = 0; i < 2; i++) {
        if (a_ns[i] != b_ns[i]) return a_ns[i] > b_ns[i] ? -1 : 1;
    }
    return compare_ids(context, a->row, b->row);
}

/* Columns of states, in their order; each has a column of its share of the thread's life. */
static const enum thread_state shown_states[] = {THREAD_WAITING, THREAD_BLOCKED, THREAD_IN_GC, THREAD_RUNNING};
enum { SHOWN_STATES = sizeof shown_states / sizeof *shown_states };

static bool
selected(const struct view *view, const struct thread_times *times)
{
    return thread_life_ns(times) > 0 && report_thread_wanted(view->report, times->row);
}

/* The thread's time before its first record, and after its last one. */
static uint64_t
not_seen(const struct view *view, const struct thread_times *times)
{
    uint64_t life_ns = thread_life_ns(times);
    return report_thread_ns(view->report, times->row, life_ns) - life_ns;
}

static void
put_times(struct cell *cells, const uint64_t ns[THREAD_STATE_COUNT], uint64_t life_ns)
{
    *cells++ = cell_number(life_ns);
    for (unsigned i = 0; i < SHOWN_STATES; i++) {
        *cells++ = cell_number(ns[shown_states[i]]);
        *cells++ = cell_share(ns[shown_states[i]], life_ns);
        if (shown_states[i] == THREAD_WAITING) cells++; /* the longest wait */
    }
}

static void
add_states(const struct view *view)
{
    static const struct column columns[] = {
        {"life_ns", "life", COLUMN_DURATION},
        {"waiting_ns", "waiting", COLUMN_DURATION},
        {"waiting_share", "%", COLUMN_SHARE},
        {"longest_wait_ns", NULL, COLUMN_DURATION}, /* people need the space for names */
        {"blocked_ns", "blocked", COLUMN_DURATION},
        {"blocked_share", "%", COLUMN_SHARE},
        {"gc_ns", "in GC", COLUMN_DURATION},
        {"gc_share", "%", COLUMN_SHARE},
        {"running_ns", "running", COLUMN_DURATION},
        {"running_share", "%", COLUMN_SHARE},
        {"runs", NULL, COLUMN_COUNT},
        {"not_seen_ns", "not seen", COLUMN_DURATION},
        {"pid", NULL, COLUMN_NUMBER},
        {"tid", "tid", COLUMN_NUMBER},
        {"thread", "thread", COLUMN_TEXT},
    };
    enum { LONGEST = 3, RUNS = 2 + 2 * SHOWN_STATES, NOT_SEEN };
    struct row_table *threads = &view->report->states.threads;
    uint32_t count = 0;
    uint64_t all_ns = 0, not_seen_ns = 0;
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct thread_times *times = times_at(view, i);
        if (!selected(view, times)) continue;
        count++;
        all_ns += report_thread_ns(view->report, times->row, thread_life_ns(times));
        not_seen_ns += not_seen(view, times);
    }
    char number[NUMBER_TEXT];
    struct fxt_string title =
        document_text(view->document, "Where the time of %s thread%s went (waiting: for the GVL; %%: of life)",
                      with_commas(number, count), count == 1 ? "" : "s");
    struct column shown_columns[sizeof columns / sizeof *columns];
    choose_columns(view, shown_columns, columns, sizeof columns / sizeof *columns);
    if (!view_unseen_shown(not_seen_ns, all_ns)) shown_columns[NOT_SEEN].title = NULL;
    struct table *table = document_table(view->document, "thread_states", title, COLUMNS(shown_columns));
    table->data = count == 0;
    row_table_sort(threads, compare_waiting, (void *)view);
    uint64_t rest[THREAD_STATE_COUNT] = {0}, rest_life_ns = 0, rest_runs = 0, rest_not_seen_ns = 0;
    uint32_t shown = 0;
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct thread_times *times = times_at(view, i);
        if (!selected(view, times)) continue;
        if (shown == view->top) {
            for (unsigned state = 0; state < THREAD_STATE_COUNT; state++) rest[state] += times->ns[state];
            rest_life_ns += thread_life_ns(times);
            rest_runs += times->runs;
            rest_not_seen_ns += not_seen(view, times);
            continue;
        }
        shown++;
        struct cell *cells = table_row(table);
        put_times(cells, times->ns, thread_life_ns(times));
        cells[RUNS] = cell_number(times->runs);
        cells[LONGEST] = cell_number(times->longest_wait_ns);
        cells[NOT_SEEN] = cell_number(not_seen(view, times));
        put_thread(view, cells + NOT_SEEN + 1, times->row);
    }
    if (count <= shown) return;
    table->more_rows = count - shown;
    struct cell *cells = table_row(table);
    put_times(cells, rest, rest_life_ns);
    cells[RUNS] = cell_number(rest_runs);
    cells[NOT_SEEN] = cell_number(rest_not_seen_ns);
}

/* --- who held the GVL ---------------------------------------------------------------------------- */

static int
compare_holders(const void *left, const void *right, void *context)
{
    const struct thread_times *a = left, *b = right;
    if (a->others_ns != b->others_ns) return a->others_ns > b->others_ns ? -1 : 1;
    return compare_ids(context, a->row, b->row);
}

static bool
held(const struct view *view, const struct thread_times *times)
{
    return times->held_ns > 0 && report_thread_wanted(view->report, times->row);
}

static void
add_holders(const struct view *view)
{
    static const struct column columns[] = {
        {"others_ns", "others waited", COLUMN_DURATION},
        {"share", "share", COLUMN_SHARE},
        {"held_ns", "held", COLUMN_DURATION},
        {"held_gc_ns", "in GC", COLUMN_DURATION},
        {"longest_hold_ns", "longest hold", COLUMN_DURATION},
        {"longest_hold_at_ns", "at", COLUMN_TIME},
        {"marker", "in marker", COLUMN_TEXT},
        {"pid", NULL, COLUMN_NUMBER},
        {"tid", "tid", COLUMN_NUMBER},
        {"thread", "thread", COLUMN_TEXT},
    };
    struct report *report = view->report;
    struct row_table *threads = &report->states.threads;
    uint64_t others_ns = 0, rest_others_ns = 0, rest_held_ns = 0, rest_gc_ns = 0;
    uint32_t count = 0, shown = 0;
    bool markers = false;
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct thread_times *times = times_at(view, i);
        others_ns += times->others_ns;
        if (!held(view, times)) continue;
        count++;
        markers |= times->longest_hold_marker != STRING_NONE;
    }
    char number[NUMBER_TEXT];
    struct fxt_string title = document_text(view->document, "Who held the GVL while others waited: they waited %s",
                                            duration_text(number, others_ns));
    struct column shown_columns[sizeof columns / sizeof *columns];
    choose_columns(view, shown_columns, columns, sizeof columns / sizeof *columns);
    if (!markers) shown_columns[6].title = NULL;
    struct table *table = document_table(view->document, "gvl_holders", title, COLUMNS(shown_columns));
    table->data = count == 0;
    row_table_sort(threads, compare_holders, (void *)view);
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct thread_times *times = times_at(view, i);
        if (!held(view, times)) continue;
        if (shown == view->top) {
            rest_others_ns += times->others_ns;
            rest_held_ns += times->held_ns;
            rest_gc_ns += times->held_gc_ns;
            continue;
        }
        shown++;
        struct cell *cells = table_row(table);
        cells[0] = cell_number(times->others_ns);
        cells[1] = cell_share(times->others_ns, others_ns);
        cells[2] = cell_number(times->held_ns);
        cells[3] = cell_number(times->held_gc_ns);
        cells[4] = cell_number(times->longest_hold_ns);
        cells[5] = cell_time(times->longest_hold_at_ns - report->start_ns);
        uint32_t marker = times->longest_hold_marker;
        if (marker != STRING_NONE) cells[6] = cell_text(view_name(view, marker));
        put_thread(view, cells + 7, times->row);
    }
    if (count <= shown) return;
    table->more_rows = count - shown;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest_others_ns);
    cells[1] = cell_share(rest_others_ns, others_ns);
    cells[2] = cell_number(rest_held_ns);
    cells[3] = cell_number(rest_gc_ns);
}

/* --- what they blocked in ------------------------------------------------------------------------- */

static int
compare_blocked(const void *left, const void *right, void *context)
{
    const struct report_blocked *a = left, *b = right;
    const struct view *view = context;
    if (a->durations.total_ns != b->durations.total_ns) return a->durations.total_ns > b->durations.total_ns ? -1 : 1;
    const uint32_t a_key[] = {a->name, a->class_name}, b_key[] = {b->name, b->class_name};
    for (unsigned i = 0; i < 2; i++) {
        const struct pool *pool = view->report->pool;
        int order = fxt_string_compare(pool_string(pool, a_key[i]), pool_string(pool, b_key[i]));
        if (order != 0) return order;
    }
    return a->thread == b->thread ? 0 : compare_ids(view, a->thread, b->thread);
}

enum { BLOCKED_CELLS = 11 };

/* `by_thread`: the rows name their threads. */
static void
add_blocked_table(const struct view *view, struct row_table *rows, bool by_thread)
{
    const struct column columns[BLOCKED_CELLS] = {
        {"count", "count", COLUMN_COUNT},
        {"total_ns", "total", COLUMN_DURATION},
        {"share", "share", COLUMN_SHARE},
        {"median_ns", "median", COLUMN_DURATION},
        {"p95_ns", "95 %", COLUMN_DURATION},
        {"longest_ns", "longest", COLUMN_DURATION},
        {"name", "blocked in", COLUMN_TEXT},
        {"class", "class", COLUMN_TEXT},
        {"pid", NULL, COLUMN_NUMBER},
        {"tid", "tid", COLUMN_NUMBER},
        {"thread", "thread", COLUMN_TEXT},
    };
    uint64_t total_ns = 0, count = 0, rest_ns = 0, rest_count = 0;
    bool classes = false, several = false;
    uint32_t first_thread = 0;
    row_table_sort(rows, compare_blocked, (void *)view);
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct report_blocked *blocked = row_table_at(rows, i);
        total_ns += blocked->durations.total_ns;
        count += blocked->durations.count;
        classes |= blocked->class_name != STRING_NONE;
        if (i == 0) first_thread = blocked->thread;
        several |= blocked->thread != first_thread;
    }
    char number[NUMBER_TEXT], time[NUMBER_TEXT];
    struct fxt_string title =
        by_thread ? text_of("Blocked in, by thread")
                  : document_text(view->document, "Blocked in: %s time%s, %s in all", with_commas(number, count),
                                  count == 1 ? "" : "s", duration_text(time, total_ns));
    struct column shown[BLOCKED_CELLS];
    choose_columns(view, shown, columns, BLOCKED_CELLS);
    if (!classes) shown[7].title = NULL;
    struct table *table = document_table(view->document, by_thread ? "blocked_by_thread" : "blocked", title, shown,
                                         by_thread ? BLOCKED_CELLS : BLOCKED_CELLS - 3);
    table->data = rows->count == 0 || (by_thread && !several);
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct report_blocked *blocked = row_table_at(rows, i);
        const struct durations *durations = &blocked->durations;
        if (i >= view->top) {
            rest_count += durations->count;
            rest_ns += durations->total_ns;
            continue;
        }
        struct cell *cells = table_row(table);
        cells[0] = cell_number(durations->count);
        cells[1] = cell_number(durations->total_ns);
        cells[2] = cell_share(durations->total_ns, total_ns);
        cells[3] = cell_number(durations_quantile(durations, 0.5));
        cells[4] = cell_number(durations_quantile(durations, 0.95));
        cells[5] = cell_number(durations->longest_ns);
        cells[6] = cell_text(view_name(view, blocked->name));
        if (blocked->class_name != STRING_NONE) cells[7] = cell_text(view_name(view, blocked->class_name));
        if (by_thread) put_thread(view, cells + 8, blocked->thread);
    }
    if (rows->count <= view->top) return;
    table->more_rows = rows->count - view->top;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest_count);
    cells[1] = cell_number(rest_ns);
    cells[2] = cell_share(rest_ns, total_ns);
}

static void
add_blocked(const struct view *view)
{
    struct row_table *by_thread = &view->report->blocked, by_name;
    row_table_init(&by_name, sizeof(struct report_blocked), REPORT_BLOCKED_KEYS, REPORT_BLOCKED_MAX);
    for (uint32_t i = 0; i < by_thread->count; i++) {
        const struct report_blocked *blocked = row_table_at(by_thread, i);
        const uint32_t key[REPORT_BLOCKED_KEYS] = {0, blocked->name, blocked->class_name};
        struct report_blocked *sum = row_table_get(&by_name, key);
        durations_merge(&sum->durations, &blocked->durations);
    }
    add_blocked_table(view, &by_name, false);
    add_blocked_table(view, by_thread, true);
    for (uint32_t i = 0; i < by_name.count; i++) {
        struct report_blocked *sum = row_table_at(&by_name, i);
        durations_free(&sum->durations);
    }
    row_table_free(&by_name);
}

/* --- where their time slices ended ------------------------------------------------------------------ */

static int
compare_preempted(const void *left, const void *right, void *context)
{
    const struct report_preempted *a = left, *b = right;
    const struct view *view = context;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    const struct pool *pool = view->report->pool;
    int order = fxt_string_compare(pool_string(pool, a->frame), pool_string(pool, b->frame));
    return order != 0 ? order : a->thread == b->thread ? 0 : compare_ids(view, a->thread, b->thread);
}

static void
add_preempted(const struct view *view)
{
    enum { CELLS = 6 };
    const struct column columns[CELLS] = {
        {"count", "count", COLUMN_COUNT},  {"share", "share", COLUMN_SHARE}, {"frame", "method", COLUMN_TEXT},
        {"pid", NULL, COLUMN_NUMBER},      {"tid", "tid", COLUMN_NUMBER},    {"thread", "thread", COLUMN_TEXT},
    };
    struct row_table *rows = &view->report->preempted;
    uint64_t count = 0, rest = 0;
    row_table_sort(rows, compare_preempted, (void *)view);
    for (uint32_t i = 0; i < rows->count; i++) count += ((const struct report_preempted *)row_table_at(rows, i))->count;
    char number[NUMBER_TEXT];
    struct fxt_string title = document_text(view->document, "Where time slices ended: %s time%s",
                                            with_commas(number, count), count == 1 ? "" : "s");
    struct column shown[CELLS];
    choose_columns(view, shown, columns, CELLS);
    struct table *table = document_table(view->document, "preempted", title, shown, CELLS);
    table->data = rows->count == 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct report_preempted *preempted = row_table_at(rows, i);
        if (i >= view->top) {
            rest += preempted->count;
            continue;
        }
        struct cell *cells = table_row(table);
        cells[0] = cell_number(preempted->count);
        cells[1] = cell_share(preempted->count, count);
        cells[2] = cell_text(view_name(view, preempted->frame));
        put_thread(view, cells + 3, preempted->thread);
    }
    if (rows->count <= view->top) return;
    table->more_rows = rows->count - view->top;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest);
    cells[1] = cell_share(rest, count);
}

void
view_add_thread_states(const struct view *view)
{
    if (view->report->states.cpus.count + view->report->blocked.count == 0) return; /* not recorded */
    view_thread_pools(view, add_states, "waiting_ns", "life_ns");
    view_thread_pools(view, add_holders, "others_ns", NULL);
    add_preempted(view);
    add_blocked(view);
}
