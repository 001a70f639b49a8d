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
    OPTION_OUTPUT(out_path, "where to write; - is standard output (default)"),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_html = {
    .name = "html",
    .purpose = "write one page to look at: timeline, hot methods, flame graph",
    .arguments = "-o OUT FILE...",
    .help =
        "Writes one HTML page that needs no network and nothing beside it: exits by reason over\n"
        "time, a table of the methods that they happen in, a flame graph of their backtraces, the\n"
        "settings, and what was lost. It holds sums, not events, so it stays small: the 1000\n"
        "largest rows and the 8000 largest places in the flame graph are shown one by one, the\n"
        "others summed. Sampled exits are scaled by weight. OUT appears when it is whole.\n",
    .options = html_options,
    .run = run,
};
