/* export.c - `vm-trace export`: writes traces in formats of other viewers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topics/calls/call_stacks.h"
#include "topics/choice.h"
#include "report/report_chosen.h"
#include "topics/report_data.h"
#include "topics/trace_choice.h"
#include "base/message.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "export/export_sqlite.h"
#include "export/export.h"
#include "export/export_minutes.h"
#include "export/export_tables.h"

enum format {
    FORMAT_NONE,
    FORMAT_FOLDED,
    FORMAT_SPEEDSCOPE,
    FORMAT_CHROME,
    FORMAT_FIREFOX,
    FORMAT_PPROF,
    FORMAT_SQLITE,
};

static const char *const format_names[] = {"", "folded", "speedscope", "chrome", "firefox", "pprof", "sqlite"};
static const enum output_kind output_kinds[] = {OUTPUT_TEXT, OUTPUT_TEXT, OUTPUT_TEXT, OUTPUT_TEXT,
                                                OUTPUT_TEXT, OUTPUT_GZIP, OUTPUT_DATABASE};

static enum format format;
static enum profile_kind kind;
static bool kind_given;
static const char *out_path;
static bool without_reasons, with_threads, by_events, by_lost;
static bool by_minute;
static struct tables_options tables;
static struct trace_choice choice = TRACE_CHOICE_ALL;

static bool
take_export_format(const struct cli_option *option, const char *text)
{
    for (format = FORMAT_FOLDED; format <= FORMAT_SQLITE; format++) {
        if (strcmp(text, format_names[format]) == 0) return true;
    }
    return option_wrong(option, option->help, text);
}

static bool
take_kind(const struct cli_option *option, const char *text)
{
    kind_given = true;
    for (kind = PROFILE_EXITS; kind <= PROFILE_SAMPLES; kind++) {
        if (strcmp(text, profile_names[kind].kind) == 0) return true;
    }
    return option_wrong(option, "exits, fallbacks, blocked, preempted, allocations, alive, calls or samples", text);
}

static bool
take_weight(const struct cli_option *option, const char *text)
{
    by_events = strcmp(text, "events") == 0;
    by_lost = strcmp(text, "lost") == 0;
    return by_events || by_lost || strcmp(text, "sum") == 0 || option_wrong(option, "sum, events or lost", text);
}

/* --sqlite OUT means --format sqlite -o OUT. */
static bool
take_database(const struct cli_option *option, const char *text)
{
    (void)option;
    format = FORMAT_SQLITE;
    out_path = text;
    return true;
}

static bool
take_by(const struct cli_option *option, const char *text)
{
    by_minute = true;
    return strcmp(text, "minute") == 0 || option_wrong(option, "minute", text);
}

static bool
take_table_format(const struct cli_option *option, const char *text)
{
    tables.format = strcmp(text, "ndjson") == 0 ? ROWS_NDJSON : ROWS_CSV;
    return tables.format == ROWS_NDJSON || strcmp(text, "csv") == 0 || option_wrong(option, "csv or ndjson", text);
}

static void
write_profile(const struct profile *profile, FILE *out, const char *name)
{
    char *partial = fxt_parts_line(reader_parts(profile->reader));
    switch (format) {
      case FORMAT_FOLDED: export_folded(out, profile, by_events, partial); break;
      case FORMAT_SPEEDSCOPE: export_speedscope(out, profile, name, by_events, partial); break;
      default: export_pprof(out, profile, partial); break;
    }
    free(partial);
    if (profile->events > 0 || profile->count > 0) return;
    char text[120];
    snprintf(text, sizeof text, "has no %s, so the output is empty", profile_names[kind].things);
    file_message(name, text);
}

/* What adds stacks to the profile, by its kind. */
struct stack_export {
    struct profile profile;
    struct trace_filter filter;
    struct frame_owners owners;
    struct call_stacks calls;    /* callers are known only after their callees */
    struct time_samples samples;
};

static void
on_event(void *context, const struct fxt_event *event)
{
    struct stack_export *export = context;
    profile_event(&export->profile, event);
    if (kind == PROFILE_CALLS) call_stacks_event(&export->calls, event);
}

