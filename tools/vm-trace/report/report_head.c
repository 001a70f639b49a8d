/* report_head.c - the head of a report: what was read, the settings, and what is missing. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "report/report_tables.h"
#include "topics/view_table.h"

static const char *
plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static struct fxt_string
file_name(const struct report_file *file)
{
    return text_of(strcmp(file->name, "-") == 0 ? "standard input" : file->name);
}

uint32_t
report_shown_processes(const struct report *report)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        count += process->shown && process->whole == i;
    }
    return count;
}

/* --- files -------------------------------------------------------------------------------- */

static struct cell
file_cell(const struct table_def *def, unsigned own, const void *row)
{
    return cell_text(file_name(row));
}

static void
add_files(const struct view *view)
{
    enum { SHOWN_MOST = 20 }; /* a spool has a thousand; the table has all */
    static const struct table_column columns[] = {
        {"file", "file", COLUMN_TEXT, OWN_CELL(0)},
        {"bytes", "bytes", COLUMN_COUNT, MEMBER(report_file, counts.bytes)},
        {"events", "events", COLUMN_COUNT, MEMBER(report_file, counts.events)},
        {"records", "records", COLUMN_COUNT, MEMBER(report_file, counts.records)},
        {"chunks", "chunks", COLUMN_COUNT, MEMBER(report_file, counts.chunks)},
        {"padding_bytes", "padding bytes", COLUMN_COUNT, MEMBER(report_file, counts.padding_bytes)},
    };
    const struct report *report = view->report;
    struct document *document = view->document;
    struct row_table files = ROWS_OF(report->files, report->file_count);
    view_table(&(struct table_def){.view = view, .id = "files", .title = text_of("Files"), .rows = &files,
                                   COLUMNS_OF(columns), .cell = file_cell, .data = true});
    uint64_t rest_bytes = 0, rest_events = 0;
    for (uint32_t i = 0; i < report->file_count; i++) {
        const struct fxt_counts *counts = &report->files[i].counts;
        char bytes[NUMBER_TEXT], events[NUMBER_TEXT], chunks[NUMBER_TEXT], name[256];
        if (i >= SHOWN_MOST && report->file_count > SHOWN_MOST + 1) {
            rest_bytes += counts->bytes;
            rest_events += counts->events;
            continue;
        }
        document_line(
            document, i == 0 ? "file" : "",
            document_text(document, "%s%s%s, %s event%s, %s chunk%s",
                          report->file_count > 1 ? escape_into(name, sizeof name, file_name(&report->files[i])) : "",
                          report->file_count > 1 ? ": " : "", bytes_text(bytes, counts->bytes),
                          with_commas(events, counts->events), plural(counts->events),
                          with_commas(chunks, counts->chunks), plural(counts->chunks)));
    }
    if (rest_events + rest_bytes == 0) return;
    char bytes[NUMBER_TEXT], events[NUMBER_TEXT];
    document_line(document, "",
                  document_text(document, "and %" PRIu32 " more: %s, %s event%s", report->file_count - SHOWN_MOST,
                                bytes_text(bytes, rest_bytes), with_commas(events, rest_events), plural(rest_events)));
}

/* --- settings --------------------------------------------------------------------------------- */

/* A setting that several processes share. */
struct shared_setting {
    uint32_t name, value; /* the key */
    uint32_t sharers;
    uint32_t last; /* the last of them */
    bool shown;
};

static struct row_table
shared_settings(const struct report *report)
{
    struct row_table shared;
    row_table_init(&shared, sizeof(struct shared_setting), 2, UINT32_MAX / 4);
    for (uint32_t i = 0; i < report->setting_count; i++) {
        struct shared_setting *setting =
            row_table_get(&shared, (const uint32_t[2]){report->settings[i].name, report->settings[i].value});
        uint32_t whole = report_whole(report, report->settings[i].process);
        setting->sharers += setting->sharers == 0 || setting->last != whole;
        setting->last = whole;
    }
    return shared;
}

