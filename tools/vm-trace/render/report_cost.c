/* report_cost.c - the first lines of a report: what exits cost, as far as the trace knows. */
#include "render/cost_text.h"
#include "render/report_tables.h"
#include "render/report_view.h"

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

/* The numbers in the sentences. */
static void
add_data(const struct view *view, const struct cost *cost)
{
    static const struct column columns[] = {
        {"running_ns", NULL, COLUMN_DURATION}, {"life_ns", NULL, COLUMN_DURATION}, {"lost_ns", NULL, COLUMN_DURATION},
        {"share", NULL, COLUMN_SHARE}, {"exits", NULL, COLUMN_COUNT}, {"exits_per_second", NULL, COLUMN_AMOUNT},
        {"ns_per_exit", NULL, COLUMN_DURATION}, {"places", NULL, COLUMN_COUNT},
        {"places_with_most", NULL, COLUMN_COUNT}, {"estimated", NULL, COLUMN_NUMBER}, {"verdict", NULL, COLUMN_TEXT},
        {"largest_other", NULL, COLUMN_TEXT},
    };
    struct table *table = document_table(view->document, "cost", text_of("What exits cost"), COLUMNS(columns));
    struct cell *cells = table_row(table);
    uint64_t running_ns = execution_running_ns(cost->ns);
    table->data = true;
    if (cost->summed) {
        cells[0] = cell_number(running_ns);
        cells[1] = cell_number(execution_life_ns(cost->ns));
        cells[3] = cell_share(cost->lost_ns, running_ns);
        cells[11] =
            cell_text(pool_string(view->report->pool, execution_state_names[cost_largest_other(cost)].argument));
    }
    cells[2] = cell_number(cost->lost_ns);
    cells[4] = cell_number(cost->exits);
    if (cost->span_ns > 0) cells[5] = cell_amount((double)cost->exits * 1e9 / (double)cost->span_ns);
    if (cost->exits > 0) cells[6] = cell_number(cost->lost_ns / cost->exits);
    cells[7] = cell_number(cost->places);
    cells[8] = cell_number(cost->most_places);
    cells[9] = cell_number(cost->estimated);
    cells[10] = cell_text(text_of(cost_verdict_names[cost_verdict(cost)]));
}

void
report_cost(struct report *report, struct document *document)
{
    const struct view view = {report, document, 0};
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
