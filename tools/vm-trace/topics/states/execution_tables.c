/* execution_tables.c - the tables of a report that the stream `states` makes possible: where the
 * time went, and what ran without compiled code, and why. */
#include "topics/compiles/code_text.h"
#include "topics/report_view.h"

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

/* What was not seen is last: nothing is known of it. */
static int
compare_states(const void *left, const void *right, void *context)
{
    const struct state_sum *a = left, *b = right;
    bool a_unseen = a->state == EXECUTION_UNSEEN, b_unseen = b->state == EXECUTION_UNSEEN;
    if (a_unseen != b_unseen) return a_unseen ? 1 : -1;
    if (a->ns != b->ns) return a->ns > b->ns ? -1 : 1;
    return (a->state > b->state) - (a->state < b->state);
}

enum { SHARE, RUNNING_SHARE, STATE, MEANING };

static struct cell
state_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct state_sum *sum = row;
    const uint64_t *ns = def->context;
    const struct execution_state_name *name = &execution_state_names[sum->state];
    bool unseen = sum->state == EXECUTION_UNSEEN;
    switch (own) {
      case SHARE: return unseen ? (struct cell){0} : cell_share(sum->ns, execution_life_ns(ns));
      case RUNNING_SHARE:
        return sum->state < EXECUTION_RUNNING_STATES ? cell_share(sum->ns, execution_running_ns(ns)) : (struct cell){0};
      case STATE: return cell_text(pool_string(def->view->report->pool, unseen ? STRING_UNSEEN : name->argument));
      default: return cell_text(text_of(unseen ? "(not seen)" : name->meaning));
    }
}

static void
add_states(const struct view *view)
{
    enum { NOT_ALL_RAN = 1 };
    static const struct table_column columns[] = {
        {"ns", "time", COLUMN_DURATION, MEMBER(state_sum, ns)},
        {"share", "share", COLUMN_SHARE, OWN_CELL(SHARE)},
        {"running_share", "of running", COLUMN_SHARE, OWN_CELL(RUNNING_SHARE), .people_if = NOT_ALL_RAN},
        {"state", NULL, COLUMN_TEXT, OWN_CELL(STATE)},
        {"meaning", "state", COLUMN_TEXT, OWN_CELL(MEANING)},
    };
    uint64_t ns[EXECUTION_STATES];
    execution_sum(&view->report->execution, ns);
    uint64_t running_ns = execution_running_ns(ns), life_ns = execution_life_ns(ns), all_ns = sum_of_wholes(view);
    bool unseen = view_unseen_shown(all_ns - life_ns, all_ns);
    uint32_t threads = view->report->execution.threads.count, count = 0;
    char number[NUMBER_TEXT], time[NUMBER_TEXT], all[NUMBER_TEXT], of_all[NUMBER_TEXT + 16] = "";
    if (unseen) snprintf(of_all, sizeof of_all, "the %s of ", duration_text(all, all_ns));
    struct fxt_string title = document_text(view->document, "Where the time went: %s of %s%s thread%s%s",
                                            duration_text(time, life_ns), of_all, with_commas(number, threads),
                                            threads == 1 ? "" : "s", unseen ? " (share: of what was seen)" : "");
    struct state_sum sums[EXECUTION_STATES];
    for (unsigned i = 0; i < EXECUTION_UNSEEN; i++) {
        if (ns[i] > 0) sums[count++] = (struct state_sum){i, ns[i]};
    }
    bool data = count == 0;
    if (unseen) sums[count++] = (struct state_sum){EXECUTION_UNSEEN, all_ns - life_ns};
    struct row_table rows = ROWS_OF(sums, count);
    const struct view whole = {view->report, view->document, EXECUTION_STATES};
    view_table(&(struct table_def){.view = &whole, .id = "states", .title = title, .rows = &rows, COLUMNS_OF(columns),
                                   .compare = compare_states, .cell = state_cell, .context = ns, .data = data,
                                   .given = life_ns > running_ns ? NOT_ALL_RAN : 0});
}

/* --- by thread ---------------------------------------------------------------------------------- */

enum { LIFE, NOT_SEEN, RUNNING, INTERPRETED };

static struct cell
thread_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct execution_thread *thread = row;
    const uint64_t *ns = thread->ns;
    switch (own) {
      case LIFE: return cell_number(execution_life_ns(ns));
      case NOT_SEEN: return cell_number(whole_ns(def->view, thread) - execution_life_ns(ns));
      case RUNNING: return cell_number(execution_running_ns(ns));
      default: return cell_number(ns[EXECUTION_UNCOMPILED] + ns[EXECUTION_UNCOMPILABLE] + ns[EXECUTION_REPROFILED]);
    }
}