/* When recordings began, from the first to the last. */
static void
add_began(struct report *report, struct document *document)
{
    uint32_t first = STRING_NONE, last = STRING_NONE;
    for (uint32_t i = 0; i < report->setting_count; i++) {
        const struct report_setting *setting = &report->settings[i];
        bool piece = report_whole(report, setting->process) != setting->process;
        if (setting->name != STRING_BEGAN || piece) continue;
        struct fxt_string began = pool_string(report->pool, setting->value);
        if (first == STRING_NONE || fxt_string_compare(began, pool_string(report->pool, first)) < 0)
            first = setting->value;
        if (last == STRING_NONE || fxt_string_compare(began, pool_string(report->pool, last)) > 0)
            last = setting->value;
    }
    if (first == STRING_NONE) return;
    document_line(document, "began",
                  first == last ? pool_string(report->pool, first)
                                : document_text(document, "%s to %s", pool_string(report->pool, first).ptr,
                                                pool_string(report->pool, last).ptr));
}

static void
add_settings(const struct view *view)
{
    enum { SHOWN_MOST = 2000 }; /* settings; with hundreds of processes, only those of the first are shown */
    static const struct table_column columns[] = {
        {"pid", "pid", COLUMN_NUMBER, PROCESS_PID(report_setting, process)},
        {"setting", "setting", COLUMN_TEXT, NAMED(report_setting, name)},
        {"value", "value", COLUMN_TEXT, NAMED(report_setting, value)},
    };
    struct report *report = view->report;
    struct document *document = view->document;
    struct row_table settings = ROWS_OF(report->settings, report->setting_count);
    view_table(&(struct table_def){.view = view, .id = "settings", .title = text_of("Settings"), .rows = &settings,
                                   COLUMNS_OF(columns), .data = true});
    uint32_t processes = report_shown_processes(report);
    struct row_table shared = shared_settings(report);
    for (uint32_t i = 0; i < report->setting_count && i < SHOWN_MOST; i++) {
        const struct report_setting *setting = &report->settings[i];
        struct fxt_string value = pool_string(report->pool, setting->value);
        bool own = setting->name == STRING_PID || setting->name == report->title; /* a table lists them */
        if (processes > 1 && own) continue;
        if (setting->name == STRING_BEGAN) continue;
        struct shared_setting *common = row_table_get(&shared, (const uint32_t[2]){setting->name, setting->value});
        if (common->shown) continue;
        common->shown = true;
        uint32_t sharers = common->sharers;
        if (sharers < processes) {
            char text[1024];
            value = document_text(document, "%s   (%" PRIu32 " of %" PRIu32 " processes)",
                                  escape_into(text, sizeof text, value), sharers, processes);
        }
        document_line(document, pool_string(report->pool, setting->name).ptr, value);
    }
    add_began(report, document);
    row_table_free(&shared);
}

static uint64_t *
lost_ns_by_process(const struct report *report)
{
    uint64_t *lost_ns = xcalloc(report->processes.count + 1, sizeof *lost_ns);
    for (uint32_t i = 0; i < report->exits.rows.count; i++) {
        const struct exit_row *exit_row = row_table_at(&report->exits.rows, i);
        if (exit_row->process < report->processes.count)
            lost_ns[report_whole(report, exit_row->process)] += exit_row->lost_ns;
    }
    return lost_ns;
}

/* By process: the text of this setting, or STRING_NONE. */
static uint32_t *
setting_by_process(const struct report *report, uint32_t name)
{
    uint32_t *values = xcalloc(report->processes.count + 1, sizeof *values);
    for (uint32_t i = 0; i < report->processes.count; i++) values[i] = STRING_NONE;
    for (uint32_t i = 0; i < report->setting_count; i++) {
        const struct report_setting *setting = &report->settings[i];
        if (setting->name == name) values[report_whole(report, setting->process)] = setting->value;
    }
    return values;
}

