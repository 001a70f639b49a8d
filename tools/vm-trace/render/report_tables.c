/* report_tables.c - the tables of a report. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/label.h"
#include "analysis/report_resolve.h"
#include "base/escape.h"
#include "base/xalloc.h"
#include "render/report_tables.h"
#include "render/report_view.h"

/* "--since, --thread": the options that choose, of this report. */
static struct fxt_string
chosen_by(const struct view *view)
{
    const struct report_filter *filter = &view->report->filter;
    const char *globs[] = {filter->reason, filter->method, filter->thread};
    static const char *const names[] = {"--reason", "--method", "--thread", "--since", "--until"};
    const bool given[] = {globs[0] != NULL, globs[1] != NULL, globs[2] != NULL, filter->since_ns != INT64_MIN,
                          filter->until_ns != INT64_MAX};
    struct fxt_string text = text_of("");
    for (unsigned i = 0; i < sizeof given / sizeof *given; i++) {
        if (given[i]) text = document_text(view->document, "%s%s%s", text.ptr, text.len > 0 ? ", " : "", names[i]);
    }
    return text;
}

struct fxt_string
view_nothing(const struct view *view, enum report_stream stream)
{
    static const char *const names[REPORT_STREAMS] = {"calls", "syscalls", "sched", "samples"};
    if (!view->report->recorded[stream])
        return document_text(view->document, "none: --vm-trace=%s records them", names[stream]);
    const struct report_filter *filter = &view->report->filter;
    const char *why = "";
    if (filter->reason != NULL) why = ": only exits and fallbacks have a reason";
    else if (filter->method != NULL && (stream == REPORT_CPUS || stream == REPORT_SAMPLES))
        why = ": it chooses among exits, fallbacks, calls and allocations";
    return document_text(view->document, "none pass %s%s", chosen_by(view).ptr, why);
}

bool
view_unseen_shown(uint64_t unseen_ns, uint64_t whole_ns)
{
    return unseen_ns > 0 && unseen_ns >= whole_ns / 200;
}

/* --- exits ------------------------------------------------------------------------------------ */

static int
compare_exits(const void *left, const void *right, void *context)
{
    const struct exit_row *a = left, *b = right;
    const struct pool *pool = context;
    if (a->lost_ns != b->lost_ns) return a->lost_ns > b->lost_ns ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    const uint32_t a_key[] = {a->reason, a->location, a->insn, a->category, a->callee};
    const uint32_t b_key[] = {b->reason, b->location, b->insn, b->category, b->callee};
    for (unsigned i = 0; i < sizeof a_key / sizeof a_key[0]; i++) {
        int order = fxt_string_compare(pool_string(pool, a_key[i]), pool_string(pool, b_key[i]));
        if (order != 0) return order;
    }
    return (a->version > b->version) - (a->version < b->version);
}

/* "opt_plus" of "opt_plus@12". */
static uint32_t
opcode(struct pool *pool, uint32_t insn)
{
    int64_t index;
    struct fxt_string name = insn_without_index(pool_string(pool, insn), &index);
    return index == NO_INSN_INDEX ? insn : pool_intern(pool, name.ptr, name.len);
}

struct row_table
view_exits(const struct view *view, bool fallbacks, unsigned by, struct exit_row *sum_out)
{
    struct row_table rows;
    const struct exit_table *exits = &view->report->exits;
    row_table_init(&rows, sizeof(struct exit_row), EXIT_ROW_KEYS, EXIT_ROWS_MAX);
    if (sum_out) *sum_out = (struct exit_row){0};
    for (uint32_t i = 0; i < exits->rows.count; i++) {
        const struct exit_row *exit_row = row_table_at(&exits->rows, i);
        if ((exit_row->category == STRING_FALLBACK) != fallbacks || exit_row->count + exit_row->records == 0) continue;
        if (by & BY_VERSION && !view_versioned(view, exit_row)) continue;
        if (by & INDEXED_ONLY && opcode(view->report->pool, exit_row->insn) == exit_row->insn) continue;
        const uint32_t key[EXIT_ROW_KEYS] = {
            0,
            by & BY_CATEGORY ? exit_row->category : 0,
            by & BY_REASON ? exit_row->reason : 0,
            by & BY_LOCATION ? exit_row->location
            : by & BY_METHOD ? label_without_line(view->report->pool, exit_row->location)
                             : 0,
            by & BY_INSN ? exit_row->insn : by & BY_OPCODE ? opcode(view->report->pool, exit_row->insn) : 0,
            by & BY_VERSION ? exit_row->version : 0,
            0,
            by & BY_CALLEE ? exit_row->callee : 0,
        };
        struct exit_row *row = row_table_get(&rows, key);
        exit_row_merge(row, exit_row);
        durations_merge(&row->lost, &exit_row->lost);
        if (sum_out) exit_row_merge(sum_out, exit_row);
    }
    row_table_sort(&rows, compare_exits, view->report->pool);
    return rows;
}

