/* endpoint_tables.c - the tables of a report about requests and jobs: how long they took, what they did meanwhile, and
 * the slowest one of each endpoint, with a command that shows it. */
#include <inttypes.h>

#include "topics/report_view.h"

/* Names are those of the first reading. */
static struct fxt_string
name_of(const struct view *view, uint32_t id)
{
    return id != STRING_NONE ? pool_string(view->report->endpoints->pool, id) : text_of("(unknown)");
}

/* "Requests and jobs by endpoint: 1,885, which took 12.3 s; 2 had not ended" */
static struct fxt_string
title_of(const struct view *view, uint64_t total_ns)
{
    const struct endpoints *endpoints = view->report->endpoints;
    char spans[NUMBER_TEXT], time[NUMBER_TEXT], unended[NUMBER_TEXT];
    struct fxt_string title = document_text(
        view->document, "Requests and jobs by endpoint: %s, which took %s%s%s%s", with_commas(spans, endpoints->spans),
        duration_text(time, total_ns), endpoints->unended > 0 ? "; " : "",
        endpoints->unended > 0 ? with_commas(unended, endpoints->unended) : "",
        endpoints->unended > 0 ? " had not ended" : "");
    return view_title(view, title, endpoints->uncounted, "of them");
}

/* Sorts the endpoints for all tables. */
static void
add_times(const struct view *view)
{
    static const struct table_column columns[] = {
        {"count", "count", COLUMN_COUNT, SUMMED(endpoint, durations.count)},
        {"failed", "failed", COLUMN_COUNT, SUMMED(endpoint, failed), .blank_zero = true, .blank_rest = true},
        {"total_ns", "total", COLUMN_DURATION, SUMMED(endpoint, durations.total_ns)},
        {"share", "share", COLUMN_SHARE, SHARE_OF("total_ns")},
        {"median_ns", "median", COLUMN_DURATION, QUANTILE(50, endpoint, durations)},
        {"p95_ns", "95 %", COLUMN_DURATION, QUANTILE(95, endpoint, durations)},
        {"p99_ns", "99 %", COLUMN_DURATION, QUANTILE(99, endpoint, durations)},
        {"longest_ns", "slowest", COLUMN_DURATION, MEMBER(endpoint, durations.longest_ns)},
        {"endpoint", "endpoint", COLUMN_TEXT, NAMED(endpoint, name)},
    };
    struct endpoints *endpoints = view->report->endpoints;
    struct table_def def = {.view = view, .id = "endpoints", .rows = &endpoints->rows, COLUMNS_OF(columns),
                            .pool = endpoints->pool, .sort = {"total_ns", "endpoint"}, .shown_empty = true};
    def.title = title_of(view, view_table_sum(&def, "total_ns"));
    view_table(&def);
}

/* --- what happened in them ---------------------------------------------------------------------------- */

#define COST(id, title, kind) {id, title, kind, .source = SOURCE_U64, .summed = true}
static const struct table_column cost_columns[ENDPOINT_COSTS] = {
    [ENDPOINT_RAN] = COST("ran_ns", "ran", COLUMN_DURATION),
    [ENDPOINT_GC] = COST("gc_ns", "in GC", COLUMN_DURATION),
    [ENDPOINT_WAITED] = COST("waited_ns", "for GVL", COLUMN_DURATION),
    [ENDPOINT_BLOCKED] = COST("blocked_ns", "blocked", COLUMN_DURATION),
    [ENDPOINT_EXITS] = COST("exits", "exits", COLUMN_COUNT),
    [ENDPOINT_LOST] = COST("lost_ns", "lost", COLUMN_DURATION),
    [ENDPOINT_ALLOCATED] = COST("allocated_bytes", "bytes", COLUMN_COUNT),
    [ENDPOINT_SAMPLED] = COST("sampled_ns", "sampled", COLUMN_DURATION),
};

/* The column of a cost, for people if the trace records it; `costs` is the offset of all in a row. */
static struct table_column
cost_column(enum endpoint_cost cost, size_t costs)
{
    struct table_column column = cost_columns[cost];
    column.offset = (uint16_t)(costs + cost * sizeof(uint64_t));
    column.people_if = 1U << cost;
    return column;
}

/* A bit for each cost that the trace records. */
static unsigned
recorded(const struct view *view)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < ENDPOINT_COSTS; i++) bits |= (unsigned)view->report->endpoints->recorded[i] << i;
    return bits;
}

/* The columns of all costs. Those that are not recorded have no cells. */
static void
put_costs(struct table_column *columns, size_t costs)
{
    for (unsigned i = 0; i < ENDPOINT_COSTS; i++) {
        columns[i] = cost_column(i, costs);
        columns[i].value_if = columns[i].people_if;
    }
}

static void
add_costs(const struct view *view)
{
    struct table_column columns[ENDPOINT_COSTS + 1] = {
        [ENDPOINT_COSTS] = {"endpoint", "endpoint", COLUMN_TEXT, NAMED(endpoint, name)}};
    struct endpoints *endpoints = view->report->endpoints;
    put_costs(columns, offsetof(struct endpoint, costs));
    const char *title = endpoints->of_fibers > 0
                            ? "What they did in that time, on their threads (of fibers: ran, in GC, for GVL and blocked are "
                              "their thread's, whichever fiber it ran)"
                            : "What they did in that time, on their threads";
    view_table(&(struct table_def){.view = view, .id = "endpoint_costs", .title = text_of(title),
                                   .rows = &endpoints->rows, COLUMNS_OF(columns), .pool = endpoints->pool,
                                   .given = recorded(view), .shown_empty = true, .data = recorded(view) == 0});
}

