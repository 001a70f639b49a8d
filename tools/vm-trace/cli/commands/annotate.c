/* annotate.c - `vm-trace annotate`: source files with the exits of their lines in the margin, and the
 * time that these lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source/annotated_source.h"
#include "source/annotation.h"
#include "topics/choice.h"
#include "report/report_chosen.h"
#include "source/source_match.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "cli/folders.h"
#include "source/annotated.h"
#include "render/document.h"
#include "report/report_tables.h"

static struct trace_choice filter = TRACE_CHOICE_ALL;
static enum document_format format = FORMAT_TEXT;
static const char *table_id;
static uint64_t context = 2;

static void
print_about(const char *source, const char *text)
{
    message("annotate: %s: %s", source, text);
}

/* Chooses the files of the trace that the sources are. */
static enum status
choose_sources(const struct annotation *annotation, const struct pool *pool, int source_count, char **names,
               const char **sources)
{
    enum status status = STATUS_FINE;
    for (int i = 0; i < source_count; i++) {
        int64_t number = source_match(annotation, pool, names[i]);
        if (access(names[i], R_OK) != 0) {
            print_about(names[i], "cannot be read");
            status = worse(status, STATUS_CANNOT_READ);
        }
        else if (number == SOURCE_AMBIGUOUS) {
            print_about(names[i], "several files of the trace end like this path; copy it into folders as theirs");
            status = worse(status, STATUS_USAGE);
        }
        else if (number == SOURCE_UNMATCHED) print_about(names[i], "the trace has no exits in this file");
        else sources[number] = names[i];
    }
    return status;
}

static enum status
print_annotated(const struct annotated_view *view, struct document *document)
{
    if (table_id == NULL && (format == FORMAT_TEXT || format == FORMAT_MARKDOWN)) {
        annotated_print(view, document, format == FORMAT_MARKDOWN);
        return STATUS_FINE;
    }
    struct document tables = {.title = document->title};
    document_partial(&tables, reader_parts(view->report->reader));
    annotated_tables(view, &tables);
    bool printed = document_print(stdout, &tables, format, table_id);
    document_free(&tables);
    return printed ? STATUS_FINE : STATUS_USAGE;
}

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    if (table_id != NULL && options_refused("context", "has no effect with --table")) return STATUS_USAGE;
    bool data = format == FORMAT_JSON || format == FORMAT_CSV;
    if (data && options_refused("context", "has no effect with --format=json or csv")) return STATUS_USAGE;
    if (!choice_window_any("annotate", filter.since_ns, filter.until_ns)) return STATUS_USAGE;
    int trace_count;
    char **traces;
    if (!folders_expand(1, arguments, &trace_count, &traces)) return STATUS_CANNOT_READ;
    struct report *report = report_new(options->memory_bytes, &filter);
    enum status status = report_read_all(report, options->max_faults, trace_count, traces);
    if (report_readable(report)) {
        struct document document = {0};
        struct annotation annotation;
        document_partial(&document, reader_parts(report->reader));
        report_head(report, &document);
        report_cost_missing(report, &document);
        annotation_of(&annotation, report);
        const char **sources = xcalloc(annotation.files.count + 1, sizeof *sources);
        for (uint32_t i = 0; i < annotation.files.count && argument_count == 1; i++) {
            const struct annotated_file *file = row_table_at(&annotation.files, i);
            sources[i] = file->path == STRING_NONE ? "" : pool_string(report->pool, file->path).ptr;
        }
        status = worse(status, choose_sources(&annotation, report->pool, argument_count - 1, arguments + 1, sources));
        const struct annotated_view view = {
            .report = report, .annotation = &annotation, .sources = sources,
            .traced = traces_written(trace_count, traces), .context = context, .top = options->top,
        };
        status = worse(status, print_annotated(&view, &document));
        status = worse(status, report_check_chosen("annotate", NULL, report));
        free(sources);
        annotation_free(&annotation);
        document_free(&document);
    }
    report_free(report);
    folder_traces_free(traces, trace_count);
    return worse(status, finish_output());
}

static const struct cli_option annotate_options[] = {
    {"context", "N", "lines to print around each line with exits (default 2)", take_number, &context, 0, 1000000},
    {"top", "N", "files to print, those that cost most (default 10)", take_number, &common_options.top, 1,
     1000000000},
    OPTIONS_TRACE_CHOICE(filter),
    OPTION_FORMAT(format, table_id),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_annotate = {
    .name = "annotate",
    .purpose = "print source lines with their exits in the margin",
    .arguments = "FILE [SOURCE]...",
    .help =
        "Prints the source files that have exits or fallbacks, those that lost most time first (in\n"
        "a trace with the stream states), with lost time and counts in the margin of their lines,\n"
        "and below each such line its reasons, with the bytecode instruction and the compiled\n"
        "versions. Sources are read where the trace says; a relative path is\n"
        "relative to the current folder. SOURCE is a source file elsewhere: it stands for the file\n"
        "of the trace whose path ends like its own, and only the given files are printed. Of a file\n"
        "that cannot be read, the lines are listed without text. Counts are those of vm-trace\n"
        "report. In JSON and CSV: the tables annotated_files, annotated_lines, annotated_reasons.\n",
    .options = annotate_options,
    .run = run,
};