/* A process with all its pieces. */
struct whole_process {
    uint64_t pieces;
    bool timed, exact, sampled, summarized, cut, unread; /* summarized: in all pieces; the others: in one of them */
    int64_t first_ns, last_ns;
    uint64_t exits, fallbacks, recorded, lost, lost_ns; /* lost_ns: by exits */
    uint32_t process, title, command; /* a text, or STRING_NONE */
};

static struct whole_process *
whole_processes(const struct report *report)
{
    struct whole_process *wholes = xcalloc(report->processes.count + 1, sizeof *wholes);
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        struct whole_process *whole = &wholes[process->whole];
        if (!process->shown) continue;
        if (whole->pieces++ == 0)
            whole->summarized = true, whole->first_ns = process->first_ns, whole->last_ns = process->last_ns;
        whole->timed |= process->timed;
        whole->exact |= process->exact;
        whole->sampled |= process->sampled && !process->exact;
        whole->summarized &= process->summarized;
        whole->cut |= process->cut;
        whole->unread |= report_ends_unread(report, process);
        if (process->first_ns < whole->first_ns) whole->first_ns = process->first_ns;
        if (process->last_ns > whole->last_ns) whole->last_ns = process->last_ns;
        whole->exits += process->exits;
        whole->fallbacks += process->fallbacks;
        whole->recorded += process->recorded;
        whole->lost += process->lost;
    }
    return wholes;
}

enum { FIRST, SPAN, COUNTS, ENDED, FILE_NAME, LOST_TIME };

static struct cell
process_cell(const struct table_def *def, unsigned own, const void *row)
{
    const struct report *report = def->view->report;
    const struct whole_process *whole = row;
    bool empty = whole->first_ns > whole->last_ns;
    switch (own) {
      case FIRST: return empty ? (struct cell){0} : cell_time(whole->first_ns - report->start_ns);
      case SPAN: return empty ? (struct cell){0} : cell_number((uint64_t)(whole->last_ns - whole->first_ns));
      case COUNTS: return cell_text(text_of(whole->sampled ? "estimates" : whole->exact ? "exact" : "all"));
      case ENDED:
        return cell_text(
            text_of(whole->summarized ? "yes" : whole->cut ? "cut" : whole->unread ? "not read" : "no"));
      case FILE_NAME: return cell_text(file_name(&report->files[report_process(report, whole->process)->file]));
      default: return whole->timed ? cell_number(whole->lost_ns) : (struct cell){0};
    }
}

static void
add_processes(const struct view *view)
{
    enum { TIMED = 1, TITLED = 2 }; /* by the stream `states`; the program gave its process a title */
    static const struct table_column columns[] = {
        {"pid", "pid", COLUMN_NUMBER, PROCESS_PID(whole_process, process)},
        {"first_ns", "first", COLUMN_TIME, OWN_CELL(FIRST)},
        {"span_ns", "time span", COLUMN_DURATION, OWN_CELL(SPAN)},
        {"exits", "exits", COLUMN_COUNT, MEMBER(whole_process, exits)},
        {"fallbacks", NULL, COLUMN_COUNT, MEMBER(whole_process, fallbacks)},
        {"recorded", NULL, COLUMN_COUNT, MEMBER(whole_process, recorded)},
        {"lost", "lost", COLUMN_COUNT, MEMBER(whole_process, lost)},
        {"counts", NULL, COLUMN_TEXT, OWN_CELL(COUNTS)},
        {"ended", "ended", COLUMN_TEXT, OWN_CELL(ENDED)},
        {"file", "file", COLUMN_TEXT, OWN_CELL(FILE_NAME)},
        {"title", "title", COLUMN_TEXT, NAMED_IF_ANY(whole_process, title), .only_if = TITLED},
        {"command", "command", COLUMN_TEXT, NAMED_IF_ANY(whole_process, command)},
        {"pieces", NULL, COLUMN_COUNT, SUMMED(whole_process, pieces)}, /* of a spool: the file is the first one */
        {"exits_lost_ns", "lost by exits", COLUMN_DURATION, OWN_CELL(LOST_TIME), .only_if = TIMED},
    };
    struct report *report = view->report;
    struct whole_process *wholes = whole_processes(report);
    uint64_t *lost_ns = lost_ns_by_process(report);
    uint32_t *commands = setting_by_process(report, STRING_COMMAND), count = report_shown_processes(report);
    uint32_t *titles = setting_by_process(report, report->title);
    unsigned given = report_timed(report) ? TIMED : 0;
    for (uint32_t i = 0; i < report->processes.count; i++) {
        wholes[i].process = i, wholes[i].title = titles[i], wholes[i].command = commands[i];
        wholes[i].lost_ns = lost_ns[i];
        if (titles[i] != STRING_NONE) given |= TITLED;
    }
    struct row_table rows = ROWS_OF(wholes, report->processes.count);
    struct table_def def = {.view = view, .id = "processes", .rows = &rows, COLUMNS_OF(columns),
                            .unless_zero = "pieces", .cell = process_cell, .given = given,
                            .data = count < 2};
    uint64_t pieces = view_table_sum(&def, "pieces");
    def.title = document_text(view->document, "Processes: %" PRIu32, count);
    if (pieces > count)
        def.title = document_text(view->document, "%s, in %" PRIu64 " pieces", def.title.ptr, pieces);
    view_table(&def);
    free(wholes);
    free(lost_ns);
    free(commands);
    free(titles);
}

