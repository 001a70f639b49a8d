/* html.c - `vm-trace html`: writes one self-contained page. */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/annotated_source.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "render/page.h"
#include "render/page_sources.h"

static const char *out_path;
static bool with_sources;
static uint64_t max_calls = PAGE_CALLS_SHOWN;

static void
print_with_sources(FILE *out, struct page_data *data, int file_count, char **files)
{
    struct page_sources sources = {.traced = traces_written(file_count, files)};
    page_data_annotate(data, &sources.annotation);
    print_page(out, data, &sources, file_count, files);
    uint32_t count = sources.annotation.files.count;
    if (sources.shown < count) {
        fprintf(stderr,
                "vm-trace: html: the page has %" PRIu32 " of %" PRIu32 " sources, and says why not the others\n",
                sources.shown, count);
    }
    annotation_free(&sources.annotation);
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    struct output output;
    if (!output_open(&output, OUTPUT_BINARY, out_path, file_count, files)) return STATUS_CANNOT_READ;
    struct page_data data;
    page_data_init(&data, options->memory_bytes);
    data.calls_shown_max = (uint32_t)max_calls;
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++) status = worse(status, page_data_read(&data, files[i], options->max_faults));
    if (status < STATUS_USAGE) {
        page_data_finish(&data);
        if (with_sources) print_with_sources(output.file, &data, file_count, files);
        else print_page(output.file, &data, NULL, file_count, files);
    }
    page_data_free(&data);
    return output_close(&output, status);
}

static const struct cli_option html_options[] = {
    OPTION_OUTPUT(out_path, "output file; - is standard output (default)"),
    CLI_OPTION("sources", 'S', NULL,
               "embed the sources of the files with exits (read where the trace\n"
               "says); whoever gets the page can read them",
               NULL, &with_sources),
    {"max-calls", 'c', "N", "calls in the page, the longest ones (default 2000000); its\n"
     "sums of methods have all", take_number,
     &max_calls, 1, UINT32_MAX},
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_html = {
    .name = "html",
    .purpose = "write an HTML page: threads and calls over time, hot methods, flame graphs",
    .arguments = "-o OUT FILE...",
    .help =
        "Writes one HTML page that needs no network and no other file: what each thread did over\n"
        "time, with the pauses of the garbage collector; exits by reason over time, a table of the\n"
        "methods that exit, a flame graph of their backtraces; the settings, and what was lost.\n"
        "With the stream states it begins with what exits cost in time.\n"
        "Drag over a timeline to choose a window; the tables follow it.\n"
        "Of calls it has every slice, in a lane for each thread and fiber, a flame graph, and sums\n"
        "by method; of more than --max-calls it has the longest, and says so.\n"
        "Otherwise the page holds sums, not events, so it stays small: it shows the 1000 largest\n"
        "rows, the 8000 largest nodes of the flame graph and the 500 threads that waited longest,\n"
        "and sums up the others. Of the threads it has 40,000 segments; short states beyond that\n"
        "are folded into one that keeps their sums. Sampled exits count with their weight. OUT\n"
        "appears when it is complete.\n"
        "With --sources it has the sources, too, with counts and lost time beside their lines, and\n"
        "the tables lead there: at most 4 MiB, of the files that cost most. Files that are missing\n"
        "or have changed are named.\n",
    .options = html_options,
    .run = run,
};