const float *
view_rate(const struct view *view, const struct exit_row *exit_row)
{
    const struct report *report = view->report;
    if (exit_row->records == 0) return NULL;
    float *rate = document_rate(view->document);
    exit_row_rate(&report->exits, exit_row, report->first_ns, report->last_ns, DOCUMENT_PARTS, rate);
    return rate;
}

/* "Exits by reason: 24,017", how exact that is, and the time that they lost. */
static struct fxt_string
counted_title(const struct view *view, const char *title, const struct exit_row *sum)
{
    char count[NUMBER_TEXT], recorded[NUMBER_TEXT], time[NUMBER_TEXT], lost[NUMBER_TEXT + 16] = "";
    with_commas(count, sum->count);
    with_commas(recorded, sum->records);
    if (sum->lost_ns > 0) snprintf(lost, sizeof lost, "; %s lost", duration_text(time, sum->lost_ns));
    if (sum->count == sum->records) return document_text(view->document, "%s: %s%s", title, count, lost);
    if (sum->count == sum->hits)
        return document_text(view->document, "%s: exactly %s; %s recorded%s", title, count, recorded, lost);
    return document_text(view->document, "%s: about %s, from %s recorded%s", title, count, recorded, lost);
}

/* The columns for a row of exits. */
enum exit_cell {
    CELL_LOST,
    CELL_LOST_SHARE,
    CELL_OF_TIME,
    CELL_COUNT,
    CELL_SHARE,
    CELL_RECORDED,
    CELL_MEDIAN,
    CELL_P95,
    CELL_LONGEST,
    CELL_FIRST,
    CELL_LAST,
    CELL_RATE,
    CELL_KIND,
    CELL_REASON,
    CELL_INSN,
    CELL_CALLEE,
    CELL_METHOD,
    EXIT_CELLS
};

static const struct column exit_columns[EXIT_CELLS] = {
    [CELL_LOST] = {"lost_ns", "lost", COLUMN_DURATION},
    [CELL_LOST_SHARE] = {"lost_share", "of lost", COLUMN_SHARE},
    [CELL_OF_TIME] = {"time_share", "%", COLUMN_SHARE},
    [CELL_MEDIAN] = {"median_ns", "median", COLUMN_DURATION},
    [CELL_P95] = {"p95_ns", "95 %", COLUMN_DURATION},
    [CELL_LONGEST] = {"longest_ns", "longest", COLUMN_DURATION},
    [CELL_COUNT] = {"count", "count", COLUMN_COUNT},
    [CELL_SHARE] = {"share", "share", COLUMN_SHARE},
    [CELL_RECORDED] = {"recorded", "recorded", COLUMN_COUNT},
    [CELL_FIRST] = {"first_ns", "first", COLUMN_TIME},
    [CELL_LAST] = {"last_ns", "last", COLUMN_TIME},
    [CELL_RATE] = {"rate", "over time", COLUMN_RATE},
    [CELL_KIND] = {"kind", "kind", COLUMN_TEXT},
    [CELL_REASON] = {"reason", "reason", COLUMN_TEXT},
    [CELL_INSN] = {"instruction", "instruction", COLUMN_TEXT},
    [CELL_CALLEE] = {"callee", "callee", COLUMN_TEXT},
    [CELL_METHOD] = {"method", "method", COLUMN_TEXT},
};

