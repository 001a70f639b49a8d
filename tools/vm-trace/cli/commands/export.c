/* export.c - `vm-trace export`: writes traces in formats of other viewers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
static bool without_reasons;

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
    kind = strcmp(text, "fallbacks") == 0 ? PROFILE_FALLBACKS : PROFILE_EXITS;
    return kind == PROFILE_FALLBACKS || strcmp(text, "exits") == 0 || option_wrong(option, "exits or fallbacks", text);
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

static enum status
export_profile(const struct options *options, FILE *out, int file_count, char **files)
{
    struct reader *reader = reader_new(options->memory_bytes);
    struct profile profile;
    profile_init(&profile, reader, kind, !without_reasons);
    struct fxt_visitor visitor = {.context = &profile, .event = profile_event};
    enum status status = read_files(reader, options->max_faults, file_count, files, &visitor, NULL);
    if (status < STATUS_USAGE) {
        switch (format) {
          case FORMAT_FOLDED: export_folded(out, &profile); break;
          case FORMAT_SPEEDSCOPE: export_speedscope(out, &profile, files[0]); break;
          default: export_pprof(out, &profile); break;
        }
        if (profile.count == 0) {
            file_message(files[0], kind == PROFILE_FALLBACKS ? "has no fallbacks, so the output is empty"
                                                          : "has no exits, so the output is empty");
        }
    }
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
    if (!kind_given) return FIREFOX_SAMPLES_STATES;
    return kind == PROFILE_FALLBACKS ? FIREFOX_SAMPLES_FALLBACKS : FIREFOX_SAMPLES_EXITS;
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    if (format == FORMAT_NONE) {
        fputs("vm-trace: export needs --format; see vm-trace export --help\n", stderr);
        return STATUS_USAGE;
    }
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
      default: status = export_profile(options, output.file, file_count, files); break;
    }
    return output_close(&output, status);
}

static const struct cli_option export_options[] = {
    CLI_OPTION("format", 'f', "FORMAT", "folded, speedscope, chrome, firefox, pprof or sqlite",
               take_export_format, NULL),
    OPTION_OUTPUT(out_path, "output file; - is standard output (default)"),
    CLI_OPTION("sqlite", 0, "OUT", "the same as --format=sqlite --output=OUT", take_database, NULL),
    CLI_OPTION("kind", 'k', "KIND", "exits (default) or fallbacks", take_kind, NULL),
    CLI_OPTION("no-reason", 0, NULL, "end stacks with the innermost frame, not with the reason", NULL,
               &without_reasons),
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
        "  firefox     threads with their states and events as JSON, for\n"
        "              https://profiler.firefox.com\n"
        "  sqlite      a database with the tables of query\n"
        "Firefox's samples are the states of threads, weighted by time, if they were recorded and\n"
        "no --kind is given.\n"
        "The first three hold stacks, weighted by the exits that ended there. Sampled events count\n"
        "with their weight; pprof has both numbers. Frames that a trace left out are shown as\n"
        "`(more frames)`. OUT appears when it is complete; if its name ends in .gz, it is\n"
        "compressed.\n",
    .options = export_options,
    .run = run,
};
