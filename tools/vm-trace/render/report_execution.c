/* report_execution.c - the tables of a report that the stream `states` makes possible: where the
 * time went, and what ran without compiled code, and why. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "render/code_text.h"
#include "render/report_view.h"

static const struct execution_thread *
thread_at(const struct view *view, uint32_t row)
{
    return row_table_at(&view->report->execution.threads, row);
}

uint64_t
view_running_ns(const struct view *view)
{
    uint64_t ns[EXECUTION_STATES];
    execution_sum(&view->report->execution, ns);
    return execution_running_ns(ns);
}

/* The time of a thread: what the stream saw of it, and what it did not. */
static uint64_t
whole_ns(const struct view *view, const struct execution_thread *thread)
{
    uint64_t seen_ns = execution_life_ns(thread->ns);
    return report_thread_ns(view->report, thread->thread, seen_ns + thread->ns[EXECUTION_UNSEEN]);
}

static uint64_t
sum_of_wholes(const struct view *view)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < view->report->execution.threads.count; i++) ns += whole_ns(view, thread_at(view, i));
    return ns;
}

/* --- by state --------------------------------------------------------------------------------- */

struct state_sum {
    unsigned state;
    uint64_t ns;
};

static int
compare_states(const void *left, const void *right)
{
    const struct state_sum *a = left, *b = right;
    if (a->ns != b->ns) return a->ns > b->ns ? -1 : 1;
    return a->state < b->state ? -1 : 1;
}

static void
add_states(const struct view *view)
{
    uint64_t ns[EXECUTION_STATES];
    execution_sum(&view->report->execution, ns);
    uint64_t running_ns = execution_running_ns(ns), life_ns = execution_life_ns(ns), all_ns = sum_of_wholes(view);
    bool unseen = view_unseen_shown(all_ns - life_ns, all_ns);
    const struct column columns[] = {
        {"ns", "time", COLUMN_DURATION},
        {"share", "share", COLUMN_SHARE},
        {"running_share", life_ns > running_ns ? "of running" : NULL, COLUMN_SHARE},
        {"state", NULL, COLUMN_TEXT},
        {"meaning", "state", COLUMN_TEXT},
    };
    uint32_t threads = view->report->execution.threads.count;
    char number[NUMBER_TEXT], time[NUMBER_TEXT], all[NUMBER_TEXT], of_all[NUMBER_TEXT + 16] = "";
    if (unseen) snprintf(of_all, sizeof of_all, "the %s of ", duration_text(all, all_ns));
    struct fxt_string title = document_text(view->document, "Where the time went: %s of %s%s thread%s%s",
                                            duration_text(time, life_ns), of_all, with_commas(number, threads),
                                            threads == 1 ? "" : "s", unseen ? " (share: of what was seen)" : "");
    struct table *table = document_table(view->document, "states", title, COLUMNS(columns));
    struct state_sum sums[EXECUTION_STATES];
    for (unsigned i = 0; i < EXECUTION_STATES; i++) sums[i] = (struct state_sum){i, ns[i]};
    qsort(sums, EXECUTION_UNSEEN, sizeof *sums, compare_states);
    for (unsigned i = 0; i < EXECUTION_UNSEEN; i++) { /* nothing is known of what was not seen */
        if (sums[i].ns == 0) continue;
        const struct execution_state_name *name = &execution_state_names[sums[i].state];
        struct cell *cells = table_row(table);
        cells[0] = cell_number(sums[i].ns);
        cells[1] = cell_share(sums[i].ns, life_ns);
        if (sums[i].state < EXECUTION_RUNNING_STATES) cells[2] = cell_share(sums[i].ns, running_ns);
        cells[3] = cell_text(pool_string(view->report->pool, name->argument));
        cells[4] = cell_text(text_of(name->meaning));
    }
    table->data = table->row_count == 0;
    if (!unseen) return;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(all_ns - life_ns);
    cells[3] = cell_text(pool_string(view->report->pool, STRING_UNSEEN));
    cells[4] = cell_text(text_of("(not seen)"));
}

/* --- by thread ---------------------------------------------------------------------------------- */

