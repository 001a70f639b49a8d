/* info.c - `vm-trace info`: shows what a file contains. */
#include "cli/command.h"
#include "render/document.h"
#include "report/report_tables.h"

static enum document_format format = FORMAT_TEXT;
static const char *table;

static enum status
run(const struct options *options, int file_count, char **files)
{
    const struct trace_choice all = TRACE_CHOICE_ALL;
    struct report *report = report_new(options->memory_bytes, &all);
    enum status status = report_read_all(report, options->max_faults, file_count, files);
    if (report_readable(report)) {
        struct document document = {0};
        document_partial(&document, reader_parts(report->reader));
        report_head(report, &document);
        report_contents(report, &document, options->top);
        if (!document_print(stdout, &document, format, table)) status = worse(status, STATUS_USAGE);
        document_free(&document);
    }
    report_free(report);
    return worse(status, finish_output());
}

static const struct cli_option info_options[] = {
    OPTION_TOP, OPTION_FORMAT(format, table), OPTION_MAX_FAULTS, OPTION_MEMORY, {0}};

const struct command command_info = {
    .name = "info",
    .purpose = "settings, size, time span, processes, providers",
    .arguments = "FILE...",
    .help =
        "Prints, for each file and its processes: settings, size, chunks, time span, losses,\n"
        "whether the trace ended in good order, and which providers wrote it.\n",
    .folders = true,
    .options = info_options,
    .run = run,
};
