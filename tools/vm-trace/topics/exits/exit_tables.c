/* exit_tables.c - the tables of a report about exits and fallbacks. */
#include <stdio.h>

#include "topics/report_view.h"

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

/* What people need to see of these columns. Where there are lost times, they need the space of others. */
enum { TIMED = 1, UNTIMED = 2, SAMPLED = 4, OF_TIME = 8, NOT_OF_TIME = 16, INDEXED = 32, KINDS = 64 };

static const struct table_column exit_columns[EXIT_CELLS] = {
    [CELL_LOST] = {"lost_ns", "lost", COLUMN_DURATION, SUMMED(exit_row, lost_ns), .only_if = TIMED},
    [CELL_LOST_SHARE] = {"lost_share", "of lost", COLUMN_SHARE, SHARE_OF("lost_ns"), .only_if = TIMED,
                         .people_if = NOT_OF_TIME},
    [CELL_OF_TIME] = {"time_share", "%", COLUMN_SHARE, SHARE_OF_WHOLE("lost_ns"), .only_if = TIMED,
                      .people_if = OF_TIME},
    [CELL_MEDIAN] = {"median_ns", "median", COLUMN_DURATION, OWN_CELL(CELL_MEDIAN)},
    [CELL_P95] = {"p95_ns", "95 %", COLUMN_DURATION, OWN_CELL(CELL_P95)},
    [CELL_LONGEST] = {"longest_ns", "longest", COLUMN_DURATION, MEMBER(exit_row, lost_max_ns), .blank_zero = true},
    [CELL_COUNT] = {"count", "count", COLUMN_COUNT, SUMMED(exit_row, count)},
    [CELL_SHARE] = {"share", "share", COLUMN_SHARE, SHARE_OF("count"), .people_if = UNTIMED},
    [CELL_RECORDED] = {"recorded", "recorded", COLUMN_COUNT, SUMMED(exit_row, records), .people_if = UNTIMED | SAMPLED},
    [CELL_FIRST] = {"first_ns", "first", COLUMN_TIME, OWN_CELL(CELL_FIRST), .people_if = UNTIMED},
    [CELL_LAST] = {"last_ns", "last", COLUMN_TIME, OWN_CELL(CELL_LAST)},
    [CELL_RATE] = {"rate", "over time", COLUMN_RATE, OWN_CELL(CELL_RATE)},
    [CELL_KIND] = {"kind", "kind", COLUMN_TEXT, NAMED(exit_row, category), .people_if = KINDS},
    [CELL_REASON] = {"reason", "reason", COLUMN_TEXT, NAMED(exit_row, reason)},
    [CELL_INSN] = {"instruction", "instruction", COLUMN_TEXT, NAMED(exit_row, insn), .people_if = INDEXED},
    [CELL_CALLEE] = {"callee", "callee", COLUMN_TEXT, NAMED_IF_ANY(exit_row, callee), .unless_empty = true},
    [CELL_METHOD] = {"method", "method", COLUMN_TEXT, NAMED(exit_row, location)},
};

static struct cell
exit_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct exit_row *exit_row = row;
    if (own == CELL_RATE) return cell_rate(view_rate(def->view, exit_row));
    if (own == CELL_MEDIAN || own == CELL_P95)
        return exit_row->lost.count > 0 ? cell_number(durations_quantile(&exit_row->lost, own == CELL_P95 ? 0.95 : 0.5))
                                        : (struct cell){0};
    if (exit_row->records == 0) return (struct cell){0};
    return cell_time((own == CELL_FIRST ? exit_row->first_ns : exit_row->last_ns) - def->view->report->start_ns);
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

/* Whether an instruction has an index: traces of older modules have none. */
static bool
any_indexed(const struct view *view, const struct row_table *rows)
{
    for (uint32_t row = 0; row < rows->count; row++) {
        const struct exit_row *exit_row = row_table_at(rows, row);
        if (view_opcode(view->report->pool, exit_row->insn) != exit_row->insn) return true;
    }
    return false;
}

static void
add_grouping(const struct view *view, const struct grouping *grouping)
{
    struct exit_row sum;
    struct row_table rows = view_exits(view, grouping->fallbacks, grouping->by, &sum);
    struct table_column columns[EXIT_CELLS];
    for (unsigned i = 0; i < grouping->cell_count; i++) columns[i] = exit_columns[grouping->cells[i]];
    bool timed = report_timed(view->report), by_place = grouping == &groupings[BY_PLACE];
    const uint64_t running_ns = view_running_ns(view);
    bool of_time = by_place && running_ns > 0;
    const char *title = of_time ? "Exits by lost time (%: of the time in which threads ran)" : grouping->title;
    struct table *table = view_table(&(struct table_def){
        .view = view, .id = grouping->id, .title = counted_title(view, title, &sum), .rows = &rows, .columns = columns,
        .column_count = grouping->cell_count, .cell = exit_cell, .whole = running_ns,
        .given = (timed ? TIMED : 0) | (timed && !grouping->fallbacks ? 0 : UNTIMED) |
                 (sum.records != sum.count ? SAMPLED : 0) | (of_time ? OF_TIME : NOT_OF_TIME) | (by_place ? 0 : KINDS) |
                 (!by_place || any_indexed(view, &rows) ? INDEXED : 0)});
    table->minor = "kind";
    exit_rows_free(&rows);
}

