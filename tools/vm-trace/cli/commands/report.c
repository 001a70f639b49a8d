/* report.c - `vm-trace report`: summarizes what exits cost. */
#include <stdio.h>
#include <string.h>

#include "topics/choice.h"
#include "report/report_chosen.h"
#include "cli/command.h"
#include "topics/exits/advice_table.h"
#include "render/document.h"
#include "report/report_fold.h"
#include "report/report_tables.h"
#include "source/annotated_source.h"

static struct trace_choice filter = TRACE_CHOICE_ALL;
static enum document_format format = FORMAT_TEXT;
static const char *table;
static bool advice, all, kernel, by_gem, each_thread;
static bool chosen[TOPICS_COUNT];

static bool
take_group(const struct cli_option *option, const char *text)
{
    by_gem = strcmp(text, "gem") == 0;
    return by_gem || option_wrong(option, "gem", text);
}

/* Whether the options choose tables. */
static bool
chosen_p(void)
{
    bool any = by_gem || kernel;
    for (unsigned i = 0; i < TOPICS_COUNT; i++) any |= chosen[i];
    return any;
}

/* Whether it has tables of what the first screen says. */
static bool
first_tables_p(void)
{
    return !chosen_p() && (format != FORMAT_TEXT || table != NULL);
}

/* Programs, and people who want --all, get all tables; else those of the topics that the options choose. */
static void
add_tables(struct report *report, struct document *document, uint64_t top)
{
    if (!chosen_p()) {
        if (first_tables_p()) report_first(report, document, format == FORMAT_MARKDOWN);
        report_tables(report, document, top);
        return;
    }
    for (unsigned i = 0; i < TOPICS_COUNT; i++) {
        bool shown = chosen[i] || (kernel && (i == TOPIC_syscalls || i == TOPIC_sched));
        if (shown) report_topic(report, document, top, i);
    }
    if (by_gem) report_gem_tables(report, document, top);
}

/* People see the first screen unless they ask for more. */
static bool
first_screen_p(void)
{
    return format == FORMAT_TEXT && table == NULL && !all && !advice && !chosen_p();
}

/* Reads all files for the spans of requests, without a word about faults: they are read again. Returns what has the
 * strings. */
static struct report *
find_endpoints(struct endpoints *endpoints, const struct options *options, int file_count, char **files)
{
    struct report *report = report_new(options->memory_bytes, &filter);
    endpoints_init(endpoints, report->pool);
    report->silent = true;
    report->endpoints = endpoints;
    report_read_all(report, options->max_faults, file_count, files);
    endpoints_spans_end(endpoints);
    return report;
}

static enum status
run(const struct options *options, int file_count, char **files)
{
    if (!choice_window_any("report", filter.since_ns, filter.until_ns)) return STATUS_USAGE;
    const char *fault = report_why_no_requests(&filter, file_count, files);
    if (chosen[TOPIC_endpoints] && fault != NULL) {
        fprintf(stderr, "vm-trace: report: --endpoints: %s\n", fault);
        return STATUS_USAGE;
    }
    bool in_table = first_tables_p() && (table == NULL || strcmp(table, "where_requests") == 0);
    bool with_requests = (first_screen_p() || in_table) && fault == NULL;
    struct endpoints endpoints;
    struct report *first = chosen[TOPIC_endpoints] ? find_endpoints(&endpoints, options, file_count, files) : NULL;
    struct report *report = report_new(options->memory_bytes, &filter);
    if (with_requests) endpoints_init(&endpoints, report->pool);
    if (chosen[TOPIC_endpoints] || with_requests) report->endpoints = &endpoints;
    report->each_thread = each_thread;
    report->by_gem = by_gem;
    enum status status = report_read_all(report, options->max_faults, file_count, files);
    if (with_requests) report_read_requests(report, options->memory_bytes, file_count, files);
    if (report_readable(report)) {
        struct document document = {0};
        document_partial(&document, reader_parts(report->reader));
        if (!first_screen_p()) report_cost(report, &document);
        report_head(report, &document);
        if (first_screen_p()) {
            report_first_print(stdout, report, &document, file_count == 1 ? files[0] : "FILE...",
                               traces_written(file_count, files), options->top);
        }
        else {
            report_cost_missing(report, &document);
            add_tables(report, &document, options->top);
            report_fold(report, &document);
            if (advice) advice_table_report(report, &document, options->top, NULL);
            if (!document_print(stdout, &document, format, table)) status = worse(status, STATUS_USAGE);
        }
        status = worse(status, report_check_chosen("report", NULL, report));
        document_free(&document);
    }
    report_free(report);
    if (chosen[TOPIC_endpoints] || with_requests) endpoints_free(&endpoints);
    if (chosen[TOPIC_endpoints]) report_free(first);
    return worse(status, finish_output());
}

