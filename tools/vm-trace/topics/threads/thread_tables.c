/* thread_tables.c - the tables of a report about what kept threads from running: states, what they
 * blocked in, and who held the GVL meanwhile. */
#include "base/map.h"
#include "topics/report_view.h"

static const struct thread_times *
times_at(const struct view *view, uint32_t row)
{
    return row_table_at(&view->report->states.threads, row);
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

/* What people need to see of columns of threads. */
enum { NUMBERS_NEEDED = 1, HAS_GC = 2, HAS_UNSEEN = 4 };

static unsigned
given(const struct view *view)
{
    return (numbers_needed(view) ? NUMBERS_NEEDED : 0) | (has_gc(view) ? HAS_GC : 0);
}

#define THREAD(type, member)                                                                                           \
    THREAD_PID_COLUMN(type, member),                                                                                   \
    {"tid", "tid", COLUMN_NUMBER, AT(SOURCE_OWN_TID, type, member), .people_if = NUMBERS_NEEDED},                      \
    THREAD_COLUMN(type, member)

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

static bool
selected(const struct table_def *def, const void *row)
{
    const struct thread_times *times = row;
    return thread_life_ns(times) > 0 && report_thread_wanted(def->view->report, times->row);
}

enum { LIFE, NOT_SEEN };

static struct cell
state_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct thread_times *times = row;
    uint64_t life_ns = thread_life_ns(times);
    if (own == LIFE) return cell_number(life_ns);
    /* before its first record, and after its last one */
    return cell_number(report_thread_ns(def->view->report, times->row, life_ns) - life_ns);
}

static void
add_states(const struct view *view)
{
    static const struct table_column columns[] = {
        {"life_ns", "life", COLUMN_DURATION, OWN_SUM(LIFE)},
        {"waiting_ns", "waiting", COLUMN_DURATION, SUMMED(thread_times, ns[THREAD_WAITING])},
        {"waiting_share", "%", COLUMN_SHARE, SHARE_IN_ROW("waiting_ns", "life_ns")},
        /* people need the space for names */
        {"longest_wait_ns", NULL, COLUMN_DURATION, MEMBER(thread_times, longest_wait_ns)},
        {"blocked_ns", "blocked", COLUMN_DURATION, SUMMED(thread_times, ns[THREAD_BLOCKED])},
        {"blocked_share", "%", COLUMN_SHARE, SHARE_IN_ROW("blocked_ns", "life_ns")},
        {"gc_ns", "in GC", COLUMN_DURATION, SUMMED(thread_times, ns[THREAD_IN_GC]), .people_if = HAS_GC},
        {"gc_share", "%", COLUMN_SHARE, SHARE_IN_ROW("gc_ns", "life_ns"), .people_if = HAS_GC},
        {"running_ns", "running", COLUMN_DURATION, SUMMED(thread_times, ns[THREAD_RUNNING])},
        {"running_share", "%", COLUMN_SHARE, SHARE_IN_ROW("running_ns", "life_ns")},
        {"runs", NULL, COLUMN_COUNT, SUMMED(thread_times, runs)},
        {"not_seen_ns", "not seen", COLUMN_DURATION, OWN_SUM(NOT_SEEN), .people_if = HAS_UNSEEN},
        THREAD(thread_times, row),
    };
    struct table_def def = {.view = view, .id = "thread_states", .rows = &view->report->states.threads,
                            COLUMNS_OF(columns), .compare = compare_waiting, .compare_context = view,
                            .counts = selected, .cell = state_cell, .given = given(view)};
    uint64_t not_seen_ns = view_table_sum(&def, "not_seen_ns"), all_ns = view_table_sum(&def, "life_ns") + not_seen_ns;
    if (view_unseen_shown(not_seen_ns, all_ns)) def.given |= HAS_UNSEEN;
    char number[NUMBER_TEXT];
    uint32_t count = view_table_rows(&def);
    def.title = document_text(view->document, "Where the time of %s thread%s went (waiting: for the GVL; %%: of life)",
                              with_commas(number, count), count == 1 ? "" : "s");
    view_table(&def);
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
held(const struct table_def *def, const void *row)
{
    const struct thread_times *times = row;
    return times->held_ns > 0 && report_thread_wanted(def->view->report, times->row);
}

static void
add_holders(const struct view *view)
{
    static const struct table_column columns[] = {
        {"others_ns", "others waited", COLUMN_DURATION, SUMMED(thread_times, others_ns)},
        {"share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("others_ns")},
        {"held_ns", "held", COLUMN_DURATION, SUMMED(thread_times, held_ns)},
        {"held_gc_ns", "in GC", COLUMN_DURATION, SUMMED(thread_times, held_gc_ns), .people_if = HAS_GC},
        {"longest_hold_ns", "longest hold", COLUMN_DURATION, MEMBER(thread_times, longest_hold_ns)},
        {"longest_hold_at_ns", "at", COLUMN_TIME, SINCE_START(thread_times, longest_hold_at_ns)},
        {"marker", "in marker", COLUMN_TEXT, NAMED_IF_ANY(thread_times, longest_hold_marker), .unless_empty = true},
        THREAD(thread_times, row),
    };
    struct table_def def = {.view = view, .id = "gvl_holders", .rows = &view->report->states.threads,
                            COLUMNS_OF(columns), .compare = compare_holders, .compare_context = view,
                            .given = given(view)};
    char number[NUMBER_TEXT];
    def.whole = view_table_sum(&def, "others_ns"); /* of all threads */
    def.counts = held;
    def.title = document_text(view->document, "Who held the GVL while others waited: they waited %s",
                              duration_text(number, def.whole));
    view_table(&def);
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

/* `by_thread`: the rows name their threads. */
static void
add_blocked_table(const struct view *view, struct row_table *rows, bool by_thread)
{
    static const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, SUMMED(report_blocked, durations.count)},
        {"total_ns", "total", COLUMN_DURATION, SUMMED(report_blocked, durations.total_ns)},
        {"share", "share", COLUMN_SHARE, SHARE_OF("total_ns")},
        {"median_ns", "median", COLUMN_DURATION, QUANTILE(50, report_blocked, durations)},
        {"p95_ns", "95 %", COLUMN_DURATION, QUANTILE(95, report_blocked, durations)},
        {"longest_ns", "longest", COLUMN_DURATION, MEMBER(report_blocked, durations.longest_ns)},
        {"name", "blocked in", COLUMN_TEXT, NAMED(report_blocked, name)},
        {"class", "class", COLUMN_TEXT, NAMED_IF_ANY(report_blocked, class_name), .unless_empty = true},
        THREAD(report_blocked, thread),
    };
    enum { OF_THREADS = 3 }; /* the last columns */
    struct table_def def = {.view = view, .id = by_thread ? "blocked_by_thread" : "blocked", .rows = rows,
                            COLUMNS_OF(columns), .compare = compare_blocked, .compare_context = view,
                            .given = given(view), .title = text_of("Blocked in, by thread")};
    char number[NUMBER_TEXT], time[NUMBER_TEXT];
    uint64_t count = view_table_sum(&def, "count");
    if (!by_thread) {
        def.column_count -= OF_THREADS;
        def.title = document_text(view->document, "Blocked in: %s time%s, %s in all", with_commas(number, count),
                                  count == 1 ? "" : "s", duration_text(time, view_table_sum(&def, "total_ns")));
    }
    const struct report_blocked *first = rows->count > 0 ? row_table_at(rows, 0) : NULL;
    bool several = false;
    for (uint32_t i = 0; i < rows->count; i++)
        several |= ((const struct report_blocked *)row_table_at(rows, i))->thread != first->thread;
    def.data = by_thread && !several;
    view_table(&def);
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
    static const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, SUMMED(report_preempted, count)},
        {"share", "share", COLUMN_SHARE, SHARE_OF("count")},
        {"frame", "method", COLUMN_TEXT, NAMED(report_preempted, frame)},
        THREAD(report_preempted, thread),
    };
    struct table_def def = {.view = view, .id = "preempted", .rows = &view->report->preempted, COLUMNS_OF(columns),
                            .compare = compare_preempted, .compare_context = view, .given = given(view)};
    char number[NUMBER_TEXT];
    uint64_t count = view_table_sum(&def, "count");
    def.title = document_text(view->document, "Where time slices ended: %s time%s", with_commas(number, count),
                              count == 1 ? "" : "s");
    view_table(&def);
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