static void
on_object(void *context, const struct fxt_object *object)
{
    struct stack_export *export = context;
    profile_object(&export->profile, object);
}

static void
on_blob(void *context, const struct fxt_blob *blob)
{
    struct stack_export *export = context;
    time_samples_blob(&export->samples, blob);
}

static void
on_file_end(void *context)
{
    struct stack_export *export = context;
    call_stacks_file_end(&export->calls);
    time_samples_file_end(&export->samples);
    threads_free(&export->profile.threads); /* each file names its threads: ids of another recording may be the same */
}

static enum status
export_stacks(const struct options *options, FILE *out, int file_count, char **files)
{
    struct reader *reader = reader_new(options->memory_bytes);
    struct stack_export export;
    profile_init(&export.profile, reader, kind, !without_reasons);
    export.profile.with_threads = with_threads;
    frame_owners_init(&export.owners, reader_pool(reader));
    if (choice.app_only) export.profile.app_only = &export.owners;
    call_stacks_init(&export.calls, &export.profile, NULL);
    time_samples_init(&export.samples, reader, &export.profile);
    trace_filter_init(&export.filter, &choice, reader);
    trace_filter_samples(&export.filter, &export.samples);
    trace_filter_profile(&export.filter, &export.profile);
    const struct file_bounds own = {.end = on_file_end};
    struct fxt_visitor all = {.context = &export, .object = on_object};
    if (kind == PROFILE_SAMPLES) all.blob = on_blob;
    else all.event = on_event;
    struct fxt_visitor visitor = trace_filter_visitor(&export.filter, &all);
    const struct file_bounds bounds = trace_filter_bounds(&export.filter, &own);
    enum status status = read_files(reader, options->max_faults, file_count, files, &visitor, &bounds);
    profile_finish(&export.profile);
    status = worse(status, trace_filter_status(&export.filter, "export"));
    if (status < STATUS_USAGE) write_profile(&export.profile, out, files[0]);
    trace_filter_free(&export.filter);
    time_samples_free(&export.samples);
    call_stacks_free(&export.calls);
    profile_free(&export.profile);
    frame_owners_free(&export.owners);
    reader_free(reader);
    return status;
}

/* How long a thread was blocked is known only with all of its states. */
static enum status
export_blocked(const struct options *options, FILE *out, int file_count, char **files)
{
    const struct trace_choice part = {
        .since_ns = choice.since_ns, .until_ns = choice.until_ns, .thread = choice.thread};
    struct report *report = report_new(options->memory_bytes, &part);
    trace_filter_name(&choice, report->reader);
    struct profile profile;
    profile_init(&profile, report->reader, kind, !without_reasons);
    profile.with_threads = with_threads;
    if (choice.app_only) profile.app_only = &report->owners;
    report->blocked_stacks = &profile;
    enum status status = report_read_all(report, options->max_faults, file_count, files);
    status = worse(status, report_check_chosen("export", NULL, report));
    profile.first_ns = report->first_ns;
    profile.last_ns = report->last_ns;
    if (status < STATUS_USAGE) write_profile(&profile, out, files[0]);
    profile_free(&profile);
    report_free(report);
    return status;
}

static enum status
export_chrome(const struct options *options, FILE *out, int file_count, char **files)
{
    struct reader *reader = reader_new(options->memory_bytes);
    struct chrome chrome;
    chrome_begin(&chrome, out);
    struct trace_filter filter;
    trace_filter_init(&filter, &choice, reader);
    const struct fxt_visitor all = {
        .context = &chrome, .event = chrome_event, .object = chrome_object, .sched = chrome_sched};
    struct fxt_visitor visitor = trace_filter_visitor(&filter, &all);
    const struct file_bounds bounds = trace_filter_bounds(&filter, &(const struct file_bounds){0});
    enum status status = read_files(reader, options->max_faults, file_count, files, &visitor, &bounds);
    status = worse(status, trace_filter_status(&filter, "export"));
    trace_filter_free(&filter);
    char *partial = fxt_parts_line(reader_parts(reader));
    chrome_end(&chrome, partial);
    free(partial);
    char text[160];
    if (chrome.twice > 0) {
        snprintf(text, sizeof text, "there are several processes %" PRIu32 ": the format shows them as one process",
                 chrome.twice);
        file_message(files[0], text);
    }
    if (chrome.left_out > 0) {
        snprintf(text, sizeof text, "%" PRIu64 " scheduling record%s left out: the format has none", chrome.left_out,
                 chrome.left_out == 1 ? " is" : "s are");
        file_message(files[0], text);
    }
    reader_free(reader);
    return status;
}

