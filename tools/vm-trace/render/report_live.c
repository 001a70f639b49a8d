/* report_live.c - see report_live.h */
#define _GNU_SOURCE /* strcasestr */
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "render/display.h"
#include "render/findings.h"
#include "render/report_live.h"
#include "render/report_view.h"

static bool
found(const struct report_live *live, const struct view *view, uint32_t name)
{
    return live->search[0] == '\0' || strcasestr(view_name(view, name).ptr, live->search) != NULL;
}

static double
per_second(const struct report_live *live, double amount)
{
    return live->seconds > 0 ? amount / live->seconds : 0;
}

/* --- sums ------------------------------------------------------------------------------------------------ */

enum { PARTS = 4, PART_BYTES = 64, HEAD_BYTES = 17 }; /* before the text of a line */

/* A line of parts. The screen cuts lines, so parts that do not fit continue below. */
static void
add_parts(const struct view *view, const char *title, unsigned count, const char parts[PARTS][PART_BYTES])
{
    char line[PARTS * PART_BYTES] = "";
    size_t room = display_columns(stdout) - HEAD_BYTES, bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        size_t comma = i + 1 < count;
        if (bytes > 0 && bytes + 2 + strlen(parts[i]) + comma > room) {
            document_line(view->document, title, document_text(view->document, "%s,", line));
            title = "";
            bytes = 0;
        }
        bytes += (size_t)snprintf(line + bytes, sizeof line - bytes, "%s%s", bytes > 0 ? ", " : "", parts[i]);
    }
    document_line(view->document, title, document_text(view->document, "%s", line));
}

static void
add_thread_line(const struct view *view)
{
    uint64_t ns[THREAD_STATE_COUNT], life_ns = thread_states_sum(&view->report->states, ns);
    if (life_ns == 0) return;
    static const struct {
        enum thread_state state;
        const char *name;
    } states[] = {{THREAD_RUNNING, "running"}, {THREAD_WAITING, "waiting for GVL"}, {THREAD_BLOCKED, "blocked"},
                  {THREAD_IN_GC, "in GC"}};
    char parts[PARTS][PART_BYTES];
    for (unsigned i = 0; i < PARTS; i++) {
        double share = 100.0 / (double)life_ns * (double)ns[states[i].state];
        snprintf(parts[i], PART_BYTES, "%.0f%% %s", share, states[i].name);
    }
    add_parts(view, "threads", PARTS, parts);
}

static void
add_gc_line(const struct view *view, const struct report_live *live)
{
    const struct row_table *reasons = &view->report->gc.reasons;
    uint64_t pauses = 0, ns = 0, longest_ns = 0;
    for (uint32_t i = 0; i < reasons->count; i++) {
        const struct gc_reason *reason = row_table_at(reasons, i);
        pauses += reason->pauses.count;
        ns += reason->pauses.total_ns;
        if (reason->pauses.longest_ns > longest_ns) longest_ns = reason->pauses.longest_ns;
    }
    if (pauses == 0) return;
    char parts[PARTS][PART_BYTES], text[NUMBER_TEXT];
    snprintf(parts[0], PART_BYTES, "%s pauses/s", amount_text(text, per_second(live, (double)pauses)));
    snprintf(parts[1], PART_BYTES, "%s per second", duration_text(text, (uint64_t)per_second(live, (double)ns)));
    snprintf(parts[2], PART_BYTES, "the longest %s", duration_text(text, longest_ns));
    add_parts(view, "GC", 3, parts);
}

static void
add_lines(const struct view *view, const struct report_live *live)
{
    struct exit_row sum;
    struct row_table rows = view_exits(view, false, 0, &sum);
    exit_rows_free(&rows);
    char parts[PARTS][PART_BYTES], text[NUMBER_TEXT];
    snprintf(parts[0], PART_BYTES, "%s/s", amount_text(text, per_second(live, (double)sum.count)));
    snprintf(parts[1], PART_BYTES, "%s lost/s",
             duration_text(text, (uint64_t)per_second(live, (double)sum.lost_ns)));
    add_parts(view, "exits", sum.lost_ns > 0 ? 2 : 1, parts);
    const struct durations *compiled = &view->report->compilations.whole;
    if (compiled->count > 0) {
        snprintf(parts[0], PART_BYTES, "%s ISEQs/s", amount_text(text, per_second(live, (double)compiled->count)));
        snprintf(parts[1], PART_BYTES, "%s per second",
                 duration_text(text, (uint64_t)per_second(live, (double)compiled->total_ns)));
        add_parts(view, "compiled", 2, parts);
    }
    add_thread_line(view);
    add_gc_line(view, live);
}