static struct cell
exit_cell(const struct view *view, enum exit_cell cell, const struct exit_row *exit_row, const struct exit_row *sum)
{
    const struct report *report = view->report;
    switch (cell) {
      case CELL_LOST: return cell_number(exit_row->lost_ns);
      case CELL_LOST_SHARE: return cell_share(exit_row->lost_ns, sum->lost_ns);
      case CELL_OF_TIME: return cell_share(exit_row->lost_ns, view_running_ns(view));
      case CELL_MEDIAN:
        if (exit_row->lost.count > 0) return cell_number(durations_quantile(&exit_row->lost, 0.5));
        break;
      case CELL_P95:
        if (exit_row->lost.count > 0) return cell_number(durations_quantile(&exit_row->lost, 0.95));
        break;
      case CELL_LONGEST: if (exit_row->lost_max_ns > 0) return cell_number(exit_row->lost_max_ns); break;
      case CELL_COUNT: return cell_number(exit_row->count);
      case CELL_SHARE: return cell_share(exit_row->count, sum->count);
      case CELL_RECORDED: return cell_number(exit_row->records);
      case CELL_RATE: return cell_rate(view_rate(view, exit_row));
      case CELL_KIND: return cell_text(view_name(view, exit_row->category));
      case CELL_REASON: return cell_text(view_name(view, exit_row->reason));
      case CELL_INSN: return cell_text(view_name(view, exit_row->insn));
      case CELL_CALLEE:
        if (exit_row->callee != STRING_NONE) return cell_text(view_name(view, exit_row->callee));
        break;
      case CELL_METHOD: return cell_text(view_name(view, exit_row->location));
      case CELL_FIRST: if (exit_row->records > 0) return cell_time(exit_row->first_ns - report->start_ns); break;
      case CELL_LAST: if (exit_row->records > 0) return cell_time(exit_row->last_ns - report->start_ns); break;
      case EXIT_CELLS: break;
    }
    return (struct cell){0};
}

/* A table of exits grouped by some of their keys, and its columns. */
struct grouping {
    const char *id;
    const char *title;
    bool fallbacks;
    unsigned by;
    unsigned cell_count;
    enum exit_cell cells[EXIT_CELLS];
};

static const struct grouping groupings[] = {
    {"exits_by_place", "Exits by lost time", false, 
     BY_CATEGORY | BY_REASON | BY_LOCATION | BY_INSN | BY_CALLEE, 12,
     {CELL_LOST, CELL_LOST_SHARE, CELL_OF_TIME, CELL_COUNT, CELL_MEDIAN, CELL_P95, CELL_LONGEST, CELL_KIND, CELL_REASON,
      CELL_INSN, CELL_CALLEE, CELL_METHOD}},
    {"exits_by_reason", "Exits by reason", false, BY_CATEGORY | BY_REASON, 8,
     {CELL_LOST, CELL_LOST_SHARE, CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_RATE, CELL_KIND, CELL_REASON}},
    {"exits_by_line", "Exits by method and line", false, BY_LOCATION, 7,
     {CELL_LOST, CELL_LOST_SHARE, CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_RATE, CELL_METHOD}},
    {"exits_by_instruction", "Exits by instruction", false, BY_OPCODE, 7,
     {CELL_LOST, CELL_LOST_SHARE, CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_RATE, CELL_INSN}},
    {"worst", "Worst methods and reasons", false, BY_METHOD | BY_REASON, 10,
     {CELL_LOST, CELL_LOST_SHARE, CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_FIRST, CELL_LAST, CELL_RATE, CELL_REASON,
      CELL_METHOD}},
    {"exits_of_shared_lines", "Exits on lines that have their instruction more than once", false,
     BY_CATEGORY | BY_REASON | BY_LOCATION | BY_INSN | BY_CALLEE | INDEXED_ONLY, 7,
     {CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_REASON, CELL_INSN, CELL_CALLEE, CELL_METHOD}},
    {"fallbacks", "Fallbacks by reason and line", true, BY_LOCATION | BY_REASON | BY_CALLEE, 9,
     {CELL_COUNT, CELL_SHARE, CELL_RECORDED, CELL_FIRST, CELL_LAST, CELL_RATE, CELL_REASON, CELL_CALLEE, CELL_METHOD}},
};
enum { GROUPINGS = sizeof groupings / sizeof groupings[0], BY_PLACE = 0, SHARED_LINES = 5, FIRST_OF_FALLBACKS = 6 };