/* --- exits and events of each ---------------------------------------------------------------- */

static bool
thread_shown(const struct table_def *def, const void *row)
{
    const struct report_thread *thread = row;
    return thread->events + thread->exits + thread->fallbacks > 0;
}

static struct cell
tid_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct report_thread *thread = row;
    return thread->runs == STRING_NONE ? cell_number(thread->tid) : (struct cell){0};
}

void
view_add_threads(const struct view *view)
{
    static const struct table_column columns[] = {
        {"count", "exits", COLUMN_COUNT, SUMMED(report_thread, exits)},
        {"share", "share", COLUMN_SHARE, SHARE_OF("count")},
        {"fallbacks", "fallbacks", COLUMN_COUNT, SUMMED(report_thread, fallbacks)},
        {"events", "events", COLUMN_COUNT, SUMMED(report_thread, events)},
        {"pid", "pid", COLUMN_NUMBER, PROCESS_PID(report_thread, process)},
        {"tid", "tid", COLUMN_NUMBER, OWN_CELL(0)},
        {"thread", "thread", COLUMN_TEXT, NAMED(report_thread, name)},
        {"process", NULL, COLUMN_NUMBER, MEMBER(report_thread, process), .helper = true},
        {"tid_or_0", NULL, COLUMN_NUMBER, MEMBER(report_thread, tid), .helper = true},
        {"runs", NULL, COLUMN_NUMBER, MEMBER(report_thread, runs), .helper = true},
    };
    struct table_def def = {.view = view, .id = "threads", .rows = &view->report->threads, COLUMNS_OF(columns),
                            .sort = {"count", "events", "process", "tid_or_0", "runs"}, .counts = thread_shown,
                            .cell = tid_cell, .fewest = 2};
    char number[NUMBER_TEXT];
    def.title = document_text(view->document, "Threads, including those of ractors: %s",
                              with_commas(number, view_table_rows(&def)));
    view_table(&def);
}

void
threads_tables(const struct view *view)
{
    view_add_execution(view);
    view_add_thread_states(view);
    view_thread_pools(view, view_add_threads, "count", NULL);
    if (view->report->states.threads.count == 0)
        document_line(view->document, "threads", text_of("no states: --vm-trace=threads records them"));
}
