/* report_endpoints.c - the tables of a report about requests and jobs: how long they took, what they did meanwhile, and
 * the slowest one of each endpoint, with a command that shows it. */
#include <inttypes.h>
#include <string.h>

#include "render/report_tables.h"
#include "render/report_view.h"

/* Names are those of the first reading. */
static struct fxt_string
name_of(const struct view *view, uint32_t id)
{
    return id != STRING_NONE ? pool_string(view->report->endpoints->pool, id) : text_of("(unknown)");
}

static int
compare(const void *left, const void *right, void *context)
{
    const struct endpoint *a = left, *b = right;
    const struct pool *pool = context;
    if (a->durations.total_ns != b->durations.total_ns) return a->durations.total_ns > b->durations.total_ns ? -1 : 1;
    return fxt_string_compare(pool_string(pool, a->name), pool_string(pool, b->name));
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

enum { COUNT, FAILED, TOTAL, SHARE, MEDIAN, P95, P99, LONGEST, NAME, TIME_CELLS };

static void
add_times(const struct view *view)
{
    static const struct column columns[TIME_CELLS] = {
        [COUNT] = {"count", "count", COLUMN_COUNT},
        [FAILED] = {"failed", "failed", COLUMN_COUNT},
        [TOTAL] = {"total_ns", "total", COLUMN_DURATION},
        [SHARE] = {"share", "share", COLUMN_SHARE},
        [MEDIAN] = {"median_ns", "median", COLUMN_DURATION},
        [P95] = {"p95_ns", "95 %", COLUMN_DURATION},
        [P99] = {"p99_ns", "99 %", COLUMN_DURATION},
        [LONGEST] = {"longest_ns", "slowest", COLUMN_DURATION},
        [NAME] = {"endpoint", "endpoint", COLUMN_TEXT},
    };
    const struct row_table *rows = &view->report->endpoints->rows;
    uint64_t total_ns = 0, rest[TOTAL + 1] = {0};
    for (uint32_t i = 0; i < rows->count; i++)
        total_ns += ((const struct endpoint *)row_table_at(rows, i))->durations.total_ns;
    struct table *table = document_table(view->document, "endpoints", title_of(view, total_ns), COLUMNS(columns));
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct endpoint *endpoint = row_table_at(rows, i);
        const struct durations *durations = &endpoint->durations;
        if (i >= view->top) {
            rest[COUNT] += durations->count, rest[FAILED] += endpoint->failed, rest[TOTAL] += durations->total_ns;
            continue;
        }
        struct cell *cells = table_row(table);
        cells[COUNT] = cell_number(durations->count);
        if (endpoint->failed > 0) cells[FAILED] = cell_number(endpoint->failed);
        cells[TOTAL] = cell_number(durations->total_ns);
        cells[SHARE] = cell_share(durations->total_ns, total_ns);
        cells[MEDIAN] = cell_number(durations_quantile(durations, 0.5));
        cells[P95] = cell_number(durations_quantile(durations, 0.95));
        cells[P99] = cell_number(durations_quantile(durations, 0.99));
        cells[LONGEST] = cell_number(durations->longest_ns);
        cells[NAME] = cell_text(name_of(view, endpoint->name));
    }
    if (rows->count <= view->top) return;
    table->more_rows = rows->count - view->top;
    struct cell *cells = table_row(table);
    cells[COUNT] = cell_number(rest[COUNT]);
    if (rest[FAILED] > 0) cells[FAILED] = cell_number(rest[FAILED]);
    cells[TOTAL] = cell_number(rest[TOTAL]);
    cells[SHARE] = cell_share(rest[TOTAL], total_ns);
}

/* --- what happened in them ---------------------------------------------------------------------------- */

static const struct column cost_columns[ENDPOINT_COSTS] = {
    [ENDPOINT_RAN] = {"ran_ns", "ran", COLUMN_DURATION},
    [ENDPOINT_GC] = {"gc_ns", "in GC", COLUMN_DURATION},
    [ENDPOINT_WAITED] = {"waited_ns", "for GVL", COLUMN_DURATION},
    [ENDPOINT_BLOCKED] = {"blocked_ns", "blocked", COLUMN_DURATION},
    [ENDPOINT_EXITS] = {"exits", "exits", COLUMN_COUNT},
    [ENDPOINT_LOST] = {"lost_ns", "lost", COLUMN_DURATION},
    [ENDPOINT_ALLOCATED] = {"allocated_bytes", "bytes", COLUMN_COUNT},
    [ENDPOINT_SAMPLED] = {"sampled_ns", "sampled", COLUMN_DURATION},
};