/* Threads that lost most come first. */
static int
compare_threads(const void *left, const void *right, void *context)
{
    const struct execution_thread *a = left, *b = right;
    (void)context;
    if (a->ns[EXECUTION_EXITED] != b->ns[EXECUTION_EXITED])
        return a->ns[EXECUTION_EXITED] > b->ns[EXECUTION_EXITED] ? -1 : 1;
    uint64_t a_ns = execution_running_ns(a->ns), b_ns = execution_running_ns(b->ns);
    if (a_ns != b_ns) return a_ns > b_ns ? -1 : 1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

/* Programs get each state; people the interpreter's other times as one. */
enum { LIFE, NOT_SEEN, RUNNING, EXITED, EXITED_SHARE, COMPILED_SHARE, INTERPRETED, NS, CHANGES = NS + EXECUTION_STATES, PID, TID,
       NAME, THREAD_CELLS };

static void
put_states(struct cell *cells, const uint64_t ns[EXECUTION_STATES], uint64_t all_ns, uint64_t changes)
{
    uint64_t running_ns = execution_running_ns(ns);
    cells[LIFE] = cell_number(execution_life_ns(ns));
    cells[NOT_SEEN] = cell_number(all_ns - execution_life_ns(ns));
    cells[RUNNING] = cell_number(running_ns);
    cells[EXITED] = cell_number(ns[EXECUTION_EXITED]);
    cells[EXITED_SHARE] = cell_share(ns[EXECUTION_EXITED], running_ns);
    cells[COMPILED_SHARE] = cell_share(ns[EXECUTION_COMPILED], running_ns);
    cells[INTERPRETED] =
        cell_number(ns[EXECUTION_UNCOMPILED] + ns[EXECUTION_UNCOMPILABLE] + ns[EXECUTION_REPROFILED]);
    for (unsigned state = 0; state < EXECUTION_STATES; state++) cells[NS + state] = cell_number(ns[state]);
    cells[CHANGES] = cell_number(changes);
}

static void
add_threads(const struct view *view)
{
    static const char *const ids[EXECUTION_STATES] = {
        [EXECUTION_COMPILED] = "compiled_ns",         [EXECUTION_EXITED] = "exited_ns",
        [EXECUTION_UNCOMPILED] = "uncompiled_ns",     [EXECUTION_UNCOMPILABLE] = "uncompilable_ns",
        [EXECUTION_REPROFILED] = "reprofiled_ns",     [EXECUTION_FALLBACK] = "fallback_ns",
        [EXECUTION_C_FUNCTION] = "c_function_ns",     [EXECUTION_COMPILING] = "compiling_ns",
        [EXECUTION_GC] = "gc_ns",                     [EXECUTION_WAITING] = "waiting_ns",
        [EXECUTION_BLOCKED] = "blocked_ns",           [EXECUTION_UNSEEN] = "unseen_ns",
    };
    struct column columns[THREAD_CELLS] = {
        [LIFE] = {"life_ns", "life", COLUMN_DURATION},
        [NOT_SEEN] = {"not_seen_ns", NULL, COLUMN_DURATION},
        [RUNNING] = {"running_ns", "running", COLUMN_DURATION},
        [EXITED] = {"lost_ns", "lost", COLUMN_DURATION},
        [EXITED_SHARE] = {"lost_share", "%", COLUMN_SHARE},
        [COMPILED_SHARE] = {"compiled_share", "compiled", COLUMN_SHARE},
        [INTERPRETED] = {"interpreted_ns", "interpreted", COLUMN_DURATION},
        [CHANGES] = {"changes", NULL, COLUMN_COUNT},
        [PID] = {"pid", NULL, COLUMN_NUMBER},
        [TID] = {"tid", "tid", COLUMN_NUMBER},
        [NAME] = {"thread", "thread", COLUMN_TEXT},
    };
    for (unsigned state = 0; state < EXECUTION_STATES; state++)
        columns[NS + state] = (struct column){ids[state], NULL, COLUMN_DURATION};
    struct report *report = view->report;
    struct row_table *threads = &report->execution.threads;
    row_table_sort(threads, compare_threads, NULL);
    uint64_t sum[EXECUTION_STATES], all_ns = sum_of_wholes(view), rest_ns = 0;
    execution_sum(&report->execution, sum);
    if (view_unseen_shown(all_ns - execution_life_ns(sum), all_ns)) columns[NOT_SEEN].title = "not seen";
    struct fxt_string title =
        text_of("Where the time went, by thread (lost: by exits; interpreted: otherwise; %: of running)");
    struct table *table = document_table(view->document, "states_by_thread", title, columns, THREAD_CELLS);
    table->data = threads->count < 2;
    struct execution_thread rest = {0};
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct execution_thread *thread = thread_at(view, i);
        const struct report_thread *named = report_thread(report, thread->thread);
        if (i >= view->top) {
            for (unsigned state = 0; state < EXECUTION_STATES; state++) rest.ns[state] += thread->ns[state];
            rest.changes += thread->changes;
            rest_ns += whole_ns(view, thread);
            continue;
        }
        struct cell *cells = table_row(table);
        put_states(cells, thread->ns, whole_ns(view, thread), thread->changes);
        cells[PID] = cell_number(report_process(report, named->process)->pid);
        cells[TID] = cell_number(named->tid);
        cells[NAME] = cell_text(view_name(view, named->name));
    }
    if (threads->count <= view->top) return;
    table->more_rows = threads->count - view->top;
    put_states(table_row(table), rest.ns, rest_ns, rest.changes);
}

