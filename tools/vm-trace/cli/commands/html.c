/* html.c - `vm-trace html`: writes one self-contained page. */
#include "topics/choice.h"
#include "page/page_data.h"
#include "cli/command.h"
#include "cli/page_file.h"

static const char *out_path, *against, *below;
static bool with_sources;
static struct trace_choice choice = TRACE_CHOICE_ALL;
static uint64_t max_calls = PAGE_CALLS_SHOWN;

static enum status
run(const struct options *options, int file_count, char **files)
{
    if (!with_sources && options_refused("below", "is for --sources")) return STATUS_USAGE;
    if (!choice_window_any("html", choice.since_ns, choice.until_ns)) return STATUS_USAGE;
    const struct page_options page = {
        .out_path = out_path, .with_sources = with_sources, .below = below, .max_calls = (uint32_t)max_calls,
        .choice = choice, .against = against};
    return page_file_write(&page, options, file_count, files);
}

static const struct cli_option html_options[] = {
    OPTION_OUTPUT(out_path, "output file; - is standard output (default)"),
    OPTIONS_TRACE_CHOICE(choice),
    CLI_OPTION("sources", NULL,
               "embed the sources of the files with exits (read where the trace\n"
               "says); whoever gets the page can read them",
               NULL, &with_sources),
    CLI_OPTION("below", "FOLDER", "of these, only files in this folder (default: the current one)", take_text,
               &below),
    CLI_OPTION("against", "BASE", "compare the flame graphs with those of this trace, or of the traces\n"
               "in this folder: what grew is red, what shrank is blue", take_text, &against),
    {"max-calls", "N", "calls in the page, the longest ones (default 2000000); its\n"
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
        "Drag over a timeline to choose a window; all tables and graphs follow it, and the search\n"
        "of the page.\n"
        "Of calls it has every slice, in a lane for each thread and fiber, a flame graph, and sums\n"
        "by method; of more than --max-calls it has the longest, and says so. System calls, the\n"
        "methods that made them, and times on CPUs are tables; samples of time are a flame graph,\n"
        "whose buttons choose the states that count.\n"
        "Otherwise the page holds sums, not events, so it stays small: it shows the 10,000 largest\n"
        "places, the 8000 largest nodes of a flame graph and the 500 threads that waited longest,\n"
        "and sums up the others. Of the threads it has 40,000 segments; short states beyond that\n"
        "are folded into one that keeps their sums. Sampled exits count with their weight. OUT\n"
        "appears when it is complete.\n"
        "With --since, --until or --thread the page has only that part, and says so: what lies\n"
        "across a border counts with its part inside, and sums of the whole trace are left out.\n"
        "With --reason or --method it has only these exits and fallbacks; with --method alone also\n"
        "calls, but no states of threads, pauses or samples.\n"
        "With --sources it has the sources, too, with counts and lost time beside their lines, and\n"
        "the tables lead there: at most 4 MiB, of the files that cost most. Files that are missing,\n"
        "have changed, or are not in the folder that --below names are named.\n",
    .folders = true,
    .options = html_options,
    .run = run,
};