static const struct cli_option report_options[] = {
    OPTION_TOP,
    OPTIONS_TRACE_CHOICE(filter),
    CLI_OPTION("all", NULL, "all tables and settings", NULL, &all),
#define TOPIC_OPTION(name, purpose) CLI_OPTION(#name, NULL, purpose, NULL, &chosen[TOPIC_##name]),
    TOPICS(TOPIC_OPTION)
    CLI_OPTION("kernel", NULL, "the same as --syscalls --sched", NULL, &kernel),
    CLI_OPTION("advice", NULL, "--all, and for each reason: what it means, what causes it, what\nhelps", NULL,
               &advice),
    CLI_OPTION("group", "gem", "exits, time and allocations by gem, or the application", take_group, NULL),
    CLI_OPTION("app-only", NULL, "count what gems and Ruby do as done by the application's line that\n"
               "called them", NULL, &filter.app_only),
    CLI_OPTION("each-thread", NULL, "a row for each thread of a pool, such as those of Puma", NULL, &each_thread),
    OPTION_FORMAT(format, table),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_report = {
    .name = "report",
    .purpose = "say where the time went, and what to change first",
    .arguments = "FILE...",
    .help =
        "Prints one screen: what was recorded, and what of it is missing; where the time of the\n"
        "main thread went (if others ran longer than it, of all threads, without the time in\n"
        "which they were blocked); and at most five causes of lost time, those whose change gains\n"
        "most first: exits, methods without compiled code, compiling, garbage, a thread that\n"
        "holds the GVL, blocking calls, and methods by own time. A gain has bounds; `about` is an\n"
        "estimate from what such changes gained elsewhere. The option in [ ] shows the tables\n"
        "behind a row. JSON and CSV have all tables, among them `where`, `where_requests` and\n"
        "`findings`.\n"
        "\n"
        "Several of the following options add up. --all has the tables of all of them, and the\n"
        "settings. Several files count as one run.\n"
        "\n"
        "--exits: exits by lost time, reason, method and line, and instruction; the worst methods\n"
        "with the times of the first and the last exit and the rate over time; jumps out of\n"
        "blocks; what guards expected and met; the outcomes of recompile exits, and where exits\n"
        "go on after recompilation; fallbacks. --compiles: states, methods that ran without\n"
        "compiled code, recompilations, compilations by phase and by ISEQ, invalidations.\n"
        "--threads: where the time of each thread went, who held the GVL while others waited,\n"
        "where time slices ended, and what threads blocked in. --gc: collections by reason and by\n"
        "phase, allocations and surviving objects by class and by method.\n"
        "\n"
        "With --fibers: what fibers waited for, and from where; how long they kept their thread\n"
        "without a switch, by where they then waited, (ended) if they ended; both by fiber. `ready`\n"
        "is the part of a wait after the fiber was unblocked.\n"
        "\n"
        "With --counters: what each counter of ZJIT's statistics counted, and the method and line\n"
        "that have most of it; what compiled code left to the VM, and exits, by method; all\n"
        "counters by method. --reason chooses counters by name.\n"
        "\n"
        "With --samples: the time of threads by state; the methods and lines in\n"
        "which they ran, and those in which they waited. Own time is that of the innermost frame;\n"
        "total time counts a method once, however often it is in a stack. Each time has its 95 %\n"
        "confidence interval.\n"
        "\n"
        "With --calls: total and own time of methods, their callers and callees,\n"
        "threads, and the slowest single calls. The total time of a method counts a call inside\n"
        "of another one of it once; own time is without recorded calls inside. Only what lies\n"
        "between --since and --until counts. Own times and what is outside of recorded calls add\n"
        "up to the time of the threads.\n"
        "\n"
        "With --syscalls: time, number and errors of system calls by name, by\n"
        "method (the innermost recorded call around them, if calls are recorded, too) and by\n"
        "thread. With --sched: how long each native thread had a CPU, how long it waited for one\n"
        "(after it was preempted, after it was woken), how often it got one, how often another one\n"
        "than before, and which tasks had the CPU meanwhile; with the stream threads also how long\n"
        "it held the GVL without a CPU.\n"
        "\n"
        "With --endpoints: how long the spans of requests and jobs took, as the gem vm_trace marks\n"
        "them, by their argument `endpoint` (other spans that lie in no span, by their names);\n"
        "how long their threads ran, collected garbage, waited for the GVL and were blocked\n"
        "meanwhile; their exits, the time that these lost, and the sampled bytes of allocations;\n"
        "of a request in a fiber, the former are its thread's, whichever fiber it ran; with\n"
        "--group=gem also whose code the sampled time, lost time, exits and bytes were of;\n"
        "and the slowest one of each, with a command that shows it. The files are read twice.\n"
        "\n"
        "With --group=gem: exits, lost time, calls, samples and allocations by\n"
        "the gem whose code the innermost frame is: of .../gems/rack-3.1.8/ that is rack, of\n"
        ".../lib/ruby/4.0.0/json/ it is json (stdlib), of Ruby's own code, and of calls of methods\n"
        "in C, it is ruby, and all other code is that of the (application).\n"
        "\n"
        "With --app-only, exits, calls, samples, ends of time slices and allocations count for the\n"
        "innermost frame of the application's own code; other frames are left out. What has no\n"
        "such frame is (outside of the application). Each event counts with its weight then.\n"
        "\n"
        "Threads of a process whose names differ only in digits (puma srv tp 001, ...) are a pool:\n"
        "tables of threads have one row for it, with their number. Those of what threads blocked\n"
        "in, of calls and of the kernel, JSON and CSV have each thread.\n"
        "\n"
        "If exits were sampled, the counts are the exact hits of the sites. Where the trace lacks\n"
        "these, or a filter asks for what sites do not record (time, thread), each event counts\n"
        "with its weight. For a flight recorder's trace that begins late, the events count. The\n"
        "head says which. Times start at the first event of the first file.\n",
    .folders = true,
    .options = report_options,
    .run = run,
};