/* Threads that lost most come first. Programs get each state; people the interpreter's other times as one. */
static void
add_threads(const struct view *view)
{
    enum { HAS_UNSEEN = 1 };
#define STATE(id, state) {(id), NULL, COLUMN_DURATION, SUMMED(execution_thread, ns[EXECUTION_##state])}
    static const struct table_column columns[] = {
        {"life_ns", "life", COLUMN_DURATION, OWN_SUM(LIFE)},
        {"not_seen_ns", "not seen", COLUMN_DURATION, OWN_SUM(NOT_SEEN), .people_if = HAS_UNSEEN},
        {"running_ns", "running", COLUMN_DURATION, OWN_SUM(RUNNING)},
        {"lost_ns", "lost", COLUMN_DURATION, SUMMED(execution_thread, ns[EXECUTION_EXITED])},
        {"lost_share", "%", COLUMN_SHARE, SHARE_IN_ROW("lost_ns", "running_ns")},
        {"compiled_share", "compiled", COLUMN_SHARE, SHARE_IN_ROW("compiled_ns", "running_ns")},
        {"interpreted_ns", "interpreted", COLUMN_DURATION, OWN_SUM(INTERPRETED)},
        STATE("compiled_ns", COMPILED),
        STATE("exited_ns", EXITED),
        STATE("uncompiled_ns", UNCOMPILED),
        STATE("uncompilable_ns", UNCOMPILABLE),
        STATE("reprofiled_ns", REPROFILED),
        STATE("fallback_ns", FALLBACK),
        STATE("c_function_ns", C_FUNCTION),
        STATE("compiling_ns", COMPILING),
        STATE("gc_ns", GC),
        STATE("waiting_ns", WAITING),
        STATE("no_cpu_ns", NO_CPU),
        STATE("blocked_ns", BLOCKED),
        STATE("unseen_ns", UNSEEN),
        {"changes", NULL, COLUMN_COUNT, SUMMED(execution_thread, changes)},
        THREAD_COLUMNS(execution_thread, thread),
        {"number", NULL, COLUMN_NUMBER, MEMBER(execution_thread, thread), .helper = true},
    };
    struct table_def def = {.view = view, .id = "states_by_thread", .rows = &view->report->execution.threads,
                            COLUMNS_OF(columns), .sort = {"lost_ns", "running_ns", "number"}, .cell = thread_cell,
                            .fewest = 2,
                            .title = text_of("Where the time went, by thread (lost: by exits; interpreted: otherwise; "
                                             "%: of running)")};
    uint64_t unseen_ns = view_table_sum(&def, "not_seen_ns");
    if (view_unseen_shown(unseen_ns, unseen_ns + view_table_sum(&def, "life_ns"))) def.given = HAS_UNSEEN;
    view_table(&def);
}

void
view_add_execution(const struct view *view)
{
    if (view->report->execution.threads.count == 0 || view->report->exits_only) return;
    add_states(view);
    view_thread_pools(view, add_threads, "lost_ns", "running_ns");
}

/* --- hot but interpreted -------------------------------------------------------------------------- */

static bool
iseq_counts(const struct table_def *def, const void *row)
{
    return report_iseq_wanted(def->view->report, ((const struct execution_iseq *)row)->iseq);
}

enum { OF_TIME, PER_CALL, WHEN, CODE, EXPLANATION };

static struct cell
iseq_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct execution_iseq *iseq = row;
    struct report *report = def->view->report;
    char text[CODE_TEXT];
    if (own == OF_TIME) return cell_share(iseq->interpreted_ns, def->whole);
    if (own == PER_CALL) return iseq->calls > 0 ? cell_number(iseq->interpreted_ns / iseq->calls) : (struct cell){0};
    if (own == WHEN)
        return cell_text(document_text(def->view->document, "%.3f .. %.3f s",
                                       (double)(iseq->first_ns - report->start_ns) / 1e9,
                                       (double)(iseq->last_ns - report->start_ns) / 1e9));
    bool known = *code_text(text, &report->history, report->pool, iseq, report->start_ns) != '\0';
    if (known) return cell_text(document_text(def->view->document, "%s", text));
    return own == EXPLANATION ? cell_text(view_name(def->view, iseq->why)) : (struct cell){0};
}

/* People get two texts: from when to when, and what became of the code, or else why there was none. */
void
view_add_interpreted(const struct view *view)
{
    enum { RAN = 1 };
    static const struct table_column columns[] = {
        {"interpreted_ns", "interpreted", COLUMN_DURATION, SUMMED(execution_iseq, interpreted_ns)},
        {"time_share", "%", COLUMN_SHARE, OWN_CELL(OF_TIME), .people_if = RAN},
        {"calls", "calls", COLUMN_COUNT, SUMMED(execution_iseq, calls)},
        {"ns_per_call", NULL, COLUMN_DURATION, OWN_CELL(PER_CALL)},
        {"first_ns", NULL, COLUMN_TIME, SINCE_START(execution_iseq, first_ns)},
        {"last_ns", NULL, COLUMN_TIME, SINCE_START(execution_iseq, last_ns)},
        {"when", "calls from .. to", COLUMN_TEXT, OWN_CELL(WHEN)},
        {"why", NULL, COLUMN_TEXT, NAMED(execution_iseq, why)},
        {"code", NULL, COLUMN_TEXT, OWN_CELL(CODE)},
        {"explanation", "why", COLUMN_TEXT, OWN_CELL(EXPLANATION)},
        {"method", "method", COLUMN_TEXT, NAMED(execution_iseq, iseq)},
        {"process", NULL, COLUMN_NUMBER, MEMBER(execution_iseq, process), .helper = true},
    };
    const uint64_t running_ns = view_running_ns(view);
    struct table_def def = {.view = view, .id = "interpreted", .rows = &view->report->execution.iseqs,
                            COLUMNS_OF(columns), .sort = {"interpreted_ns", "method", "process"},
                            .counts = iseq_counts, .cell = iseq_cell,
                            .whole = running_ns, .given = running_ns > 0 ? RAN : 0};
    if (view_table_rows(&def) == 0) return;
    char number[NUMBER_TEXT];
    uint64_t calls = view_table_sum(&def, "calls");
    def.title = document_text(view->document,
                              "Hot but interpreted: %s call%s without compiled code (with callees that are "
                              "interpreted, too; %%: of running)",
                              with_commas(number, calls), calls == 1 ? "" : "s");
    view_table(&def);
}