/* --- what to change first -------------------------------------------------------------------------------- */

/* Causes whose cost is known; numbers of exits are in a table of their own. */
static void
add_causes(const struct view *view, const struct report_live *live)
{
    static const struct column columns[] = {
        {"least_share", "at least", COLUMN_SHARE},
        {"most_share", "at most", COLUMN_SHARE},
        {"cause", "cause", COLUMN_TEXT},
    };
    struct findings findings = findings_of(view);
    bool of_main = findings.where.of_main; /* what gains are a part of: the time of these threads */
    const char *title = of_main ? "What to change first (of main threads)" : "What to change first (of all threads)";
    struct table *table = document_table(view->document, "live_causes", text_of(title), COLUMNS(columns));
    table->one_line = true;
    for (unsigned i = 0; i < findings.count && table->row_count < live->causes; i++) {
        const struct finding *finding = &findings.list[i];
        bool shown = live->search[0] == '\0' || strcasestr(finding->place.ptr, live->search) != NULL;
        if (!shown || finding->whole_ns == 0) continue;
        struct cell *cells = table_row(table);
        cells[0] = cell_share(finding->least_ns, finding->whole_ns);
        cells[1] = cell_share(finding->most_ns, finding->whole_ns);
        cells[2] = cell_text(document_text(view->document, "%s %s", finding->what.ptr, finding->place.ptr));
    }
    table->data = table->row_count == 0;
}

/* --- exits ----------------------------------------------------------------------------------------------- */

static int
compare_counts(const void *left, const void *right, void *context)
{
    const struct exit_row *a = left, *b = right;
    (void)context;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    if (a->reason != b->reason) return a->reason < b->reason ? -1 : 1;
    return (a->location > b->location) - (a->location < b->location);
}

static void
add_exits(const struct view *view, const struct report_live *live)
{
    bool timed = report_timed(view->report);
    const struct column columns[] = {
        {"per_second", "exits/s", COLUMN_AMOUNT},
        {"lost_per_second_ns", timed ? "lost/s" : NULL, COLUMN_DURATION},
        {"reason", "reason", COLUMN_TEXT},
        {"method", "method", COLUMN_TEXT},
    };
    struct row_table rows = view_exits(view, false, BY_REASON | BY_LOCATION, NULL);
    const char *title = "Exits, most lost time first";
    if (!timed) title = "Exits, most frequent first (lost time needs the stream states)";
    if (live->by_count) title = "Exits, most frequent first";
    if (live->by_count || !timed) row_table_sort(&rows, compare_counts, NULL);
    struct table *table = document_table(view->document, "live_exits", text_of(title), COLUMNS(columns));
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct exit_row *row = row_table_at(&rows, i);
        if (!found(live, view, row->reason) && !found(live, view, row->location)) continue;
        if (count++ >= live->rows) continue;
        struct cell *cells = table_row(table);
        cells[0] = cell_amount(per_second(live, (double)row->count));
        cells[1] = cell_number((uint64_t)per_second(live, (double)row->lost_ns));
        cells[2] = cell_text(view_name(view, row->reason));
        cells[3] = cell_text(view_name(view, row->location));
    }
    table->data = count == 0;
    table->one_line = true;
    exit_rows_free(&rows);
}

/* --- threads ---------------------------------------------------------------------------------------------- */

/* What each thread blocked in longest: by the number of the thread, a row of report->blocked and 1. */
static struct map
longest_blocks(const struct report *report)
{
    struct map longest = {0};
    for (uint32_t i = 0; i < report->blocked.count; i++) {
        const struct report_blocked *blocked = row_table_at(&report->blocked, i);
        uint32_t before = map_get(&longest, blocked->thread);
        const struct report_blocked *other = before == MAP_NONE ? NULL : row_table_at(&report->blocked, before);
        if (other == NULL || blocked->durations.total_ns > other->durations.total_ns)
            map_set(&longest, blocked->thread, i);
    }
    return longest;
}

static int
compare_running(const void *left, const void *right, void *context)
{
    const struct thread_times *a = left, *b = right;
    (void)context;
    const uint64_t a_ns[] = {a->ns[THREAD_RUNNING] + a->ns[THREAD_IN_GC], a->ns[THREAD_WAITING]};
    const uint64_t b_ns[] = {b->ns[THREAD_RUNNING] + b->ns[THREAD_IN_GC], b->ns[THREAD_WAITING]};
    for (unsigned i = 0; i < 2; i++) {
        if (a_ns[i] != b_ns[i]) return a_ns[i] > b_ns[i] ? -1 : 1;
    }
    return (a->row > b->row) - (a->row < b->row);
}

