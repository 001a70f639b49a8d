/* export.c - `vm-trace export`: writes traces in formats of other viewers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/call_stacks.h"
#include "analysis/report_data.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "db/export_sqlite.h"
#include "render/export.h"

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
    for (kind = PROFILE_EXITS; kind <= PROFILE_CALLS; kind++) {
        if (strcmp(text, profile_names[kind].kind) == 0) return true;
    }
    return option_wrong(option, "exits, fallbacks, blocked, preempted, allocations or calls", text);
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

static void
write_profile(const struct profile *profile, FILE *out, const char *name)
{
    switch (format) {
      case FORMAT_FOLDED: export_folded(out, profile, by_events); break;
      case FORMAT_SPEEDSCOPE: export_speedscope(out, profile, name, by_events); break;
      default: export_pprof(out, profile); break;
    }
    if (profile->events > 0 || profile->count > 0) return;
    char text[120];
    snprintf(text, sizeof text, "has no %s, so the output is empty", profile_names[kind].things);
    file_message(name, text);
}

static enum status
export_profile(const struct options *options, FILE *out, int file_count, char **files)
{
    struct reader *reader = reader_new(options->memory_bytes);
    struct profile profile;
    profile_init(&profile, reader, kind, !without_reasons);
    profile.with_threads = with_threads;
    struct fxt_visitor visitor = {.context = &profile, .event = profile_event, .object = profile_object};
    enum status status = read_files(reader, options->max_faults, file_count, files, &visitor, NULL);
    profile_finish(&profile);
    if (status < STATUS_USAGE) write_profile(&profile, out, files[0]);
    profile_free(&profile);
    reader_free(reader);
    return status;
}

/* How long a thread was blocked is known only with all of its states. */
static enum status
export_blocked(const struct options *options, FILE *out, int file_count, char **files)
{
    const struct report_filter all = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
    struct report *report = report_new(options->memory_bytes, &all);
    struct profile profile;
    profile_init(&profile, report->reader, kind, !without_reasons);
    profile.with_threads = with_threads;
    report->blocked_stacks = &profile;
    enum status status = report_read_all(report, options->max_faults, file_count, files);
    profile.first_ns = report->first_ns;
    profile.last_ns = report->last_ns;
    if (status < STATUS_USAGE) write_profile(&profile, out, files[0]);
    profile_free(&profile);
    report_free(report);
    return status;
}

struct call_export {
    struct profile *profile;
    struct call_stacks stacks;
};

static void
on_call_event(void *context, const struct fxt_event *event)
{
    struct call_export *export = context;
    profile_event(export->profile, event);
    call_stacks_event(&export->stacks, event);
}

static void
on_call_object(void *context, const struct fxt_object *object)
{
    struct call_export *export = context;
    profile_object(export->profile, object);
}

static void
on_calls_end(void *context)
{
    struct call_export *export = context;
    call_stacks_file_end(&export->stacks);
}

/* Callers are known only after their callees. */
static enum status
export_calls(const struct options *options, FILE *out, int file_count, char **files)
{
    struct reader *reader = reader_new(options->memory_bytes);
    struct profile profile;
    struct call_export export = {.profile = &profile};
    profile_init(&profile, reader, kind, !without_reasons);
    profile.with_threads = with_threads;
    call_stacks_init(&export.stacks, &profile);
    struct fxt_visitor visitor = {.context = &export, .event = on_call_event, .object = on_call_object};
    enum status status = read_files(reader, options->max_faults, file_count, files, &visitor, on_calls_end);
    if (status < STATUS_USAGE) write_profile(&profile, out, files[0]);
    call_stacks_free(&export.stacks);
    profile_free(&profile);
    reader_free(reader);
    return status;
}

