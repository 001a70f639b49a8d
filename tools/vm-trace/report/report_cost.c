/* report_cost.c - the first lines of a report: what exits cost, as far as the trace knows. */
#include "topics/states/cost_text.h"
#include "report/report_tables.h"
#include "topics/report_view.h"

static bool
any_estimated(const struct report *report)
{
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        if (process->timed && process->sampled && !process->exact) return true;
    }
    return false;
}

/* The places at which exits lost time, and how many of them lost most of it. */
static void
count_places(const struct view *view, struct cost *cost)
{
    struct exit_row sum;
    struct row_table rows = view_exits(view, false, BY_CATEGORY | BY_REASON | BY_LOCATION | BY_INSN, &sum);
    double rest_ns = (double)sum.lost_ns * COST_MOST_PERCENT / 100;
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct exit_row *exit_row = row_table_at(&rows, i);
        if (exit_row->lost_ns == 0) break; /* largest first */
        cost->places++;
        cost->most_places += rest_ns > 0;
        rest_ns -= (double)exit_row->lost_ns;
    }
    cost->exits = sum.count;
    cost->lost_ns = sum.lost_ns;
    exit_rows_free(&rows);
}

static struct cost
cost_of(const struct view *view)
{
    const struct report *report = view->report;
    struct cost cost = {.selected = report->exits_only};
    execution_sum(&report->execution, cost.ns);
    count_places(view, &cost);
    cost.summed = report->execution.threads.count > 0;
    cost.estimated = any_estimated(report);
    if (cost.summed && !cost.selected) {
        cost.lost_ns = cost.ns[EXECUTION_EXITED]; /* exact, also for a single thread */
        cost.estimated = false;
    }
    cost.span_ns = report->first_ns < report->last_ns ? (uint64_t)(report->last_ns - report->first_ns) : 0;
    return cost;
}

enum { RUNNING, LIFE, SHARE, PER_SECOND, PER_EXIT, VERDICT, LARGEST_OTHER };

static struct cell
cost_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct cost *cost = row;
    const uint64_t running_ns = execution_running_ns(cost->ns);
    switch (own) {
      case RUNNING: return cell_number(running_ns);
      case LIFE: return cell_number(execution_life_ns(cost->ns));
      case SHARE: return cell_share(cost->lost_ns, running_ns);
      case PER_SECOND:
        return cost->span_ns > 0 ? cell_amount((double)cost->exits * 1e9 / (double)cost->span_ns) : (struct cell){0};
      case PER_EXIT: return cost->exits > 0 ? cell_number(cost->lost_ns / cost->exits) : (struct cell){0};
      case VERDICT: return cell_text(text_of(cost_verdict_names[cost_verdict(cost)]));
      default:
        return cell_text(view_name(def->view, execution_state_names[cost_largest_other(cost)].argument));
    }
}

/* The numbers in the sentences. */
static void
add_data(const struct view *view, const struct cost *cost)
{
    enum { HAS_STATES = 1 };
    static const struct table_column columns[] = {
        {"running_ns", NULL, COLUMN_DURATION, OWN_CELL(RUNNING), .value_if = HAS_STATES},
        {"life_ns", NULL, COLUMN_DURATION, OWN_CELL(LIFE), .value_if = HAS_STATES},
        {"lost_ns", NULL, COLUMN_DURATION, MEMBER(cost, lost_ns)},
        {"share", NULL, COLUMN_SHARE, OWN_CELL(SHARE), .value_if = HAS_STATES},
        {"exits", NULL, COLUMN_COUNT, MEMBER(cost, exits)},
        {"exits_per_second", NULL, COLUMN_AMOUNT, OWN_CELL(PER_SECOND)},
        {"ns_per_exit", NULL, COLUMN_DURATION, OWN_CELL(PER_EXIT)},
        {"places", NULL, COLUMN_COUNT, MEMBER(cost, places)},
        {"places_with_most", NULL, COLUMN_COUNT, MEMBER(cost, most_places)},
        {"estimated", NULL, COLUMN_NUMBER, MEMBER(cost, estimated)},
        {"verdict", NULL, COLUMN_TEXT, OWN_CELL(VERDICT)},
        {"largest_other", NULL, COLUMN_TEXT, OWN_CELL(LARGEST_OTHER), .value_if = HAS_STATES},
    };
    struct row_table rows = ROWS_OF(cost, 1);
    view_table(&(struct table_def){.view = view, .id = "cost", .title = text_of("What exits cost"), .rows = &rows,
                                   COLUMNS_OF(columns), .cell = cost_cell, .data = true,
                                   .given = cost->summed ? HAS_STATES : 0});
}

void
report_cost(struct report *report, struct document *document)
{
    const struct view view = {report, document, 1};
    if (!report_timed(report)) return;
    struct cost cost = cost_of(&view);
    char text[COST_TEXT];
    document_line(document, "time", document_text(document, "%s", cost_sentence(text, &cost)));
    if (cost.estimated && cost.exits > 0)
        document_line(document, "", text_of("estimated from the recorded exits: long ones that were not are missing"));
    if (cost_advice(text, &cost)[0] != '\0') document_line(document, "verdict", document_text(document, "%s", text));
    if (cost_others(text, &cost)[0] != '\0') document_line(document, "", document_text(document, "%s", text));
    add_data(&view, &cost);
}

void
report_cost_missing(struct report *report, struct document *document)
{
    uint64_t exits = 0;
    for (uint32_t i = 0; i < report->processes.count; i++) exits += report_process(report, i)->exits;
    if (exits == 0 || report_timed(report)) return;
    document_line(document, "cost",
                  text_of("counts are not cost; --vm-trace=states records lost time"));
}