/* The cells for this trace: without lost times the table has none of them. Where there are any,
 * people need the space of other columns. */
static unsigned
choose_cells(const struct view *view, const struct grouping *grouping, const struct row_table *rows,
             const struct exit_row *sum, enum exit_cell *cells, struct column *columns)
{
    bool timed = report_timed(view->report), by_place = grouping == &groupings[BY_PLACE];
    bool callees = false, indexed = false; /* traces of older modules have none */
    unsigned count = 0;
    for (uint32_t row = 0; row < rows->count; row++) {
        const struct exit_row *exit_row = row_table_at(rows, row);
        callees |= exit_row->callee != STRING_NONE;
        indexed |= opcode(view->report->pool, exit_row->insn) != exit_row->insn;
    }
    for (unsigned i = 0; i < grouping->cell_count; i++) {
        enum exit_cell cell = grouping->cells[i];
        if (!timed && cell <= CELL_OF_TIME) continue;
        cells[count] = cell;
        columns[count] = exit_columns[cell];
        bool of_counts = cell == CELL_SHARE || cell == CELL_RECORDED || cell == CELL_FIRST;
        bool hidden = (cell == CELL_RECORDED && sum->records == sum->count) || (cell == CELL_CALLEE && !callees) ||
                      (timed && !grouping->fallbacks && of_counts) ||
                      (by_place && (cell == CELL_KIND || (cell == CELL_INSN && !indexed))) ||
                      (cell == CELL_LOST_SHARE && by_place && view_running_ns(view) > 0) ||
                      (cell == CELL_OF_TIME && view_running_ns(view) == 0);
        if (hidden) columns[count].title = NULL;
        count++;
    }
    return count;
}

static void
add_grouping(const struct view *view, const struct grouping *grouping)
{
    struct exit_row sum;
    struct row_table rows = view_exits(view, grouping->fallbacks, grouping->by, &sum);
    enum exit_cell chosen[EXIT_CELLS];
    struct column columns[EXIT_CELLS];
    unsigned count = choose_cells(view, grouping, &rows, &sum, chosen, columns);
    bool of_time = grouping == &groupings[BY_PLACE] && view_running_ns(view) > 0;
    const char *title = of_time ? "Exits by lost time (%: of the time in which threads ran)" : grouping->title;
    struct table *table =
        document_table(view->document, grouping->id, counted_title(view, title, &sum), columns, count);
    table->data = rows.count == 0;
    table->minor = "kind";
    for (uint32_t row = 0; row < rows.count && row < view->top; row++) {
        struct cell *cells = table_row(table);
        for (unsigned i = 0; i < count; i++) cells[i] = exit_cell(view, chosen[i], row_table_at(&rows, row), &sum);
    }
    if (rows.count > view->top) {
        struct exit_row rest = {0};
        for (uint32_t row = (uint32_t)view->top; row < rows.count; row++)
            exit_row_merge(&rest, row_table_at(&rows, row));
        table->more_rows = rows.count - view->top;
        struct cell *cells = table_row(table);
        for (unsigned i = 0; i < count && chosen[i] <= CELL_RECORDED; i++)
            cells[i] = exit_cell(view, chosen[i], &rest, &sum);
    }
    exit_rows_free(&rows);
}

