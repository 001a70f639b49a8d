/* html.c - `vm-trace html`: one page that needs nothing else. */
#include "base/output_file.h"
#include "cli/command.h"
#include "render/page.h"

static const char *out_path;

static enum status
run(const struct options *options, int file_count, char **files)
{
    struct output output;
    if (!output_open(&output, OUTPUT_BINARY, out_path, file_count, files)) return STATUS_CANNOT_READ;
    struct page_data data;
    page_data_init(&data, options->memory_bytes);
    enum status status = STATUS_FINE;
    for (int i = 0; i < file_count; i++) status = worse(status, page_data_read(&data, files[i], options->max_faults));
    if (status < STATUS_USAGE) {
        page_data_finish(&data);
        print_page(output.file, &data, file_count, files);
    }
    page_data_free(&data);
    return output_close(&output, status);
}

static const struct cli_option html_options[] = {
    OPTION_OUTPUT(out_path, "output file; - is standard output (default)"),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_html = {
    .name = "html",
    .purpose = "write an HTML page: timeline, hot methods, flame graph",
    .arguments = "-o OUT FILE...",
    .help =
        "Writes one HTML page that needs no network and no other file: exits by reason over time,\n"
        "a table of the methods that exit, a flame graph of their backtraces, the settings, and\n"
        "what was lost. The page holds sums, not events, so it stays small: it shows the 1000\n"
        "largest rows and the 8000 largest nodes of the flame graph, and sums up the others.\n"
        "Sampled exits count with their weight. OUT appears when it is complete.\n",
    .options = html_options,
    .run = run,
};