/* --- losses --------------------------------------------------------------------------------------- */

static void
add_losses(const struct view *view)
{
    static const struct table_column columns[] = {
        {"pid", "pid", COLUMN_NUMBER, PROCESS_PID(report_loss, process)},
        {"events", "events", COLUMN_COUNT, MEMBER(report_loss, events)},
        {"reason", "reason", COLUMN_TEXT, NAMED(report_loss, reason)},
    };
    struct report *report = view->report;
    struct document *document = view->document;
    view_table(&(struct table_def){.view = view, .id = "losses", .title = text_of("Losses"), .rows = &report->losses,
                                   COLUMNS_OF(columns), .data = true});
    char text[1024] = "", number[NUMBER_TEXT], reason[200];
    size_t len = 0;
    for (uint32_t i = 0; i < report->losses.count; i++) {
        const struct report_loss *loss = row_table_at(&report->losses, i);
        if (len + sizeof reason + NUMBER_TEXT > sizeof text) break; /* the table has all of them */
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s %s", len > 0 ? ", " : ": ",
                                with_commas(number, loss->events),
                                escape_into(reason, sizeof reason, pool_string(report->pool, loss->reason)));
    }
    uint64_t lost = 0;
    uint32_t settings = 0, summaries = 0, cuts = 0;
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        lost += process->lost;
        if (!process->summarized && report_ends_unread(report, process)) continue; /* how it ended is not known */
        settings += process->setting_count > 0;
        summaries += process->summarized;
        cuts += process->cut;
    }
    if (lost > 0) {
        document_line(document, "lost",
                      document_text(document, "%s event%s%s", with_commas(number, lost), plural(lost), text));
    }
    else if (summaries > 0 && summaries >= settings) {
        document_line(document, "lost", text_of("nothing"));
    }
    if (cuts > 0 && summaries + cuts >= settings) {
        document_line(document, lost > 0 ? "" : "lost",
                      text_of(lost > 0 ? "nothing else known; this is a part cut out of a trace"
                                       : "nothing known; this is a part cut out of a trace"));
    }
    else if (settings == 1 && summaries == 0) {
        document_line(document, lost > 0 ? "" : "lost",
                      document_text(document, "%s; the trace has no summary: its program still runs, or ended abruptly",
                                    lost > 0 ? "nothing else known" : "nothing known"));
    }
    else if (summaries < settings) {
        document_line(document, lost > 0 ? "" : "lost",
                      document_text(document,
                                    "%" PRIu32 " of %" PRIu32 " processes have no summary: they still run, or ended "
                                    "abruptly",
                                    settings - summaries, settings));
    }
}