static void
add_outcomes(const struct view *view)
{
    static const struct column columns[] = {
        {"count", "count", COLUMN_COUNT},
        {"share", "share", COLUMN_SHARE},
        {"outcome", "outcome", COLUMN_TEXT},
    };
    struct exit_row sum = {0};
    struct row_table rows = view_exits(view, false, BY_CATEGORY, NULL);
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct exit_row *exit_row = row_table_at(&rows, i);
        if (exit_row->category == STRING_RECOMPILE_EXIT) sum = *exit_row;
    }
    exit_rows_free(&rows);
    struct table *table = document_table(view->document, "outcomes",
                                         counted_title(view, "Recompile exits by outcome", &sum), COLUMNS(columns));
    table->data = sum.count == 0;
    bool shown[EXIT_OUTCOMES] = {false};
    for (;;) {
        unsigned most = EXIT_OUTCOMES;
        for (unsigned i = 0; i < EXIT_OUTCOMES; i++) {
            if (!shown[i] && sum.outcomes[i] > 0 && (most == EXIT_OUTCOMES || sum.outcomes[i] > sum.outcomes[most]))
                most = i;
        }
        if (most == EXIT_OUTCOMES) break;
        shown[most] = true;
        struct cell *cells = table_row(table);
        cells[0] = cell_number(sum.outcomes[most]);
        cells[1] = cell_share(sum.outcomes[most], sum.count);
        cells[2] = cell_text(most == OUTCOME_UNRECORDED
                                 ? text_of(REPORT_UNRECORDED)
                                 : view_name(view, most == 0 ? STRING_NONE : STRING_PROFILING + most - 1));
    }
}

/* --- threads and processes ------------------------------------------------------------------------- */

static int
compare_threads(const void *left, const void *right, void *context)
{
    const struct report_thread *a = left, *b = right;
    (void)context;
    if (a->exits != b->exits) return a->exits > b->exits ? -1 : 1;
    if (a->events != b->events) return a->events > b->events ? -1 : 1;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->tid != b->tid) return a->tid < b->tid ? -1 : 1;
    return (a->runs > b->runs) - (a->runs < b->runs);
}

static bool
thread_shown(const struct report_thread *thread)
{
    return thread->events + thread->exits + thread->fallbacks > 0;
}

static void
add_threads(const struct view *view)
{
    static const struct column columns[] = {
        {"count", "exits", COLUMN_COUNT},   {"share", "share", COLUMN_SHARE}, {"fallbacks", "fallbacks", COLUMN_COUNT},
        {"events", "events", COLUMN_COUNT}, {"pid", "pid", COLUMN_NUMBER},    {"tid", "tid", COLUMN_NUMBER},
        {"thread", "thread", COLUMN_TEXT},
    };
    struct report *report = view->report;
    uint64_t exits = 0;
    uint32_t seen = 0;
    row_table_sort(&report->threads, compare_threads, NULL);
    for (uint32_t i = 0; i < report->threads.count; i++) {
        exits += report_thread(report, i)->exits;
        seen += thread_shown(report_thread(report, i));
    }
    char number[NUMBER_TEXT];
    struct fxt_string title =
        document_text(view->document, "Threads, including those of ractors: %s", with_commas(number, seen));
    struct table *table = document_table(view->document, "threads", title, COLUMNS(columns));
    table->data = seen < 2;
    uint32_t shown = 0;
    uint64_t rest[3] = {0};
    for (uint32_t i = 0; i < report->threads.count; i++) {
        const struct report_thread *thread = report_thread(report, i);
        if (!thread_shown(thread)) continue;
        if (shown == view->top) {
            rest[0] += thread->exits, rest[1] += thread->fallbacks, rest[2] += thread->events;
            continue;
        }
        shown++;
        struct cell *cells = table_row(table);
        cells[0] = cell_number(thread->exits);
        cells[1] = cell_share(thread->exits, exits);
        cells[2] = cell_number(thread->fallbacks);
        cells[3] = cell_number(thread->events);
        cells[4] = cell_number(report_process(report, thread->process)->pid);
        if (thread->runs == STRING_NONE) cells[5] = cell_number(thread->tid);
        cells[6] = cell_text(view_name(view, thread->name));
    }
    if (seen <= shown) return;
    table->more_rows = seen - shown;
    struct cell *cells = table_row(table);
    cells[0] = cell_number(rest[0]);
    cells[1] = cell_share(rest[0], exits);
    cells[2] = cell_number(rest[1]);
    cells[3] = cell_number(rest[2]);
}