/* Columns of costs from `first` on, without those that the trace does not record. */
static void
put_columns(const struct view *view, struct column *columns, unsigned first)
{
    memcpy(columns + first, cost_columns, sizeof cost_columns);
    for (unsigned i = 0; i < ENDPOINT_COSTS; i++) {
        if (!view->report->endpoints->recorded[i]) columns[first + i].title = NULL;
    }
}

static void
put_costs(const struct view *view, struct cell *cells, const uint64_t costs[ENDPOINT_COSTS])
{
    for (unsigned i = 0; i < ENDPOINT_COSTS; i++) {
        if (view->report->endpoints->recorded[i]) cells[i] = cell_number(costs[i]);
    }
}

static bool
any_recorded(const struct view *view)
{
    bool any = false;
    for (unsigned i = 0; i < ENDPOINT_COSTS; i++) any |= view->report->endpoints->recorded[i];
    return any;
}

static void
add_costs(const struct view *view)
{
    struct column columns[ENDPOINT_COSTS + 1];
    const struct row_table *rows = &view->report->endpoints->rows;
    uint64_t rest[ENDPOINT_COSTS] = {0};
    put_columns(view, columns, 0);
    columns[ENDPOINT_COSTS] = (struct column){"endpoint", "endpoint", COLUMN_TEXT};
    const char *title = view->report->endpoints->of_fibers > 0
                            ? "What they did in that time, on their threads (of fibers: ran, in GC, for GVL and blocked are "
                              "their thread's, whichever fiber it ran)"
                            : "What they did in that time, on their threads";
    struct table *table = document_table(view->document, "endpoint_costs", text_of(title), COLUMNS(columns));
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct endpoint *endpoint = row_table_at(rows, i);
        if (i >= view->top) {
            for (unsigned j = 0; j < ENDPOINT_COSTS; j++) rest[j] += endpoint->costs[j];
            continue;
        }
        struct cell *cells = table_row(table);
        put_costs(view, cells, endpoint->costs);
        cells[ENDPOINT_COSTS] = cell_text(name_of(view, endpoint->name));
    }
    table->data = !any_recorded(view);
    if (rows->count <= view->top) return;
    table->more_rows = rows->count - view->top;
    put_costs(view, table_row(table), rest);
}

/* --- whose code it was --------------------------------------------------------------------------------- */

/* Costs of gems, in the order of their columns, and of importance. */
static const enum endpoint_cost gem_costs[] = {ENDPOINT_SAMPLED, ENDPOINT_LOST, ENDPOINT_EXITS, ENDPOINT_ALLOCATED};
enum { GEM_COSTS = sizeof gem_costs / sizeof gem_costs[0] };

static int
compare_gems(const void *left, const void *right, void *context)
{
    const struct endpoint_gem *a = left, *b = right;
    (void)context;
    for (unsigned i = 0; i < GEM_COSTS; i++) {
        uint64_t a_cost = a->costs[gem_costs[i]], b_cost = b->costs[gem_costs[i]];
        if (a_cost != b_cost) return a_cost > b_cost ? -1 : 1;
    }
    if (a->endpoint != b->endpoint) return a->endpoint < b->endpoint ? -1 : 1;
    return (a->owner > b->owner) - (a->owner < b->owner);
}