/* What the stream `threads` left out because of its option `min`. */
static void
add_suspensions(const struct view *view)
{
    static const struct table_column columns[] = {
        {"pid", "pid", COLUMN_NUMBER, MEMBER(report_process, pid)},
        {"suspensions", "suspensions", COLUMN_COUNT, SUMMED(report_process, suspensions)},
        {"without_callers", "without callers", COLUMN_COUNT, SUMMED(report_process, without_callers)},
    };
    struct table_def def = {.view = view, .id = "suspensions", .title = text_of("Suspensions"),
                            .rows = &view->report->processes, COLUMNS_OF(columns), .unless_zero = "suspensions",
                            .data = true};
    if (view_table_rows(&def) == 0) return;
    view_table(&def);
    uint64_t suspensions = view_table_sum(&def, "suspensions"), without = view_table_sum(&def, "without_callers");
    if (without == 0) return;
    char number[NUMBER_TEXT], of[NUMBER_TEXT];
    document_line(view->document, "no callers",
                  document_text(view->document,
                                "%s of %s suspension%s of threads: shorter than min "
                                "(threads:min=0ns records all callers)",
                                with_commas(number, without), with_commas(of, suspensions), plural(suspensions)));
}

/* Calls that have no slice. */
static void
add_replaced_calls(const struct view *view)
{
    static const struct table_column columns[] = {
        {"pid", "pid", COLUMN_NUMBER, MEMBER(report_process, pid)},
        {"calls", "calls", COLUMN_COUNT, SUMMED(report_process, calls_replaced)},
    };
    struct table_def def = {.view = view, .id = "replaced_calls", .title = text_of("Replaced calls"),
                            .rows = &view->report->processes, COLUMNS_OF(columns), .unless_zero = "calls",
                            .data = true};
    const uint64_t calls = view_table_sum(&def, "calls");
    if (calls == 0) return;
    view_table(&def);
    char count[NUMBER_TEXT];
    document_line(view->document, "replaced",
                  document_text(view->document, "%s call%s of methods in C: compiled code has code of its own instead",
                                with_commas(count, calls), plural(calls)));
}

/* The program took the sampler's signal for itself. */
static void
add_unhandled_samples(struct report *report, struct document *document)
{
    uint64_t looks = 0;
    for (uint32_t i = 0; i < report->processes.count; i++) looks += report_process(report, i)->samples_unhandled;
    if (looks == 0) return;
    char count[NUMBER_TEXT];
    document_line(document, "no stacks",
                  document_text(document,
                                "at %s look%s of the sampler, while the program handled SIGURG itself: that time is in "
                                "the next sample of its thread",
                                with_commas(count, looks), plural(looks)));
}

/* --- what is shown ------------------------------------------------------------------------------------ */

static void
add_filters(struct report *report, struct document *document)
{
    const struct trace_choice *filter = &report->filter;
    char *window = choice_window_text(filter);
    if (window != NULL) document_line(document, "only", document_text(document, "%s", window));
    free(window);
    const char *names[] = {"reason", "method", "thread"}, *globs[] = {filter->reason, filter->method, filter->thread};
    for (unsigned i = 0; i < 3; i++) {
        if (globs[i] == NULL) continue;
        const char *picked = i < 2 ? choice_picked(filter) : NULL;
        document_line(document, "only", document_text(document, "%s %s%s%s", names[i], globs[i],
                                                      picked != NULL ? ": " : "", picked != NULL ? picked : ""));
    }
}

static const char NOT_COUNTED[] = "not counted";

/* Adds a line if there is anything that was not counted. `format` says what it is and why. */
__attribute__((format(printf, 3, 4))) static void
add_uncounted(struct document *document, uint64_t count, const char *format, ...)
{
    char what[200];
    va_list args;
    if (count == 0) return;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    document_line(document, NOT_COUNTED, document_text(document, "%" PRIu64 " %s", count, what));
}