static enum firefox_samples
firefox_samples(void)
{
    if (!kind_given) return FIREFOX_SAMPLES_BEST;
    if (kind == PROFILE_BLOCKED) return FIREFOX_SAMPLES_STATES; /* with the stacks of what blocked */
    if (kind == PROFILE_SAMPLES) return FIREFOX_SAMPLES_TIME;
    if (kind == PROFILE_LOST) return FIREFOX_SAMPLES_LOST;
    if (kind == PROFILE_CALLS) return FIREFOX_SAMPLES_CALLS;
    return kind == PROFILE_FALLBACKS ? FIREFOX_SAMPLES_FALLBACKS : FIREFOX_SAMPLES_EXITS;
}

static enum status
run_tables(const struct options *options, int file_count, char **files)
{
    for (int i = 0; i < file_count; i++) {
        if (strcmp(files[i], "-") != 0) continue;
        fputs("vm-trace: export --tables reads each trace twice: give a file, not standard input\n", stderr);
        return STATUS_USAGE;
    }
    tables.choice = choice;
    return export_tables(&tables, options->memory_bytes, options->max_faults, file_count, files);
}

static enum status
run_minutes(const struct options *options, int file_count, char **files)
{
    bool to_folder = out_path != NULL && strcmp(out_path, "-") != 0;
    if (format != FORMAT_PPROF || !to_folder) {
        fputs("vm-trace: export --by=minute takes --format=pprof and --output=FOLDER\n", stderr);
        return STATUS_USAGE;
    }
    for (int i = 0; i < file_count; i++) {
        if (strcmp(files[i], "-") != 0) continue;
        fputs("vm-trace: export --by=minute reads traces several times: give a file, not standard input\n", stderr);
        return STATUS_USAGE;
    }
    return export_minutes(out_path, &choice, options->memory_bytes, options->max_faults, file_count, files);
}

/* Whether an option was given that would be ignored. */
static bool
useless_options(void)
{
    static const char of_stacks[] = "kind weight threads no-reason app-only";
    bool sqlite = option_given("sqlite");
    char with_format[64], with_kind[64];
    snprintf(with_format, sizeof with_format, "has no effect with %s%s", sqlite ? "--" : "--format=",
             format_names[format]);
    snprintf(with_kind, sizeof with_kind, "has no effect with --kind=%s", profile_names[kind].kind);
    if (tables.folder != NULL)
        return options_refused("format output sqlite by kind weight threads no-reason app-only", "has no effect with --tables");
    if (options_refused("table-format with-arguments with-command", "is for --tables")) return true;
    if (sqlite && options_refused("format output by", "has no effect with --sqlite")) return true;
    if (by_minute) return options_refused(of_stacks, "has no effect with --by=minute");
    if (format == FORMAT_CHROME || format == FORMAT_SQLITE) return options_refused(of_stacks, with_format);
    if (kind == PROFILE_ALIVE && options_refused("since until thread", with_kind)) return true;
    bool no_reasons = kind == PROFILE_BLOCKED || kind == PROFILE_PREEMPTED || kind == PROFILE_CALLS;
    if (no_reasons && options_refused("no-reason", with_kind)) return true;
    if (format == FORMAT_FIREFOX && options_refused("threads", with_format)) return true;
    bool one_weight = format == FORMAT_FIREFOX || format == FORMAT_PPROF; /* or has both */
    return one_weight && by_events && options_refused("weight", "is sum or lost with --format=firefox or pprof");
}

