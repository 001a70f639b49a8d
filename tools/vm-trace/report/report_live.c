/* report_live.c - see report_live.h */
#define _GNU_SOURCE /* strcasestr */
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "render/display.h"
#include "report/findings.h"
#include "report/report_live.h"
#include "topics/report_view.h"

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

static struct cell
cause_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct finding *finding = row;
    (void)own;
    return cell_text(document_text(def->view->document, "%s %s", finding->what.ptr, finding->place.ptr));
}

/* Causes whose cost is known; numbers of exits are in a table of their own. */
static bool
cause_found(const struct table_def *def, const void *row)
{
    const struct report_live *live = def->context;
    const struct finding *finding = row;
    return finding->whole_ns > 0 && (live->search[0] == '\0' || strcasestr(finding->place.ptr, live->search) != NULL);
}

static void
add_causes(const struct view *view, const struct report_live *live)
{
    static const struct table_column columns[] = {
        {"least_ns", NULL, COLUMN_DURATION, MEMBER(finding, least_ns), .helper = true},
        {"most_ns", NULL, COLUMN_DURATION, MEMBER(finding, most_ns), .helper = true},
        {"whole_ns", NULL, COLUMN_DURATION, MEMBER(finding, whole_ns), .helper = true},
        {"least_share", "at least", COLUMN_SHARE, SHARE_IN_ROW("least_ns", "whole_ns")},
        {"most_share", "at most", COLUMN_SHARE, SHARE_IN_ROW("most_ns", "whole_ns")},
        {"cause", "cause", COLUMN_TEXT, OWN_CELL(0)},
    };
    const struct view few = {view->report, view->document, live->causes};
    struct findings findings = findings_of(&few);
    bool of_main = findings.where.of_main; /* what gains are a part of: the time of these threads */
    const char *title = of_main ? "What to change first (of main threads)" : "What to change first (of all threads)";
    struct row_table rows = ROWS_OF(findings.list, findings.count);
    view_table(&(struct table_def){.view = &few, .id = "live_causes", .title = text_of(title), .rows = &rows,
                                   COLUMNS_OF(columns), .counts = cause_found, .cell = cause_cell, .context = live,
                                   .no_rest = true})->one_line = true;
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

enum { EXITS, LOST };

static struct cell
exit_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct exit_row *exits = row;
    if (own == EXITS) return cell_amount(per_second(def->context, (double)exits->count));
    return cell_number((uint64_t)per_second(def->context, (double)exits->lost_ns));
}

static bool
exit_found(const struct table_def *def, const void *row)
{
    const struct exit_row *exits = row;
    return found(def->context, def->view, exits->reason) || found(def->context, def->view, exits->location);
}