/* Explains the counts of exits if they are not simply the number of events. */
static void
add_counting(struct report *report, struct document *document)
{
    uint32_t exact = 0, estimated = 0, late = 0;
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        exact += process->exact;
        estimated += process->sampled && !process->exact;
        late += process->snapshot && !process->sampled && process->lost > 0;
    }
    if (exact > 0) {
        document_line(document, "counts",
                      text_of("exits are exact (hits of their sites); times are those of the recorded exits"));
    }
    if (estimated > 0) {
        document_line(
            document, exact > 0 ? "" : "counts",
            text_of(exact > 0 ? "except in some processes, where they are events times their weight"
                    : report->times_only
                        ? "exits are estimates (events times their weight): exact counts have no time or thread"
                        : "exits are estimates (events times their weight)"));
    }
    if (late > 0 && exact + estimated == 0) {
        document_line(document, "counts", text_of("exits are those in the snapshot, not those before it"));
    }
    if (report->unnamed > 0) {
        char number[NUMBER_TEXT];
        document_line(
            document, NOT_COUNTED,
            document_text(document,
                          "%s exit%s in inlined methods whose class the trace does not record; some may match --method",
                          with_commas(number, report->unnamed), plural(report->unnamed)));
    }
    uint64_t uncounted =
        report->exits.uncounted > report->exits.uncounted_hits ? report->exits.uncounted : report->exits.uncounted_hits;
    add_uncounted(document, uncounted, "exits: there are more than %d different ones", EXIT_ROWS_MAX);
    add_uncounted(document, report->uncounted, "durations: they have more than %d names", NAMED_DURATIONS_MAX);
    add_uncounted(document, report->states.uncounted, "changes of threads: there are more than %d threads",
                  THREAD_STATES_THREADS_MAX);
    add_uncounted(document, report->states.too_late,
                  "changes of threads, far behind later ones in the file; vm-trace query has them in order");
    if (report->states.unattributed_ns > 0) {
        char time[NUMBER_TEXT];
        document_line(document, NOT_COUNTED,
                      document_text(document, "%s of waiting for the GVL, too late in the file to tell who held it",
                                    duration_text(time, report->states.unattributed_ns)));
    }
    add_uncounted(document, report->gc.uncounted, "parts of garbage collections: they have more than %d names",
                  GC_ROWS_MAX);
    add_uncounted(document, report->calls.nesting.late, "calls of threads whose calls are in no order");
    add_uncounted(document, report->calls.nesting.uncounted, "calls: there are more than %d threads",
                  CALL_TRACKS_MAX);
    add_uncounted(document, report->history.uncounted, "compilations and invalidations: there are more than %d",
                  VERSION_STEPS_MAX);
    add_uncounted(document, report->compilations.uncounted,
                  "compilations have no row of their own: there are more than %d ISEQs or %d phases",
                  COMPILATIONS_ISEQS_MAX, NAMED_DURATIONS_MAX);
}

/* What was allocated, and how well that is known. */
static void
add_allocations(struct report *report, struct document *document)
{
    struct allocation_row sum;
    struct row_table rows = allocations_group(&report->allocations, 0, &sum);
    allocation_rows_free(&rows);
    if (sum.all.samples == 0) return;
    char bytes[NUMBER_TEXT], samples[NUMBER_TEXT];
    bytes_text(bytes, sum.all.bytes);
    with_commas(samples, sum.all.samples);
    document_line(document, "allocations",
                  allocations_exact(&sum)
                      ? document_text(document, "%s in %s objects, all recorded", bytes, samples)
                      : document_text(document,
                                      "about %s, estimated from %s sample%s; ± is the 95 %% interval of a share", bytes,
                                      samples, plural(sum.all.samples)));
    if (sum.not_followed.samples > 0) {
        document_line(document, "",
                      document_text(document,
                                    "not followed: %s of it, in buffers that had grown by then or that C code holds",
                                    bytes_text(bytes, sum.not_followed.bytes)));
    }
    if (report->allocations.unended > 0) {
        document_line(document, "",
                      document_text(document,
                                    "%s of them count as alive: no collection has freed them, and the trace has no end",
                                    with_commas(samples, report->allocations.unended)));
    }
    uint64_t unknown = sum.all.samples - sum.freed.samples - sum.alive.samples - sum.not_followed.samples;
    if (unknown > 0) {
        document_line(document, "",
                      document_text(document, "what became of %s of them is not in the trace",
                                    with_commas(samples, unknown)));
    }
    add_uncounted(document, report->allocations.uncounted, "samples: there are more than %d classes and lines",
                  ALLOCATION_SITES_MAX);
    if (report->allocations.unfollowed > 0) {
        document_line(document, "not followed",
                      document_text(document, "what became of some samples: there are more than %d",
                                    ALLOCATION_SAMPLES_MAX));
    }
}