/* Whether the kind has what --reason and --method choose. Prints a message if not. */
static bool
picks_fit(void)
{
    if (!choice_picks(&choice) || by_minute || tables.folder != NULL) return true;
    bool exits = kind == PROFILE_EXITS || kind == PROFILE_FALLBACKS;
    bool methods = exits || kind == PROFILE_ALLOCATIONS || kind == PROFILE_CALLS;
    if (choice.reason != NULL ? exits : methods) return true;
    message("export: --%s chooses %s, not %s", choice.reason != NULL ? "reason" : "method", choice_picked(&choice),
            profile_names[kind].kind);
    return false;
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    if (useless_options()) return STATUS_USAGE;
    if (!choice_window_any("export", choice.since_ns, choice.until_ns)) return STATUS_USAGE;
    if (!picks_fit()) return STATUS_USAGE;
    if (by_minute) return run_minutes(options, file_count, files);
    if (tables.folder != NULL) return run_tables(options, file_count, files);
    if (format == FORMAT_NONE) {
        fputs("vm-trace: export needs --format or --tables; see vm-trace export --help\n", stderr);
        return STATUS_USAGE;
    }
    bool firefox_lacks = kind == PROFILE_PREEMPTED || kind == PROFILE_ALLOCATIONS || kind == PROFILE_ALIVE;
    if (format == FORMAT_FIREFOX && firefox_lacks) {
        fprintf(stderr, "vm-trace: --format=firefox takes --kind=exits, fallbacks, blocked, calls or samples, not %s\n",
                profile_names[kind].kind);
        return STATUS_USAGE;
    }
    if (by_lost && kind != PROFILE_EXITS) {
        fprintf(stderr, "vm-trace: --weight=lost is for --kind=exits, not %s\n", profile_names[kind].kind);
        return STATUS_USAGE;
    }
    if (by_lost) kind = PROFILE_LOST, kind_given = true;
    struct output output;
    if (!output_open(&output, output_kinds[format], out_path, file_count, files)) return STATUS_CANNOT_READ;
    enum status status;
    switch (format) {
      case FORMAT_SQLITE:
        status = export_sqlite(&choice, options->memory_bytes, options->max_faults, &output, file_count, files);
        break;
      case FORMAT_CHROME: status = export_chrome(options, output.file, file_count, files); break;
      case FORMAT_FIREFOX:
        status = export_firefox(output.file, options->memory_bytes, &choice, options->max_faults, firefox_samples(),
                                !without_reasons, file_count, files);
        break;
      default:
        status = (kind == PROFILE_BLOCKED ? export_blocked : export_stacks)(options, output.file, file_count, files);
        break;
    }
    return output_close(&output, status);
}

