/* report_head.c - the head of a report: what was read, the settings, and what is missing. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "render/report_tables.h"

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

static void
add_files(struct report *report, struct document *document)
{
    enum { SHOWN_MOST = 20 }; /* a spool has a thousand; the table has all */
    static const struct column columns[] = {
        {"file", "file", COLUMN_TEXT},        {"bytes", "bytes", COLUMN_COUNT},
        {"events", "events", COLUMN_COUNT},   {"records", "records", COLUMN_COUNT},
        {"chunks", "chunks", COLUMN_COUNT},   {"padding_bytes", "padding bytes", COLUMN_COUNT},
    };
    struct table *table = document_table(document, "files", text_of("Files"), COLUMNS(columns));
    table->data = true;
    uint64_t rest_bytes = 0, rest_events = 0;
    for (uint32_t i = 0; i < report->file_count; i++) {
        const struct report_file *file = &report->files[i];
        const struct fxt_counts *counts = &file->counts;
        struct cell *row = table_row(table);
        const uint64_t numbers[] = {counts->bytes, counts->events, counts->records, counts->chunks,
                                    counts->padding_bytes};
        row[0] = cell_text(file_name(file));
        for (unsigned column = 0; column < 5; column++) row[column + 1] = cell_number(numbers[column]);

        char bytes[NUMBER_TEXT], events[NUMBER_TEXT], chunks[NUMBER_TEXT], name[256];
        if (i >= SHOWN_MOST && report->file_count > SHOWN_MOST + 1) {
            rest_bytes += counts->bytes;
            rest_events += counts->events;
            continue;
        }
        document_line(document, i == 0 ? "file" : "",
                      document_text(document, "%s%s%s, %s event%s, %s chunk%s",
                                    report->file_count > 1 ? escape_into(name, sizeof name, file_name(file)) : "",
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
add_settings(struct report *report, struct document *document)
{
    enum { SHOWN_MOST = 2000 }; /* settings; with hundreds of processes, only those of the first are shown */
    static const struct column columns[] = {
        {"pid", "pid", COLUMN_NUMBER},
        {"setting", "setting", COLUMN_TEXT},
        {"value", "value", COLUMN_TEXT},
    };
    struct table *table = document_table(document, "settings", text_of("Settings"), COLUMNS(columns));
    table->data = true;
    uint32_t processes = report_shown_processes(report);
    struct row_table shared = shared_settings(report);
    for (uint32_t i = 0; i < report->setting_count; i++) {
        const struct report_setting *setting = &report->settings[i];
        struct fxt_string name = pool_string(report->pool, setting->name),
                          value = pool_string(report->pool, setting->value);
        struct cell *row = table_row(table);
        row[0] = cell_number(report_process(report, setting->process)->pid);
        row[1] = cell_text(name);
        row[2] = cell_text(value);

        if (processes > 1 && setting->name == STRING_PID) continue; /* each has its own; a table lists them */
        if (setting->name == STRING_BEGAN) continue;
        if (i >= SHOWN_MOST) continue;
        struct shared_setting *common = row_table_get(&shared, (const uint32_t[2]){setting->name, setting->value});
        if (common->shown) continue;
        common->shown = true;
        uint32_t sharers = common->sharers;
        if (sharers < processes) {
            char text[1024];
            value = document_text(document, "%s   (%" PRIu32 " of %" PRIu32 " processes)",
                                  escape_into(text, sizeof text, value), sharers, processes);
        }
        document_line(document, name.ptr, value);
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

/* Whether its file goes on behind what was read. */
static bool
ends_unread(const struct report *report, const struct report_process *process)
{
    return report->files[process->file].stopped;
}

/* A process with all its pieces. */
struct whole_process {
    uint32_t pieces;
    bool timed, exact, sampled, summarized, cut, unread; /* summarized: in all pieces; the others: in one of them */
    int64_t first_ns, last_ns;
    uint64_t exits, fallbacks, recorded, lost;
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
        whole->unread |= ends_unread(report, process);
        if (process->first_ns < whole->first_ns) whole->first_ns = process->first_ns;
        if (process->last_ns > whole->last_ns) whole->last_ns = process->last_ns;
        whole->exits += process->exits;
        whole->fallbacks += process->fallbacks;
        whole->recorded += process->recorded;
        whole->lost += process->lost;
    }
    return wholes;
}

static void
add_processes(struct report *report, struct document *document)
{
    enum { PIECES = 11, LOST_TIME };
    static const struct column columns[] = {
        {"pid", "pid", COLUMN_NUMBER},
        {"first_ns", "first", COLUMN_TIME},
        {"span_ns", "time span", COLUMN_DURATION},
        {"exits", "exits", COLUMN_COUNT},
        {"fallbacks", NULL, COLUMN_COUNT},
        {"recorded", NULL, COLUMN_COUNT},
        {"lost", "lost", COLUMN_COUNT},
        {"counts", NULL, COLUMN_TEXT},
        {"ended", "ended", COLUMN_TEXT},
        {"file", "file", COLUMN_TEXT},
        {"command", "command", COLUMN_TEXT},
        [PIECES] = {"pieces", NULL, COLUMN_COUNT}, /* of a spool: the file is the first one */
        [LOST_TIME] = {"exits_lost_ns", "lost by exits", COLUMN_DURATION}, /* not without the stream `states` */
    };
    uint32_t count = report_shown_processes(report), pieces = 0;
    struct whole_process *wholes = whole_processes(report);
    for (uint32_t i = 0; i < report->processes.count; i++) pieces += wholes[i].pieces;
    unsigned column_count = report_timed(report) ? LOST_TIME + 1 : LOST_TIME;
    struct fxt_string title = document_text(document, "Processes: %" PRIu32, count);
    if (pieces > count) title = document_text(document, "%s, in %" PRIu32 " pieces", title.ptr, pieces);
    struct table *table = document_table(document, "processes", title, columns, column_count);
    table->data = count < 2;
    uint64_t *lost_ns = lost_ns_by_process(report);
    uint32_t *commands = setting_by_process(report, STRING_COMMAND);
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        const struct whole_process *whole = &wholes[i];
        if (whole->pieces == 0) continue;
        struct cell *row = table_row(table);
        row[0] = cell_number(process->pid);
        if (whole->first_ns <= whole->last_ns) {
            row[1] = cell_time(whole->first_ns - report->start_ns);
            row[2] = cell_number((uint64_t)(whole->last_ns - whole->first_ns));
        }
        row[3] = cell_number(whole->exits);
        row[4] = cell_number(whole->fallbacks);
        row[5] = cell_number(whole->recorded);
        if (whole->timed) row[LOST_TIME] = cell_number(lost_ns[i]);
        row[6] = cell_number(whole->lost);
        row[7] = cell_text(text_of(whole->sampled ? "estimates" : whole->exact ? "exact" : "all"));
        row[8] = cell_text(text_of(whole->summarized ? "yes" : whole->cut ? "cut" : whole->unread ? "not read" : "no"));
        row[9] = cell_text(file_name(&report->files[process->file]));
        if (commands[i] != STRING_NONE) row[10] = cell_text(pool_string(report->pool, commands[i]));
        row[PIECES] = cell_number(whole->pieces);
    }
    free(wholes);
    free(lost_ns);
    free(commands);
}

/* --- losses --------------------------------------------------------------------------------------- */

static void
add_losses(struct report *report, struct document *document)
{
    static const struct column columns[] = {
        {"pid", "pid", COLUMN_NUMBER},
        {"events", "events", COLUMN_COUNT},
        {"reason", "reason", COLUMN_TEXT},
    };
    struct table *table = document_table(document, "losses", text_of("Losses"), COLUMNS(columns));
    table->data = true;
    char text[1024] = "", number[NUMBER_TEXT], reason[200];
    size_t len = 0;
    for (uint32_t i = 0; i < report->losses.count; i++) {
        const struct report_loss *loss = row_table_at(&report->losses, i);
        struct cell *row = table_row(table);
        row[0] = cell_number(report_process(report, loss->process)->pid);
        row[1] = cell_number(loss->events);
        row[2] = cell_text(pool_string(report->pool, loss->reason));
        if (len + sizeof reason + NUMBER_TEXT > sizeof text) continue; /* the table has all of them */
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s %s", len > 0 ? ", " : ": ",
                                with_commas(number, loss->events),
                                escape_into(reason, sizeof reason, pool_string(report->pool, loss->reason)));
    }
    uint64_t lost = 0;
    uint32_t settings = 0, summaries = 0, cuts = 0;
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        lost += process->lost;
        if (!process->summarized && ends_unread(report, process)) continue; /* how it ended is not known */
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

/* The row of a process in *table_out, which is made for the first one, and whose first column is the pid. */
static struct cell *
process_row(struct document *document, struct table **table_out, const char *id, const char *title,
            const struct column *columns, uint32_t column_count, const struct report_process *process)
{
    if (*table_out == NULL) *table_out = document_table(document, id, text_of(title), columns, column_count);
    (*table_out)->data = true;
    struct cell *row = table_row(*table_out);
    row[0] = cell_number(process->pid);
    return row;
}

/* What the stream `threads` left out because of its option `min`. */
static void
add_suspensions(struct report *report, struct document *document)
{
    static const struct column columns[] = {
        {"pid", "pid", COLUMN_NUMBER},
        {"suspensions", "suspensions", COLUMN_COUNT},
        {"without_callers", "without callers", COLUMN_COUNT},
    };
    struct table *table = NULL;
    uint64_t suspensions = 0, without_callers = 0;
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        if (process->suspensions == 0) continue;
        struct cell *row = process_row(document, &table, "suspensions", "Suspensions", COLUMNS(columns), process);
        row[1] = cell_number(process->suspensions);
        row[2] = cell_number(process->without_callers);
        suspensions += process->suspensions;
        without_callers += process->without_callers;
    }
    if (without_callers == 0) return;
    char all[NUMBER_TEXT], without[NUMBER_TEXT];
    document_line(document, "no callers",
                  document_text(document,
                                "%s of %s suspension%s of threads: shorter than min "
                                "(threads:min=0ns records all callers)",
                                with_commas(without, without_callers), with_commas(all, suspensions),
                                plural(suspensions)));
}

/* Calls that have no slice. */
static void
add_replaced_calls(struct report *report, struct document *document)
{
    static const struct column columns[] = {{"pid", "pid", COLUMN_NUMBER}, {"calls", "calls", COLUMN_COUNT}};
    struct table *table = NULL;
    uint64_t calls = 0;
    for (uint32_t i = 0; i < report->processes.count; i++) {
        const struct report_process *process = report_process(report, i);
        if (process->calls_replaced == 0) continue;
        struct cell *row = process_row(document, &table, "replaced_calls", "Replaced calls", COLUMNS(columns), process);
        row[1] = cell_number(process->calls_replaced);
        calls += process->calls_replaced;
    }
    if (calls == 0) return;
    char count[NUMBER_TEXT];
    document_line(document, "replaced",
                  document_text(document, "%s call%s of methods in C: compiled code has code of its own instead",
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
    const struct report_filter *filter = &report->filter;
    if (filter->since_ns != INT64_MIN || filter->until_ns != INT64_MAX) {
        char since[40] = "the start", until[40] = "the end";
        if (filter->since_ns != INT64_MIN) snprintf(since, sizeof since, "%.9g s", (double)filter->since_ns / 1e9);
        if (filter->until_ns != INT64_MAX) snprintf(until, sizeof until, "%.9g s", (double)filter->until_ns / 1e9);
        document_line(document, "only", document_text(document, "from %s to %s", since, until));
    }
    const char *with_methods =
        report->allocations.sites.count > 0 ? ": exits, fallbacks and allocations" : ": exits and fallbacks";
    const char *names[] = {"reason", "method", "thread"}, *globs[] = {filter->reason, filter->method, filter->thread};
    for (unsigned i = 0; i < 3; i++) {
        if (globs[i] == NULL) continue;
        document_line(document, "only", document_text(document, "%s %s%s", names[i], globs[i],
                                                      i == 0   ? ": exits and fallbacks"
                                                      : i == 1 ? with_methods
                                                               : ""));
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
    add_uncounted(document, report->uncounted, "durations: they have more than %d names", REPORT_DURATIONS_MAX);
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
                  COMPILATIONS_ISEQS_MAX, COMPILATIONS_NAMES_MAX);
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
    uint64_t unknown = sum.all.samples - sum.freed.samples - sum.alive.samples;
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
add_span(struct report *report, struct document *document)
{
    static const struct column columns[] = {
        {"start_ns", "start", COLUMN_NUMBER}, /* CLOCK_BOOTTIME of time 0 */
        {"first_ns", "first", COLUMN_TIME},
        {"last_ns", "last", COLUMN_TIME},
    };
    struct table *table = document_table(document, "time_span", text_of("Time span"), COLUMNS(columns));
    table->data = true;
    if (report->first_ns > report->last_ns) return;
    struct cell *row = table_row(table);
    row[0] = cell_number((uint64_t)report->start_ns);
    row[1] = cell_time(report->first_ns - report->start_ns);
    row[2] = cell_time(report->last_ns - report->start_ns);
    char text[NUMBER_TEXT];
    document_line(document, "time span",
                  document_text(document, "%s, from %.6f s to %.6f s",
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
    add_title(report, document);
    add_settings(report, document);
    add_files(report, document);
    add_span(report, document);
    add_filters(report, document);
    add_losses(report, document);
    add_counting(report, document);
    add_suspensions(report, document);
    add_replaced_calls(report, document);
    add_unhandled_samples(report, document);
    add_allocations(report, document);
    if (report->unended > 0) {
        document_line(document, "never ended",
                      document_text(document, "%" PRIu64 " duration%s, not counted below", report->unended,
                                    plural(report->unended)));
    }
    add_processes(report, document);
}

static int
compare_providers(const void *left, const void *right, void *context)
{
    const struct report_provider *a = left, *b = right;
    (void)context;
    if (a->file != b->file) return a->file < b->file ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

void
report_contents(struct report *report, struct document *document, uint64_t top)
{
    static const struct column columns[] = {
        {"chunks", "chunks", COLUMN_COUNT},
        {"id", "id", COLUMN_NUMBER},
        {"provider", "provider", COLUMN_TEXT},
        {"file", "file", COLUMN_TEXT},
    };
    struct row_table *providers = &report->providers;
    struct table *table = document_table(
        document, "providers", document_text(document, "Providers: %" PRIu32, providers->count), COLUMNS(columns));
    row_table_sort(providers, compare_providers, NULL);
    uint64_t rest = 0;
    for (uint32_t i = 0; i < providers->count; i++) {
        const struct report_provider *provider = row_table_at(providers, i);
        if (i >= top) {
            rest += provider->chunks;
            continue;
        }
        struct cell *row = table_row(table);
        row[0] = cell_number(provider->chunks);
        row[1] = cell_number(provider->id);
        row[2] = cell_text(pool_string(report->pool, provider->name));
        row[3] = cell_text(file_name(&report->files[provider->file]));
    }
    if (providers->count <= top) return;
    table->more_rows = providers->count - top;
    table_row(table)[0] = cell_number(rest);
}