/* Where space is short, the pid is left out if there is only one process, and then what threads blocked in. */
static void
add_threads(const struct view *view, const struct report_live *live)
{
    enum { WIDE = 80, NARROW = 60 };
    bool one_process = view->report->processes.count == 1 && display_columns(stdout) < WIDE;
    bool narrow = display_columns(stdout) < NARROW;
    const struct column columns[] = {
        {"running", "running", COLUMN_SHARE},
        {"gc", "GC", COLUMN_SHARE},
        {"waiting", "GVL", COLUMN_SHARE},
        {"blocked", "blocked", COLUMN_SHARE},
        {"pid", one_process ? NULL : "pid", COLUMN_NUMBER},
        {"thread", "thread", COLUMN_TEXT},
        {"blocked_in", narrow ? NULL : "blocked in", COLUMN_TEXT},
    };
    struct report *report = view->report;
    struct row_table *threads = &report->states.threads;
    struct map longest = longest_blocks(report);
    struct table *table =
        document_table(view->document, "live_threads", text_of("Threads (%: of their lives)"), COLUMNS(columns));
    uint32_t count = 0;
    row_table_sort(threads, compare_running, NULL);
    for (uint32_t i = 0; i < threads->count; i++) {
        const struct thread_times *times = row_table_at(threads, i);
        const struct report_thread *thread = report_thread(report, times->row);
        uint32_t block = map_get(&longest, times->row);
        const struct report_blocked *blocked = block == MAP_NONE ? NULL : row_table_at(&report->blocked, block);
        uint64_t life_ns = thread_life_ns(times);
        if (life_ns == 0) continue;
        if (!found(live, view, thread->name) && !(blocked != NULL && found(live, view, blocked->name))) continue;
        if (count++ >= live->rows) continue;
        struct cell *cells = table_row(table);
        cells[0] = cell_share(times->ns[THREAD_RUNNING], life_ns);
        cells[1] = cell_share(times->ns[THREAD_IN_GC], life_ns);
        cells[2] = cell_share(times->ns[THREAD_WAITING], life_ns);
        cells[3] = cell_share(times->ns[THREAD_BLOCKED], life_ns);
        cells[4] = cell_number(report_process(report, thread->process)->pid);
        cells[5] = cell_text(view_name(view, thread->name));
        if (blocked != NULL) cells[6] = cell_text(view_name(view, blocked->name));
    }
    table->data = count == 0;
    table->one_line = true;
    map_free(&longest);
}

/* --- methods ------------------------------------------------------------------------------------------------- */

static void
add_methods(const struct view *view, const struct report_live *live)
{
    static const struct column columns[] = {
        {"own_share", "own", COLUMN_SHARE},
        {"compiled", "compiled", COLUMN_SHARE},
        {"method", "method, by samples", COLUMN_TEXT},
    };
    struct report *report = view->report;
    uint64_t whole_ns = 0;
    for (uint32_t i = 0; i < report->samples.threads.count; i++) {
        const struct sample_thread *thread = row_table_at(&report->samples.threads, i);
        whole_ns += sample_times_ns(&thread->times, false);
    }
    if (whole_ns == 0) return;
    struct row_table rows = sample_sums(&report->samples.all, false);
    sample_sums_sort(&rows, report->pool, false, false);
    struct table *table =
        document_table(view->document, "live_methods", text_of("Methods (own: of all; compiled: of own)"),
                       COLUMNS(columns));
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct sample_row *row = row_table_at(&rows, i);
        uint64_t own_ns = sample_times_ns(&row->own, false);
        if (own_ns == 0 || !found(live, view, row->text)) continue;
        if (count++ >= live->rows) continue;
        struct cell *cells = table_row(table);
        cells[0] = cell_share(own_ns, whole_ns);
        cells[1] = cell_share(row->own.ns[TIME_SAMPLE_COMPILED], own_ns);
        cells[2] = cell_text(view_name(view, row->text));
    }
    table->data = count == 0;
    table->one_line = true;
    row_table_free(&rows);
}

void
report_live(struct report *report, struct document *document, const struct report_live *live)
{
    const struct view view = {report, document, live->rows};
    add_lines(&view, live);
    if (live->causes > 0) add_causes(&view, live);
    add_exits(&view, live);
    add_threads(&view, live);
    if (live->methods) add_methods(&view, live);
}