static void
add_span(const struct view *view)
{
    static const struct table_column columns[] = {
        {"start_ns", "start", COLUMN_NUMBER, AT(SOURCE_U64, report, start_ns)}, /* CLOCK_BOOTTIME of time 0 */
        {"first_ns", "first", COLUMN_TIME, SINCE_START(report, first_ns)},
        {"last_ns", "last", COLUMN_TIME, SINCE_START(report, last_ns)},
    };
    const struct report *report = view->report;
    bool empty = report->first_ns > report->last_ns;
    struct row_table rows = ROWS_OF(report, empty ? 0 : 1);
    view_table(&(struct table_def){.view = view, .id = "time_span", .title = text_of("Time span"), .rows = &rows,
                                   COLUMNS_OF(columns), .data = true});
    char text[NUMBER_TEXT];
    if (empty) return;
    document_line(view->document, "time span",
                  document_text(view->document, "%s, from %.6f s to %.6f s",
                                duration_text(text, (uint64_t)(report->last_ns - report->first_ns)),
                                (double)report->first_ns / 1e9, (double)report->last_ns / 1e9));
}

static void
add_title(struct report *report, struct document *document)
{
    if (report->file_count == 1) document->title = file_name(&report->files[0]);
    else document->title = document_text(document, "%" PRIu32 " files", report->file_count);
}

void
report_head(struct report *report, struct document *document)
{
    const struct view view = {report, document, UINT64_MAX};
    add_title(report, document);
    add_settings(&view);
    add_files(&view);
    add_span(&view);
    add_filters(report, document);
    add_losses(&view);
    add_counting(report, document);
    add_suspensions(&view);
    add_replaced_calls(&view);
    add_unhandled_samples(report, document);
    add_allocations(report, document);
    if (report->unended > 0) {
        document_line(document, "never ended",
                      document_text(document, "%" PRIu64 " duration%s, not counted below", report->unended,
                                    plural(report->unended)));
    }
    add_processes(&view);
}

static struct cell
provider_file(const struct table_def *def, unsigned own, const void *row)
{
    return cell_text(file_name(&def->view->report->files[((const struct report_provider *)row)->file]));
}

void
report_contents(struct report *report, struct document *document, uint64_t top)
{
    static const struct table_column columns[] = {
        {"chunks", "chunks", COLUMN_COUNT, SUMMED(report_provider, chunks)},
        {"id", "id", COLUMN_NUMBER, MEMBER(report_provider, id)},
        {"provider", "provider", COLUMN_TEXT, NAMED(report_provider, name)},
        {"file", "file", COLUMN_TEXT, OWN_CELL(0)},
        {"file_number", NULL, COLUMN_NUMBER, MEMBER(report_provider, file), .helper = true},
    };
    const struct view view = {report, document, top};
    view_table(&(struct table_def){.view = &view, .id = "providers", .rows = &report->providers, COLUMNS_OF(columns),
                                   .title = document_text(document, "Providers: %" PRIu32, report->providers.count),
                                   .sort = {"file_number", "id"}, .cell = provider_file, .shown_empty = true});
}
