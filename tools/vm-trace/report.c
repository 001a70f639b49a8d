/* report.c - `vm-trace report`: what is costing me? */
#include "command.h"
#include "document.h"
#include "report_tables.h"

static struct report_filter filter = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
static enum document_format format = FORMAT_TEXT;

static enum status
run(const struct options *options, int file_count, char **files)
{
    struct report *report = report_new(options->memory_bytes, &filter);
    enum status status = report_read_all(report, options->max_faults, file_count, files);
    if (report_readable(report)) {
        struct document document = {0};
        report_head(report, &document);
        report_tables(report, &document, options->top);
        document_print(&document, format);
        document_free(&document);
    }
    report_free(report);
    return worse(status, finish_output());
}

static const struct cli_option report_options[] = {
    OPTION_TOP,
    CLI_OPTION("since", 's', "TIME", "count from here on: seconds after the first event,\n"
               "or with a unit: 20ms, 300us, 5ns", take_time, &filter.since_ns),
    CLI_OPTION("until", 'u', "TIME", "count up to here, likewise", take_time, &filter.until_ns),
    CLI_OPTION("reason", 'r', "GLOB", "only exits and fallbacks of these reasons: 'Guard*'", take_text, &filter.reason),
    CLI_OPTION("method", 'e', "GLOB", "only those in these methods: 'Foo#*', '*app/models/*'", take_text, &filter.method),
    CLI_OPTION("thread", 't', "GLOB", "only this thread, by its name or its tid", take_text, &filter.thread),
    OPTION_FORMAT(&format),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_report = {
    .name = "report",
    .purpose = "what costs: exits by reason, method, instruction; compilations",
    .arguments = "FILE...",
    .help =
        "Prints settings, time span and what was lost; exits by reason, by method and line, by\n"
        "instruction; the worst methods with their reasons, since when and how often over time;\n"
        "what recompile exits led to, and where exits go on after recompilation; fallbacks,\n"
        "compilations by phase and by ISEQ, the compiler's other work, invalidations, threads.\n"
        "Several files are taken as one run.\n"
        "\n"
        "Where exits were sampled the exact hits of their sites are counted, if the trace has\n"
        "them and they can be told by what is asked for; else each event counts its weight.\n"
        "Of a flight recorder's trace that begins late the events are counted.\n"
        "The head says which. Times are from the first event of the first file.\n",
    .options = report_options,
    .run = run,
};