static void
add_exits(const struct view *view, const struct report_live *live)
{
    enum { TIMED = 1 };
    static const struct table_column columns[] = {
        {"per_second", "exits/s", COLUMN_AMOUNT, OWN_CELL(EXITS)},
        {"lost_per_second_ns", "lost/s", COLUMN_DURATION, OWN_CELL(LOST), .people_if = TIMED},
        {"reason", "reason", COLUMN_TEXT, NAMED(exit_row, reason)},
        {"method", "method", COLUMN_TEXT, NAMED(exit_row, location)},
    };
    bool timed = report_timed(view->report);
    struct row_table rows = view_exits(view, false, BY_REASON | BY_LOCATION, NULL);
    const char *title = live->by_count ? "Exits, most frequent first"
                        : timed        ? "Exits, most lost time first"
                                       : "Exits, most frequent first (lost time needs the stream states)";
    view_table(&(struct table_def){.view = view, .id = "live_exits", .title = text_of(title), .rows = &rows,
                                   COLUMNS_OF(columns), .compare = live->by_count || !timed ? compare_counts : NULL,
                                   .counts = exit_found, .cell = exit_cell, .context = live,
                                   .given = timed ? TIMED : 0, .no_rest = true})->one_line = true;
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

/* What the table of threads is made of. */
struct live_threads {
    const struct report_live *live;
    struct map longest; /* see longest_blocks */
};

/* What the thread blocked in longest; or NULL. */
static const struct report_blocked *
blocked_in(const struct table_def *def, const struct thread_times *times)
{
    uint32_t block = map_get(&((const struct live_threads *)def->context)->longest, times->row);
    return block == MAP_NONE ? NULL : row_table_at(&def->view->report->blocked, block);
}

static bool
thread_found(const struct table_def *def, const void *row)
{
    const struct report_live *live = ((const struct live_threads *)def->context)->live;
    const struct report_thread *thread = report_thread(def->view->report, ((const struct thread_times *)row)->row);
    const struct report_blocked *blocked = blocked_in(def, row);
    return thread_life_ns(row) > 0 &&
           (found(live, def->view, thread->name) || (blocked != NULL && found(live, def->view, blocked->name)));
}

enum { THREAD_LIFE, BLOCKED_IN };

static struct cell
thread_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct report_blocked *blocked = blocked_in(def, row);
    if (own == THREAD_LIFE) return cell_number(thread_life_ns(row));
    return blocked != NULL ? cell_text(view_name(def->view, blocked->name)) : (struct cell){0};
}

/* Where space is short, the pid is left out if there is only one process, and then what threads blocked in. */
static void
add_threads(const struct view *view, const struct report_live *live)
{
    enum { WIDE = 80, NARROW = 60 };
    enum { PIDS = 1, ROOM = 2 };
#define STATE(id, title, state)                                                                                        \
    {id "_ns", NULL, COLUMN_DURATION, MEMBER(thread_times, ns[state]), .helper = true},                                \
    {id, title, COLUMN_SHARE, SHARE_IN_ROW(id "_ns", "life_ns")}
    static const struct table_column columns[] = {
        {"life_ns", NULL, COLUMN_DURATION, OWN_CELL(THREAD_LIFE), .helper = true},
        STATE("running", "running", THREAD_RUNNING),
        STATE("gc", "GC", THREAD_IN_GC),
        STATE("waiting", "GVL", THREAD_WAITING),
        STATE("blocked", "blocked", THREAD_BLOCKED),
        {"pid", "pid", COLUMN_NUMBER, AT(SOURCE_PID, thread_times, row), .people_if = PIDS},
        THREAD_COLUMN(thread_times, row),
        {"blocked_in", "blocked in", COLUMN_TEXT, OWN_CELL(BLOCKED_IN), .people_if = ROOM},
    };
    bool one_process = view->report->processes.count == 1 && display_columns(stdout) < WIDE;
    struct live_threads threads = {live, longest_blocks(view->report)};
    view_table(&(struct table_def){.view = view, .id = "live_threads", .title = text_of("Threads (%: of their lives)"),
                                   .rows = &view->report->states.threads, COLUMNS_OF(columns),
                                   .compare = compare_running, .counts = thread_found, .cell = thread_cell,
                                   .context = &threads, .no_rest = true,
                                   .given = (one_process ? 0 : PIDS) | (display_columns(stdout) < NARROW ? 0 : ROOM)})
        ->one_line = true;
    map_free(&threads.longest);
}

/* --- methods ------------------------------------------------------------------------------------------------- */

enum { OWN, COMPILED };

static struct cell
method_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct sample_row *method = row;
    uint64_t own_ns = sample_times_ns(&method->own, false);
    return own == OWN ? cell_share(own_ns, def->whole) : cell_share(method->own.ns[TIME_SAMPLE_COMPILED], own_ns);
}

static bool
method_found(const struct table_def *def, const void *row)
{
    const struct sample_row *method = row;
    return sample_times_ns(&method->own, false) > 0 && found(def->context, def->view, method->text);
}

