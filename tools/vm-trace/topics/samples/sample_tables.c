/* sample_tables.c - the tables of a report about samples of time: what threads did, and where they ran or waited. */
#include "topics/report_view.h"

/* --- threads ---------------------------------------------------------------------------------------- */

static uint64_t
all_ns(const struct sample_times *times)
{
    return sample_times_ns(times, false) + sample_times_ns(times, true);
}

/* The time of a thread: that of its samples, and what has none. Samples of CPU time are of another clock. */
static uint64_t
thread_ns(const struct report *report, const struct sample_thread *thread)
{
    uint64_t ns = all_ns(&thread->times);
    return report->samples.all.cpu ? ns : report_thread_ns(report, thread->thread, ns);
}

static int
by_time(const void *left, const void *right, void *context)
{
    const struct sample_thread *a = left, *b = right;
    (void)context;
    uint64_t a_ns = sample_times_ns(&a->times, false), b_ns = sample_times_ns(&b->times, false);
    if (a_ns != b_ns) return a_ns > b_ns ? -1 : 1;
    a_ns = all_ns(&a->times), b_ns = all_ns(&b->times);
    if (a_ns != b_ns) return a_ns > b_ns ? -1 : 1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

/* Of a state its time, which is not shown, and its share; states that no row has are not for people. */
#define THREAD_STATE(state, text, title)                                                                               \
    {"ns of " text, NULL, COLUMN_DURATION, SUMMED(sample_thread, times.ns[TIME_SAMPLE_##state]), .helper = true},      \
    {text, title, COLUMN_SHARE, SHARE_IN_ROW("ns of " text, "time_ns"), .unless_empty = true},

enum { TIME, NOT_SAMPLED };

static struct cell
thread_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct sample_thread *thread = row;
    uint64_t ns = all_ns(&thread->times);
    return cell_number(own == TIME ? ns : thread_ns(def->view->report, thread) - ns);
}

static void
add_threads(const struct view *view)
{
    enum { UNSEEN = 1 };
    static const struct table_column columns[] = {
        {"time_ns", "time", COLUMN_DURATION, OWN_SUM(TIME)},
        {"not_sampled_ns", "not sampled", COLUMN_DURATION, OWN_SUM(NOT_SAMPLED), .people_if = UNSEEN},
        TIME_SAMPLE_STATES_OF(THREAD_STATE)
        THREAD_COLUMNS(sample_thread, thread),
    };
    const struct time_samples *samples = &view->report->samples.all;
    struct table_def def = {.view = view, .id = "samples_by_thread", .rows = &view->report->samples.threads,
                            COLUMNS_OF(columns), .compare = by_time, .cell = thread_cell, .shown_empty = true};
    uint64_t sampled_ns = view_table_sum(&def, "time_ns"), unseen_ns = view_table_sum(&def, "not_sampled_ns");
    uint64_t records = 0;
    for (uint32_t i = 0; i < def.rows->count; i++)
        records += ((const struct sample_thread *)row_table_at(def.rows, i))->times.records;
    if (view_unseen_shown(unseen_ns, sampled_ns + unseen_ns)) def.given = UNSEEN;
    char number[NUMBER_TEXT], time[NUMBER_TEXT], all[NUMBER_TEXT], of_all[NUMBER_TEXT + 24];
    snprintf(of_all, sizeof of_all, "the %s of these threads", duration_text(all, sampled_ns + unseen_ns));
    bool periodic = samples->period_ns > 0;
    def.title = document_text(view->document, "Samples by thread and state (%%: of the sampled time): %s of %s, %s%s%s",
                              duration_text(time, sampled_ns), samples->cpu ? "CPU time" : of_all,
                              periodic ? "one each " : "",
                              periodic ? duration_text(number, samples->period_ns) : with_commas(number, records),
                              periodic ? "" : " records");
    def.title = view_title(view, def.title, samples->unknown, "definitions, which the trace lacks");
    view_table(&def);
}

/* --- methods and lines -------------------------------------------------------------------------------- */

struct place_table {
    const char *id;
    const char *title; /* followed by the whole time */
    bool waits;
    bool total; /* by total time; else by own time, and only with own time */
    uint64_t sampled_ns; /* of the report: of threads that ran, and of those that waited */
};

enum { OWN, ERROR, TOTAL };
enum { RUNS = 1, WAITS = 2, HAS_ERROR = 4 };

#define WAITS_OR_RUNS(state) (time_sample_waits(TIME_SAMPLE_##state) ? WAITS : RUNS)
#define PLACE_STATE(state, text, title)                                                                                \
    {"ns of " text, NULL, COLUMN_DURATION, SUMMED(sample_row, own.ns[TIME_SAMPLE_##state]), .helper = true},           \
    {text, title, COLUMN_SHARE, SHARE_IN_ROW("ns of " text, "own_ns"), .unless_empty = true,                           \
     .people_if = WAITS_OR_RUNS(state), .value_if = WAITS_OR_RUNS(state)},

static struct cell
place_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct place_table *places = def->context;
    const struct sample_row *place = row;
    uint64_t own_ns = sample_times_ns(&place->own, places->waits);
    if (own == OWN) return cell_number(own_ns);
    if (own == TOTAL) return cell_number(place->total_ns[places->waits]);
    return cell_number((uint64_t)sample_error_ns(own_ns, places->sampled_ns, def->view->report->samples.all.period_ns));
}

static bool
place_counts(const struct table_def *def, const void *row)
{
    return place_cell(def, ((const struct place_table *)def->context)->total ? TOTAL : OWN, row).number > 0;
}

static void
add_places(const struct view *view, struct row_table *rows, const struct place_table *places)
{
    struct report *report = view->report;
    const uint64_t whole = sample_threads_ns(&report->samples.threads, places->waits);
    struct place_table of_report = *places;
    of_report.sampled_ns = whole + sample_threads_ns(&report->samples.threads, !places->waits);
    if (whole == 0) return;
    const struct table_column columns[] = {
        {"own_ns", "own", COLUMN_DURATION, OWN_SUM(OWN)},
        {"own_share", "share", COLUMN_SHARE, SHARE_OF_WHOLE("own_ns")},
        {"own_error_ns", "\302\261", COLUMN_DURATION, OWN_CELL(ERROR), .people_if = HAS_ERROR, .value_if = HAS_ERROR},
        TIME_SAMPLE_STATES_OF(PLACE_STATE)
        /* not summed: total times of several methods have parts in common */
        {"total_ns", "total", COLUMN_DURATION, OWN_CELL(TOTAL)},
        {"method", "method", COLUMN_TEXT, NAMED(sample_row, text)},
    };
    /* A wait has one sample for many periods, which says how long it was. */
    bool error = report->samples.all.period_ns > 0 && !places->waits;
    char time[NUMBER_TEXT];
    sample_sums_sort(rows, report->pool, places->waits, places->total);
    view_table(&(struct table_def){
        .view = view, .id = places->id, .rows = rows, COLUMNS_OF(columns), .counts = place_counts, .cell = place_cell,
        .context = &of_report, .whole = whole, .shown_empty = true,
        .given = (places->waits ? WAITS : RUNS) | (error ? HAS_ERROR : 0),
        .title = document_text(view->document, "%s, %s in all (share: of these; %% of states: of own)", places->title,
                               duration_text(time, whole))});
}

static const struct place_table
    ran_by_method = {.id = "samples_by_method", .title = "Samples by method: where threads ran"},
    ran_by_line = {.id = "samples_by_line", .title = "Samples by line: where threads ran"},
    ran_in_all = {.id = "samples_by_total", .title = "Samples by total time of methods: where threads ran", .total = true},
    waited_by_method = {.id = "sampled_waits_by_method", .title = "Samples by method: where threads waited", .waits = true},
    waited_by_line = {.id = "sampled_waits_by_line", .title = "Samples by line: where threads waited", .waits = true};

void
view_add_samples(const struct view *view)
{
    struct report_samples *samples = &view->report->samples;
    if (samples->threads.count == 0) return;
    view_thread_pools(view, add_threads, "time_ns", "time_ns");
    struct row_table methods = sample_sums(&samples->all, false);
    add_places(view, &methods, &ran_by_method);
    add_places(view, &methods, &waited_by_method);
    row_table_free(&methods);
}

void
samples_tables(const struct view *view)
{
    struct report *report = view->report;
    struct document *document = view->document;
    if (report->samples.threads.count == 0) {
        document_line(document, "samples", view_nothing(view, TOPIC_samples));
        return;
    }
    view_thread_pools(view, add_threads, "time_ns", "time_ns");
    struct row_table methods = sample_sums(&report->samples.all, false);
    struct row_table lines = sample_sums(&report->samples.all, true);
    add_places(view, &methods, &ran_by_method);
    add_places(view, &lines, &ran_by_line);
    add_places(view, &methods, &ran_in_all);
    add_places(view, &methods, &waited_by_method);
    add_places(view, &lines, &waited_by_line);
    row_table_free(&methods);
    row_table_free(&lines);
}