/* Before the endpoints are sorted: rows of gems have their numbers. */
static void
add_gems(const struct view *view)
{
    struct column columns[GEM_COSTS + 2];
    struct endpoints *endpoints = view->report->endpoints;
    uint64_t rest[ENDPOINT_COSTS] = {0};
    for (unsigned i = 0; i < GEM_COSTS; i++) {
        columns[i] = cost_columns[gem_costs[i]];
        if (!endpoints->recorded[gem_costs[i]]) columns[i].title = NULL;
    }
    columns[GEM_COSTS] = (struct column){"gem", "gem", COLUMN_TEXT};
    columns[GEM_COSTS + 1] = (struct column){"endpoint", "endpoint", COLUMN_TEXT};
    struct table *table = document_table(view->document, "endpoint_gems",
                                         text_of("Whose code that was, by gem of the innermost frame"), columns, GEM_COSTS + 2);
    row_table_sort(&endpoints->gems, compare_gems, NULL);
    for (uint32_t i = 0; i < endpoints->gems.count; i++) {
        const struct endpoint_gem *gem = row_table_at(&endpoints->gems, i);
        if (i >= view->top) {
            for (unsigned j = 0; j < ENDPOINT_COSTS; j++) rest[j] += gem->costs[j];
            continue;
        }
        struct cell *cells = table_row(table);
        for (unsigned j = 0; j < GEM_COSTS; j++) cells[j] = cell_number(gem->costs[gem_costs[j]]);
        const struct endpoint *endpoint = row_table_at(&endpoints->rows, gem->endpoint);
        cells[GEM_COSTS] = cell_text(view_name(view, gem->owner));
        cells[GEM_COSTS + 1] = cell_text(name_of(view, endpoint->name));
    }
    table->data = endpoints->gems.count == 0;
    if (endpoints->gems.count <= view->top) return;
    table->more_rows = endpoints->gems.count - view->top;
    struct cell *cells = table_row(table);
    for (unsigned j = 0; j < GEM_COSTS; j++) cells[j] = cell_number(rest[gem_costs[j]]);
}

/* --- the slowest ones ------------------------------------------------------------------------------------ */

enum { TOOK, COST, AT = COST + ENDPOINT_COSTS, ID, THREAD, ENDPOINT, SEEN_BY, SLOWEST_CELLS };

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

static void
add_slowest(const struct view *view)
{
    static const struct column others[SLOWEST_CELLS] = {
        [TOOK] = {"took_ns", "took", COLUMN_DURATION}, [AT] = {"at_ns", "at", COLUMN_TIME},
        [ID] = {"id", "id", COLUMN_TEXT},              [THREAD] = {"thread", "thread", COLUMN_TEXT},
        [ENDPOINT] = {"endpoint", "endpoint", COLUMN_TEXT}, [SEEN_BY] = {"command", NULL, COLUMN_TEXT},
    };
    struct column columns[SLOWEST_CELLS];
    const struct report *report = view->report;
    const struct endpoints *endpoints = report->endpoints;
    memcpy(columns, others, sizeof columns);
    put_columns(view, columns, COST);
    struct table *table = document_table(view->document, "endpoint_slowest", text_of("The slowest one of each"),
                                         COLUMNS(columns));
    for (uint32_t i = 0; i < endpoints->rows.count; i++) {
        const struct endpoint *endpoint = row_table_at(&endpoints->rows, i);
        if (i >= view->top) break;
        const struct endpoint_span *span = endpoint_slowest(endpoints, endpoint);
        const struct endpoint_thread *thread = row_table_at(&endpoints->threads, endpoint->slowest.thread);
        struct fxt_string command = command_for(view, span);
        struct cell *cells = table_row(table);
        cells[TOOK] = cell_number(endpoint_span_ns(span));
        put_costs(view, cells + COST, endpoint->slowest.costs);
        cells[AT] = cell_time((int64_t)((uint64_t)span->time.from_ns - (uint64_t)report->start_ns));
        if (span->id != STRING_NONE) cells[ID] = cell_text(name_of(view, span->id));
        cells[THREAD] = cell_text(name_of(view, thread->name));
        cells[ENDPOINT] = cell_text(name_of(view, endpoint->name));
        cells[SEEN_BY] = cell_text(command);
        if (i == 0) document_line(view->document, "slowest", command);
    }
}

void
report_endpoint_tables(struct report *report, struct document *document, uint64_t top)
{
    const struct view view = {report, document, top};
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
        add_gems(&view);
        gems = document->tables[--document->table_count];
    }
    row_table_sort(&report->endpoints->rows, compare, (void *)report->endpoints->pool);
    add_times(&view);
    add_costs(&view);
    if (gems != NULL) document_insert(document, gems);
    add_slowest(&view);
}