/* For programs: the numbers in titles and in the head. */
static void
add_totals(const struct view *view)
{
    static const struct column columns[] = {
        {"exits", NULL, COLUMN_COUNT},          {"exits_recorded", NULL, COLUMN_COUNT},
        {"fallbacks", NULL, COLUMN_COUNT},      {"compilations", NULL, COLUMN_COUNT},
        {"compiled_iseqs", NULL, COLUMN_COUNT}, {"compiled_nothing", NULL, COLUMN_COUNT},
        {"code_bytes", NULL, COLUMN_COUNT},     {"never_ended", NULL, COLUMN_COUNT},
    };
    struct report *report = view->report;
    struct exit_row exits, fallbacks;
    struct row_table rows = view_exits(view, false, 0, &exits);
    exit_rows_free(&rows);
    rows = view_exits(view, true, 0, &fallbacks);
    exit_rows_free(&rows);
    const struct compilations *compilations = &report->compilations;
    const uint64_t numbers[] = {exits.count,
                                exits.records,
                                fallbacks.count,
                                compilations->whole.count,
                                compilations->iseqs.count,
                                compilations->without_code,
                                compilations->code_bytes,
                                report->unended};
    struct table *table = document_table(view->document, "totals", text_of("Totals"), COLUMNS(columns));
    table->data = true;
    struct cell *cells = table_row(table);
    for (unsigned i = 0; i < table->column_count; i++) cells[i] = cell_number(numbers[i]);
    if (exits.count > 0 || fallbacks.count > 0) return;
    struct fxt_string filters = chosen_by(view);
    document_line(view->document, "exits",
                  filters.len > 0 ? document_text(view->document, "none pass %s", filters.ptr) : text_of("none"));
}

static void
add_exits(const struct view *view)
{
    for (unsigned i = report_timed(view->report) ? BY_PLACE : BY_PLACE + 1; i < SHARED_LINES; i++)
        add_grouping(view, &groupings[i]);
    if (!report_timed(view->report)) add_grouping(view, &groupings[SHARED_LINES]);
    view_add_throws(view);
    view_add_seen(view);
    add_outcomes(view);
}

static void
add_fallbacks(const struct view *view)
{
    for (unsigned i = FIRST_OF_FALLBACKS; i < GROUPINGS; i++) add_grouping(view, &groupings[i]);
}

void
report_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    add_totals(&view);
    view_add_execution(&view);
    view_add_samples(&view);
    view_add_calls(&view);
    add_exits(&view);
    view_add_interpreted(&view);
    view_add_recompiled(&view);
    view_add_loops(&view);
    add_fallbacks(&view);
    view_add_compilations(&view);
    view_add_durations(&view);
    view_add_thread_states(&view);
    view_add_cpus(&view);
    view_add_syscalls(&view);
    view_add_gc(&view);
    view_add_allocations(&view);
    view_thread_pools(&view, add_threads, "count", NULL);
}

void
report_exit_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    add_totals(&view);
    add_exits(&view);
    view_add_loops(&view);
    add_fallbacks(&view);
}

void
report_compile_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    view_add_execution(&view);
    view_add_interpreted(&view);
    view_add_recompiled(&view);
    view_add_compilations(&view);
    view_add_durations(&view);
    if (report->compilations.whole.count == 0 && report->execution.threads.count == 0)
        document_line(document, "compilations", text_of("none: --vm-trace=states records them"));
}

void
report_thread_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    view_add_execution(&view);
    view_add_thread_states(&view);
    view_thread_pools(&view, add_threads, "count", NULL);
    if (report->states.threads.count == 0)
        document_line(document, "threads", text_of("no states: --vm-trace=threads records them"));
}

void
report_gc_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
    view_add_gc(&view);
    view_add_allocations(&view);
    if (report->gc.reasons.count == 0)
        document_line(document, "gc",
                      text_of("no collections: --vm-trace=gc,allocations records them, and what allocates"));
}