static const struct cli_option export_options[] = {
    CLI_OPTION("format", "FORMAT", "folded, speedscope, chrome, firefox, pprof or sqlite",
               take_export_format, NULL),
    OPTIONS_TRACE_CHOICE(choice),
    OPTION_OUTPUT(out_path, "output file; - is standard output (default)"),
    CLI_OPTION("sqlite", "OUT", "the same as --format=sqlite --output=OUT", take_database, NULL),
    CLI_OPTION("by", "minute", "with --format=pprof: a profile for each service, version and minute,\n"
               "in the folder OUT", take_by, NULL),
    CLI_OPTION("tables", "DIR", "write tables into this folder, for databases", take_text, &tables.folder),
    CLI_OPTION("table-format", "FORMAT", "csv (default) or ndjson\n"
               "of the files of --tables, which are compressed with gzip", take_table_format, NULL),
    CLI_OPTION("with-arguments", NULL, "--tables has the arguments of events, which may be private", NULL,
               &tables.with_arguments),
    CLI_OPTION("with-command", NULL, "--tables has command lines, which may be private", NULL,
               &tables.with_command),
    CLI_OPTION("kind", "KIND", "exits, fallbacks, blocked, preempted, allocations, alive, calls or\n"
               "samples (default: exits)", take_kind, NULL),
    CLI_OPTION("weight", "WEIGHT", "sum (default), events or lost\n"
               "sum: exits, time blocked, bytes; events: how many were recorded;\n"
               "lost: the time that exits lost. pprof has events, too", take_weight, NULL),
    CLI_OPTION("threads", NULL, "begin each stack with the name of its thread", NULL, &with_threads),
    CLI_OPTION("no-reason", NULL, "end stacks with the innermost frame, not with the reason, the\n"
               "allocated class or the state", NULL, &without_reasons),
    CLI_OPTION("app-only", NULL, "leave out the frames of gems, of the standard library and of Ruby", NULL,
               &choice.app_only),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_export = {
    .name = "export",
    .purpose = "write a trace for other viewers: flame graphs, pprof, SQLite",
    .arguments = "--format=FORMAT [-o OUT] FILE...\n       vm-trace export --tables=DIR [OPTION]... FILE...",
    .help =
        "Writes the traces in a format of other programs:\n"
        "  folded      `outermost;...;innermost;reason COUNT` lines, for flamegraph.pl\n"
        "  speedscope  JSON for https://www.speedscope.app\n"
        "  pprof       a profile for pprof, compressed as pprof expects it\n"
        "  chrome      every event as JSON, for chrome://tracing and https://ui.perfetto.dev\n"
        "  firefox     threads with their states and events, and counters, as JSON, for\n"
        "              https://profiler.firefox.com\n"
        "  sqlite      a database with the tables of query\n"
        "Firefox's samples are those of --kind. Without it they are samples of time, or else the\n"
        "states of threads, weighted by time, or else exits: the first that was recorded.\n"
        "The first three hold stacks, weighted by the exits that ended there. Sampled events count\n"
        "with their weight; pprof has both numbers. Frames that a trace left out are shown as\n"
        "`(more frames)`. With --kind=blocked the stacks are those that gave up the GVL, weighted\n"
        "by how long they were blocked: microseconds in folded stacks, nanoseconds elsewhere.\n"
        "What took less than a millisecond has no callers: `(no stack)`. --kind=preempted has\n"
        "where time slices ended, --kind=allocations the estimated bytes that were allocated,\n"
        "--kind=alive those of objects that are alive at the end, with what they hold by malloc,\n"
        "--kind=calls the own time of recorded calls, without the calls that are recorded inside,\n"
        "and --kind=samples the sampled time of threads; each stack ends with what the thread did:\n"
        "compiled, interpreted, compiling, gc, blocked, waiting (for the GVL), no_cpu or\n"
        "without_gvl.\n"
        "With --weight=lost exits weigh what they lost: the recorded exits of a line share the\n"
        "exact sum of its sites, and a line without recorded exits has `(no stack)`.\n"
        "With --since, --until or --thread it is only that part, and says so: what lies across a\n"
        "border counts with its part inside. With --reason or --method it has only these exits and\n"
        "fallbacks, and with --method alone also calls and allocations: no states, no samples.\n"
        "OUT appears when it is complete; if its name ends in .gz or .zst, it is compressed.\n"
        "\n"
        "--format=pprof --by=minute merges traces into profiles of a minute,\n"
        "OUT/SERVICE/VERSION/2026-11-26T1238Z.pb.gz, each with the values exits, lost (time),\n"
        "allocated (bytes), blocked (time) and own time (of calls). Lost time is that of\n"
        "recorded exits, times their weight.\n"
        "\n"
        "--tables writes the tables processes, threads, sites, stacks, frames, events, spans,\n"
        "states and counters of each process, for DuckDB, ClickHouse and the like, into\n"
        "DIR/TABLE/day=DAY/host=HOST/PROCESS.csv.gz. DIR/schema.json has their columns. Exporting\n"
        "a trace again replaces its files. What is wrong with a trace is reported, and the others\n"
        "are written; the counts of both come at the end.\n",
    .folders = true,
    .options = export_options,
    .run = run,
};
