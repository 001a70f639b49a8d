/* html.c - `vm-trace html`: writes one self-contained page. */
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
    .purpose = "write an HTML page: threads over time, hot methods, flame graph",
    .arguments = "-o OUT FILE...",
    .help =
        "Writes one HTML page that needs no network and no other file: what each thread did over\n"
        "time, with the pauses of the garbage collector; exits by reason over time, a table of the\n"
        "methods that exit, a flame graph of their backtraces; the settings, and what was lost.\n"
        "Drag over a timeline to choose a window; the tables follow it.\n"
        "The page holds sums, not events, so it stays small: it shows the 1000 largest rows, the\n"
        "8000 largest nodes of the flame graph and the 500 threads that waited longest, and sums up\n"
        "the others. Of the threads it has 40,000 segments; short states beyond that are folded\n"
        "into one that keeps their sums. Sampled exits count with their weight. OUT appears when it\n"
        "is complete.\n",
    .options = html_options,
    .run = run,
};