static enum status
export_chrome(const struct options *options, FILE *out, int file_count, char **files)
{
    struct reader *reader = reader_new(options->memory_bytes);
    struct chrome chrome;
    chrome_begin(&chrome, out);
    struct fxt_visitor visitor = {
        .context = &chrome, .event = chrome_event, .object = chrome_object, .sched = chrome_sched};
    enum status status = read_files(reader, options->max_faults, file_count, files, &visitor, NULL);
    chrome_end(&chrome);
    if (chrome.left_out > 0) {
        char text[120];
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
    if (!kind_given || kind == PROFILE_BLOCKED) return FIREFOX_SAMPLES_STATES; /* with the stacks of what blocked */
    if (kind == PROFILE_LOST) return FIREFOX_SAMPLES_LOST;
    if (kind == PROFILE_CALLS) return FIREFOX_SAMPLES_CALLS;
    return kind == PROFILE_FALLBACKS ? FIREFOX_SAMPLES_FALLBACKS : FIREFOX_SAMPLES_EXITS;
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    if (format == FORMAT_NONE) {
        fputs("vm-trace: export needs --format; see vm-trace export --help\n", stderr);
        return STATUS_USAGE;
    }
    if (format == FORMAT_FIREFOX && (kind == PROFILE_PREEMPTED || kind == PROFILE_ALLOCATIONS)) {
        fprintf(stderr, "vm-trace: --format=firefox takes --kind=exits, fallbacks, blocked or calls, not %s\n",
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
        status = export_sqlite(options->memory_bytes, options->max_faults, &output, file_count, files);
        break;
      case FORMAT_CHROME: status = export_chrome(options, output.file, file_count, files); break;
      case FORMAT_FIREFOX:
        status = export_firefox(output.file, options->memory_bytes, options->max_faults, firefox_samples(),
                                !without_reasons, file_count, files);
        break;
      default:
        status = (kind == PROFILE_BLOCKED ? export_blocked
                  : kind == PROFILE_CALLS ? export_calls
                                          : export_profile)(options, output.file, file_count, files);
        break;
    }
    return output_close(&output, status);
}

static const struct cli_option export_options[] = {
    CLI_OPTION("format", 'f', "FORMAT", "folded, speedscope, chrome, firefox, pprof or sqlite",
               take_export_format, NULL),
    OPTION_OUTPUT(out_path, "output file; - is standard output (default)"),
    CLI_OPTION("sqlite", 0, "OUT", "the same as --format=sqlite --output=OUT", take_database, NULL),
    CLI_OPTION("kind", 'k', "KIND", "exits (default), fallbacks, blocked, preempted, allocations or calls",
               take_kind, NULL),
    CLI_OPTION("weight", 'w', "WEIGHT", "sum (default), events or lost\n"
               "sum: exits, time blocked, bytes; events: how many were recorded;\n"
               "lost: the time that exits lost. pprof has events, too", take_weight, NULL),
    CLI_OPTION("threads", 0, NULL, "begin each stack with the name of its thread", NULL, &with_threads),
    CLI_OPTION("no-reason", 0, NULL, "end stacks with the innermost frame, not with the reason or the\n"
               "allocated class", NULL, &without_reasons),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_export = {
    .name = "export",
    .purpose = "write a trace for other viewers: flame graphs, pprof, SQLite",
    .arguments = "--format=FORMAT [-o OUT] FILE...",
    .help =
        "Writes the traces in a format of other programs:\n"
        "  folded      `outermost;...;innermost;reason COUNT` lines, for flamegraph.pl\n"
        "  speedscope  JSON for https://www.speedscope.app\n"
        "  pprof       a profile for pprof, compressed as pprof expects it\n"
        "  chrome      every event as JSON, for chrome://tracing and https://ui.perfetto.dev\n"
        "  firefox     threads with their states and events, and counters, as JSON, for\n"
        "              https://profiler.firefox.com\n"
        "  sqlite      a database with the tables of query\n"
        "Firefox's samples are the states of threads, weighted by time, if they were recorded and\n"
        "no --kind is given.\n"
        "The first three hold stacks, weighted by the exits that ended there. Sampled events count\n"
        "with their weight; pprof has both numbers. Frames that a trace left out are shown as\n"
        "`(more frames)`. With --kind=blocked the stacks are those that gave up the GVL, weighted\n"
        "by how long they were blocked: microseconds in folded stacks, nanoseconds elsewhere.\n"
        "What took less than a millisecond has no callers: `(no stack)`. --kind=preempted has\n"
        "where time slices ended, --kind=allocations the estimated bytes that were allocated, and\n"
        "--kind=calls the own time of recorded calls, without the calls that are recorded inside.\n"
        "With --weight=lost exits weigh what they lost: the recorded exits of a line share the\n"
        "exact sum of its sites, and a line without recorded exits has `(no stack)`.\n"
        "OUT appears when it is complete; if its name ends in .gz, it is compressed.\n",
    .options = export_options,
    .run = run,
};