/* --- whose code it was --------------------------------------------------------------------------------- */

/* Costs of gems, in the order of their columns, and of importance. */
static const enum endpoint_cost gem_costs[] = {ENDPOINT_SAMPLED, ENDPOINT_LOST, ENDPOINT_EXITS, ENDPOINT_ALLOCATED};
enum { GEM_COSTS = sizeof gem_costs / sizeof gem_costs[0] };

static struct cell
endpoint_name(const struct table_def *def, unsigned own, const void *row)
{
    const struct endpoint_gem *gem = row;
    const struct endpoint *endpoint = row_table_at(&def->view->report->endpoints->rows, gem->endpoint);
    return cell_text(name_of(def->view, endpoint->name));
}

/* Before the endpoints are sorted: rows of gems have their numbers. */
static void
add_gems(const struct view *view)
{
    struct table_column columns[GEM_COSTS + 4] = {
        [GEM_COSTS] = {"gem", "gem", COLUMN_TEXT, NAMED(endpoint_gem, owner)},
        {"endpoint", "endpoint", COLUMN_TEXT, OWN_CELL(0)},
        {"row", NULL, COLUMN_NUMBER, MEMBER(endpoint_gem, endpoint), .helper = true},
        {"owner", NULL, COLUMN_NUMBER, MEMBER(endpoint_gem, owner), .helper = true},
    };
    for (unsigned i = 0; i < GEM_COSTS; i++)
        columns[i] = cost_column(gem_costs[i], offsetof(struct endpoint_gem, costs));
    view_table(&(struct table_def){.view = view, .id = "endpoint_gems",
                                   .title = text_of("Whose code that was, by gem of the innermost frame"),
                                   .rows = &view->report->endpoints->gems, COLUMNS_OF(columns),
                                   .sort = {"sampled_ns", "lost_ns", "exits", "allocated_bytes", "row", "owner"},
                                   .cell = endpoint_name, .given = recorded(view)});
}

/* --- the slowest ones ------------------------------------------------------------------------------------ */

/* Shows the time of the span, in its file, in microseconds: all of it. */
static struct fxt_string
command_for(const struct view *view, const struct endpoint_span *span)
{
    const struct report_file *file = &view->report->files[span->file];
    uint64_t since_us = ((uint64_t)span->time.from_ns - (uint64_t)file->first_ns) / 1000;
    uint64_t until_us = since_us + endpoint_span_ns(span) / 1000 + 2;
    return document_text(view->document, "vm-trace html -o slowest.html --since=%" PRIu64 "us --until=%" PRIu64 "us '%s'",
                         since_us, until_us, file->name);
}

enum { TOOK, AT_TIME, ID, THREAD, SHOWN_BY };

static struct cell
slowest_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct report *report = def->view->report;
    const struct endpoint *endpoint = row;
    const struct endpoint_span *span = endpoint_slowest(report->endpoints, endpoint);
    const struct endpoint_thread *thread = row_table_at(&report->endpoints->threads, endpoint->slowest.thread);
    switch (own) {
      case TOOK: return cell_number(endpoint_span_ns(span));
      case AT_TIME: return cell_time((int64_t)((uint64_t)span->time.from_ns - (uint64_t)report->start_ns));
      case ID: return span->id != STRING_NONE ? cell_text(name_of(def->view, span->id)) : (struct cell){0};
      case THREAD: return cell_text(name_of(def->view, thread->name));
      default: return cell_text(command_for(def->view, span));
    }
}

static void
add_slowest(const struct view *view)
{
    enum { FIRST = ENDPOINT_COSTS + 1 };
    struct table_column columns[] = {
        {"took_ns", "took", COLUMN_DURATION, OWN_CELL(TOOK)},
        [FIRST] = {"at_ns", "at", COLUMN_TIME, OWN_CELL(AT_TIME)},
        {"id", "id", COLUMN_TEXT, OWN_CELL(ID)},
        {"thread", "thread", COLUMN_TEXT, OWN_CELL(THREAD)},
        {"endpoint", "endpoint", COLUMN_TEXT, NAMED(endpoint, name)},
        {"command", NULL, COLUMN_TEXT, OWN_CELL(SHOWN_BY)},
    };
    struct endpoints *endpoints = view->report->endpoints;
    put_costs(columns + 1, offsetof(struct endpoint, slowest.costs));
    view_table(&(struct table_def){.view = view, .id = "endpoint_slowest", .title = text_of("The slowest one of each"),
                                   .rows = &endpoints->rows, COLUMNS_OF(columns), .cell = slowest_cell,
                                   .pool = endpoints->pool, .given = recorded(view), .no_rest = true,
                                   .shown_empty = true});
    if (endpoints->rows.count > 0)
        document_line(view->document, "slowest",
                      command_for(view, endpoint_slowest(endpoints, row_table_at(&endpoints->rows, 0))));
}

void
endpoints_tables(const struct view *view)
{
    struct report *report = view->report;
    struct document *document = view->document;
    if (report->endpoints->rows.count == 0)
        document_line(document, "endpoints", text_of("none: there are no spans of markers here (doc/guide/rails.md)"));
    char number[NUMBER_TEXT];
    if (report->endpoints->threadless > 0)
        document_line(document, "unknown",
                      document_text(document, "the states of the threads of %s spans in fibers: their processes have no "
                                    "thread, or several, of the fibers' name (or too many threads)",
                                    with_commas(number, report->endpoints->threadless)));
    struct table *gems = NULL;
    if (report->by_gem) {
        add_gems(view);
        gems = document->tables[--document->table_count];
    }
    add_times(view);
    add_costs(view);
    if (gems != NULL) document_insert(document, gems);
    add_slowest(view);
}