struct outcome {
    unsigned number; /* 0: unknown */
    uint64_t count;
};

static struct cell
outcome_cell(const struct table_def *def, unsigned own, const void *row)
{
    unsigned number = ((const struct outcome *)row)->number;
    if (number == OUTCOME_UNRECORDED) return cell_text(text_of(REPORT_UNRECORDED));
    return cell_text(view_name(def->view, number == 0 ? STRING_NONE : STRING_PROFILING + number - 1));
}

static void
add_outcomes(const struct view *view)
{
    static const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, MEMBER(outcome, count)},
        {"share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("count")},
        {"outcome", "outcome", COLUMN_TEXT, OWN_CELL(0)},
        {"number", NULL, COLUMN_NUMBER, MEMBER(outcome, number), .helper = true},
    };
    struct exit_row sum = {0};
    struct row_table rows = view_exits(view, false, BY_CATEGORY, NULL);
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct exit_row *exit_row = row_table_at(&rows, i);
        if (exit_row->category == STRING_RECOMPILE_EXIT) sum = *exit_row;
    }
    exit_rows_free(&rows);
    struct outcome outcomes[EXIT_OUTCOMES];
    uint32_t count = 0;
    for (unsigned i = 0; i < EXIT_OUTCOMES; i++) {
        if (sum.outcomes[i] > 0) outcomes[count++] = (struct outcome){i, sum.outcomes[i]};
    }
    struct row_table listed = ROWS_OF(outcomes, count);
    const struct view whole = {view->report, view->document, EXIT_OUTCOMES};
    view_table(&(struct table_def){.view = &whole, .id = "outcomes", .rows = &listed, COLUMNS_OF(columns),
                                   .title = counted_title(view, "Recompile exits by outcome", &sum),
                                   .sort = {"count", "number"}, .cell = outcome_cell, .whole = sum.count});
}

/* For programs: the numbers in titles and in the head. */
struct totals {
    uint64_t exits, records, fallbacks, compilations, iseqs, without_code, code_bytes, unended;
};

void
view_add_totals(const struct view *view)
{
    static const struct table_column columns[] = {
        {"exits", NULL, COLUMN_COUNT, MEMBER(totals, exits)},
        {"exits_recorded", NULL, COLUMN_COUNT, MEMBER(totals, records)},
        {"fallbacks", NULL, COLUMN_COUNT, MEMBER(totals, fallbacks)},
        {"compilations", NULL, COLUMN_COUNT, MEMBER(totals, compilations)},
        {"compiled_iseqs", NULL, COLUMN_COUNT, MEMBER(totals, iseqs)},
        {"compiled_nothing", NULL, COLUMN_COUNT, MEMBER(totals, without_code)},
        {"code_bytes", NULL, COLUMN_COUNT, MEMBER(totals, code_bytes)},
        {"never_ended", NULL, COLUMN_COUNT, MEMBER(totals, unended)},
    };
    struct exit_row exits, fallbacks;
    struct row_table rows = view_exits(view, false, 0, &exits);
    exit_rows_free(&rows);
    rows = view_exits(view, true, 0, &fallbacks);
    exit_rows_free(&rows);
    const struct compilations *compilations = &view->report->compilations;
    const struct totals totals = {exits.count,
                                  exits.records,
                                  fallbacks.count,
                                  compilations->whole.count,
                                  compilations->iseqs.count,
                                  compilations->without_code,
                                  compilations->code_bytes,
                                  view->report->unended};
    rows = ROWS_OF(&totals, 1);
    view_table(&(struct table_def){
        .view = view, .id = "totals", .title = text_of("Totals"), .rows = &rows, COLUMNS_OF(columns), .data = true});
    if (exits.count > 0 || fallbacks.count > 0) return;
    struct fxt_string filters = view_chosen_by(view);
    document_line(view->document, "exits",
                  filters.len > 0 ? document_text(view->document, "none pass %s", filters.ptr) : text_of("none"));
}

void
view_add_exits(const struct view *view)
{
    for (unsigned i = report_timed(view->report) ? BY_PLACE : BY_PLACE + 1; i < SHARED_LINES; i++)
        add_grouping(view, &groupings[i]);
    if (!report_timed(view->report)) add_grouping(view, &groupings[SHARED_LINES]);
    view_add_throws(view);
    view_add_seen(view);
    add_outcomes(view);
}

void
view_add_fallbacks(const struct view *view)
{
    for (unsigned i = FIRST_OF_FALLBACKS; i < GROUPINGS; i++) add_grouping(view, &groupings[i]);
}


void
exits_tables(const struct view *view)
{
    view_add_totals(view);
    view_add_exits(view);
    view_add_loops(view);
    view_add_fallbacks(view);
}