static void
add_methods(const struct view *view, const struct report_live *live)
{
    static const struct table_column columns[] = {
        {"own_share", "own", COLUMN_SHARE, OWN_CELL(OWN)},
        {"compiled", "compiled", COLUMN_SHARE, OWN_CELL(COMPILED)},
        {"method", "method, by samples", COLUMN_TEXT, NAMED(sample_row, text)},
    };
    struct report *report = view->report;
    const uint64_t whole_ns = sample_threads_ns(&report->samples.threads, false);
    if (whole_ns == 0) return;
    struct row_table rows = sample_sums(&report->samples.all, false);
    sample_sums_sort(&rows, report->pool, false, false);
    view_table(&(struct table_def){.view = view, .id = "live_methods",
                                   .title = text_of("Methods (own: of all; compiled: of own)"), .rows = &rows,
                                   COLUMNS_OF(columns), .counts = method_found, .cell = method_cell, .context = live,
                                   .whole = whole_ns, .no_rest = true})->one_line = true;
    row_table_free(&rows);
}

/* --- memory -------------------------------------------------------------------------------------------------- */

enum { MARGIN };

static struct cell
alive_cell(const struct table_def *def, unsigned own, const void *row)
{
    (void)def, (void)own;
    return cell_number(allocation_live_margin(&((const struct allocation_row *)row)->live));
}

static bool
alive_found(const struct table_def *def, const void *row)
{
    const struct allocation_row *place = row;
    return place->live.samples > 0 && found(def->context, def->view, place->frame);
}

/* What was alive when the trace was saved, however old it is. */
static void
add_alive(const struct view *view, const struct report_live *live)
{
    static const struct table_column columns[] = {
        {"bytes", "bytes", COLUMN_COUNT, MEMBER(allocation_row, live_bytes)},
        {"margin", "±", COLUMN_COUNT, OWN_CELL(MARGIN)},
        {"objects", "objects", COLUMN_COUNT, MEMBER(allocation_row, live_objects)},
        {"age_ns", "age", COLUMN_DURATION, QUANTILE(50, allocation_row, ages)},
        {"class_name", "class", COLUMN_TEXT, NAMED(allocation_row, class_name)},
        {"frame", "method and line", COLUMN_TEXT, NAMED(allocation_row, frame)},
    };
    struct allocation_row sum;
    const unsigned by = ALLOCATIONS_BY_CLASS | ALLOCATIONS_BY_FRAME;
    struct row_table rows = allocations_group(&view->report->allocations, by, &sum);
    view_table(&(struct table_def){.view = view, .id = "live_memory",
                                   .title = text_of("Alive, most bytes first (sampled; age: the median)"),
                                   .rows = &rows, COLUMNS_OF(columns), .sort = {"bytes", "class_name", "frame"}, .counts = alive_found,
                                   .cell = alive_cell, .context = live, .no_rest = true})->one_line = true;
    allocation_rows_free(&rows);
}

static void
add_memory_line(const struct view *view)
{
    struct allocation_row sum;
    struct row_table rows = allocations_group(&view->report->allocations, 0, &sum);
    allocation_rows_free(&rows);
    if (sum.live.samples == 0) return;
    char parts[PARTS][PART_BYTES], bytes[NUMBER_TEXT], margin[NUMBER_TEXT];
    snprintf(parts[0], PART_BYTES, "%s ± %s alive", bytes_text(bytes, sum.live_bytes),
             bytes_text(margin, allocation_live_margin(&sum.live)));
    snprintf(parts[1], PART_BYTES, "%s of it by malloc", bytes_text(bytes, sum.live_malloc_bytes));
    add_parts(view, "memory", 2, parts);
}

void
report_live(struct report *report, struct document *document, const struct report_live *live)
{
    const struct view view = {report, document, live->rows};
    add_lines(&view, live);
    add_memory_line(&view);
    if (live->alive) {
        add_alive(&view, live);
        return;
    }
    if (live->causes > 0) add_causes(&view, live);
    add_exits(&view, live);
    add_threads(&view, live);
    if (live->methods) add_methods(&view, live);
}