void
view_add_execution(const struct view *view)
{
    if (view->report->execution.threads.count == 0 || view->report->exits_only) return;
    add_states(view);
    view_thread_pools(view, add_threads, "lost_ns", "running_ns");
}

/* --- hot but interpreted -------------------------------------------------------------------------- */

static int
compare_iseqs(const void *left, const void *right, void *context)
{
    const struct execution_iseq *a = left, *b = right;
    const struct pool *pool = context;
    if (a->interpreted_ns != b->interpreted_ns) return a->interpreted_ns > b->interpreted_ns ? -1 : 1;
    int order = fxt_string_compare(pool_string(pool, a->iseq), pool_string(pool, b->iseq));
    if (order != 0) return order;
    return (a->process > b->process) - (a->process < b->process);
}

void
view_add_interpreted(const struct view *view)
{
    struct report *report = view->report;
    struct row_table *iseqs = &report->execution.iseqs;
    uint64_t calls = 0, rest_ns = 0, rest_calls = 0;
    uint32_t wanted = 0, shown = 0;
    for (uint32_t i = 0; i < iseqs->count; i++) {
        const struct execution_iseq *iseq = row_table_at(iseqs, i);
        if (!report_iseq_wanted(report, iseq->iseq)) continue;
        wanted++;
        calls += iseq->calls;
    }
    if (wanted == 0) return;
    /* People get two texts: from when to when, and what became of the code, or else why there was
     * none. */
    const struct column columns[] = {
        {"interpreted_ns", "interpreted", COLUMN_DURATION},
        {"time_share", view_running_ns(view) > 0 ? "%" : NULL, COLUMN_SHARE},
        {"calls", "calls", COLUMN_COUNT},
        {"ns_per_call", NULL, COLUMN_DURATION},
        {"first_ns", NULL, COLUMN_TIME},
        {"last_ns", NULL, COLUMN_TIME},
        {"when", "calls from .. to", COLUMN_TEXT},
        {"why", NULL, COLUMN_TEXT},
        {"code", NULL, COLUMN_TEXT},
        {"explanation", "why", COLUMN_TEXT},
        {"method", "method", COLUMN_TEXT},
    };
    char number[NUMBER_TEXT];
    struct fxt_string title = document_text(view->document,
                                            "Hot but interpreted: %s call%s without compiled code (with callees "
                                            "that are interpreted, too; %%: of running)",
                                            with_commas(number, calls), calls == 1 ? "" : "s");
    struct table *table = document_table(view->document, "interpreted", title, COLUMNS(columns));
    row_table_sort(iseqs, compare_iseqs, report->pool);
    for (uint32_t i = 0; i < iseqs->count; i++) {
        const struct execution_iseq *iseq = row_table_at(iseqs, i);
        if (!report_iseq_wanted(report, iseq->iseq)) continue;
        if (shown == view->top) {
            rest_ns += iseq->interpreted_ns;
            rest_calls += iseq->calls;
            continue;
        }
        shown++;
        struct cell *cells = table_row(table);
        cells[0] = cell_number(iseq->interpreted_ns);
        cells[1] = cell_share(iseq->interpreted_ns, view_running_ns(view));
        cells[2] = cell_number(iseq->calls);
        if (iseq->calls > 0) cells[3] = cell_number(iseq->interpreted_ns / iseq->calls);
        cells[4] = cell_time(iseq->first_ns - report->start_ns);
        cells[5] = cell_time(iseq->last_ns - report->start_ns);
        cells[6] = cell_text(document_text(view->document, "%.3f .. %.3f s",
                                           (double)(iseq->first_ns - report->start_ns) / 1e9,
                                           (double)(iseq->last_ns - report->start_ns) / 1e9));
        char text[CODE_TEXT];
        bool known = *code_text(text, &report->history, report->pool, iseq, report->start_ns) != '\0';
        struct fxt_string why = view_name(view, iseq->why);
        struct fxt_string code = known ? document_text(view->document, "%s", text) : why;
        cells[7] = cell_text(why);
        if (known) cells[8] = cell_text(code);
        cells[9] = cell_text(code);
        cells[10] = cell_text(view_name(view, iseq->iseq));
    }
    if (wanted <= shown) return;
    table->more_rows = wanted - shown;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest_ns);
    cells[2] = cell_number(rest_calls);
}
