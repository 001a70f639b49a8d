/* report.c - `vm-trace report`: summarizes what exits cost. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/trace_filter.h"
#include "render/advice_table.h"
#include "render/document.h"
#include "render/report_fold.h"
#include "render/report_tables.h"

static struct report_filter filter = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
static enum document_format format = FORMAT_TEXT;
static const char *table;
static bool advice, samples, calls, syscalls, sched, by_endpoint, by_gem, each_thread;

static bool
take_group(const struct cli_option *option, const char *text)
{
    by_gem = strcmp(text, "gem") == 0;
    return by_gem || option_wrong(option, "gem", text);
}

/* All that is recorded, or all about what the options choose. */
static void
add_tables(struct report *report, struct document *document, uint64_t top)
{
    if (samples) report_sample_tables(report, document, top);
    if (calls) report_call_tables(report, document, top);
    if (syscalls) report_syscall_tables(report, document, top);
    if (sched) report_cpu_tables(report, document, top);
    if (by_endpoint) report_endpoint_tables(report, document, top);
    if (by_gem) report_gem_tables(report, document, top);
    if (!samples && !calls && !syscalls && !sched && !by_endpoint && !by_gem) report_tables(report, document, top);
}

static bool
endpoints_possible(int file_count, char **files)
{
    const char *fault = NULL;
    if (filter.reason != NULL || filter.method != NULL) fault = "--reason and --method choose exits, not requests";
    for (int i = 0; i < file_count; i++) {
        if (strcmp(files[i], "-") == 0) fault = "it reads traces twice: give a file, not standard input";
    }
    if (fault != NULL) fprintf(stderr, "vm-trace: report: --endpoints: %s\n", fault);
    return fault == NULL;
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
    if (!trace_filter_window("report", filter.since_ns, filter.until_ns)) return STATUS_USAGE;
    if (by_endpoint && !endpoints_possible(file_count, files)) return STATUS_USAGE;
    struct endpoints endpoints;
    struct report *first = by_endpoint ? find_endpoints(&endpoints, options, file_count, files) : NULL;
    struct report *report = report_new(options->memory_bytes, &filter);
    if (by_endpoint) report->endpoints = &endpoints;
    report->each_thread = each_thread;
    report->by_gem = by_gem;
    enum status status = report_read_all(report, options->max_faults, file_count, files);
    if (report_readable(report)) {
        struct document document = {0};
        document_partial(&document, reader_parts(report->reader));
        report_cost(report, &document);
        report_head(report, &document);
        report_cost_missing(report, &document);
        add_tables(report, &document, options->top);
        report_fold(report, &document);
        if (advice) advice_table_report(report, &document, options->top, NULL);
        status = worse(status, trace_filter_check("report", report));
        if (!document_print(stdout, &document, format, table)) status = worse(status, STATUS_USAGE);
        document_free(&document);
    }
    report_free(report);
    if (by_endpoint) {
        endpoints_free(&endpoints);
        report_free(first);
    }
    return worse(status, finish_output());
}

static const struct cli_option report_options[] = {
    OPTION_TOP,
    OPTIONS_TRACE_FILTER(filter),
    CLI_OPTION("advice", NULL, "for each reason: what it means, what causes it, what helps", NULL, &advice),
    CLI_OPTION("samples", NULL, "all about sampled time instead: by thread and state, method and line", NULL,
               &samples),
    CLI_OPTION("calls", NULL, "all about calls instead: callers, callees, threads, the slowest ones", NULL,
               &calls),
    CLI_OPTION("syscalls", NULL, "all about system calls instead: by name, method, thread and error", NULL,
               &syscalls),
    CLI_OPTION("sched", NULL, "all about CPUs instead: times on them, waits for them, who had them", NULL, &sched),
    CLI_OPTION("group", "gem", "instead: exits, time and allocations by gem, or the application", take_group, NULL),
    CLI_OPTION("app-only", NULL, "count what gems and Ruby do as done by the application's line that\n"
               "called them", NULL, &filter.app_only),
    CLI_OPTION("each-thread", NULL, "a row for each thread of a pool, such as those of Puma", NULL, &each_thread),
    CLI_OPTION("endpoints", NULL, "all about requests and jobs instead: times by endpoint, the slowest", NULL,
               &by_endpoint),
    OPTION_FORMAT(format, table),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_report = {
    .name = "report",
    .purpose = "summarize what exits cost, compilations, and where the time of threads went",
    .arguments = "FILE...",
    .help =
        "Prints what exits cost in time and a verdict, if the trace has the stream states; the\n"
        "settings, the time span and the losses; where the time went: samples of it, calls by own\n"
        "time, and exits by lost time; exits by reason, by method and line, and by instruction;\n"
        "the worst methods with their reasons, with the times of the first and the last exit and\n"
        "the rate over time; jumps out of blocks; what guards expected and met; the outcomes of\n"
        "recompile exits, methods that ran without compiled code, and where exits go on after\n"
        "recompilation; fallbacks; compilations by phase and by ISEQ; other work of the compiler;\n"
        "invalidations; where the time of each thread went, who held the GVL while others waited,\n"
        "where time slices ended, and what threads blocked in; times on CPUs and waits for them;\n"
        "system calls by name, and the methods that made them; garbage collections by reason and\n"
        "by phase; allocations and surviving objects by class and by method; threads. Several files\n"
        "count as one run.\n"
        "\n"
        "With --samples, instead of these: the time of threads by state; the methods and lines in\n"
        "which they ran, and those in which they waited. Own time is that of the innermost frame;\n"
        "total time counts a method once, however often it is in a stack. Each time has its 95 %\n"
        "confidence interval.\n"
        "\n"
        "With --calls, instead of these: total and own time of methods, their callers and callees,\n"
        "threads, and the slowest single calls. The total time of a method counts a call inside\n"
        "of another one of it once; own time is without recorded calls inside. Only what lies\n"
        "between --since and --until counts. Own times and what is outside of recorded calls add\n"
        "up to the time of the threads.\n"
        "\n"
        "With --syscalls, instead of these: time, number and errors of system calls by name, by\n"
        "method (the innermost recorded call around them, if calls are recorded, too) and by\n"
        "thread. With --sched: how long each native thread had a CPU, how long it waited for one\n"
        "(after it was preempted, after it was woken), how often it got one, how often another one\n"
        "than before, and which tasks had the CPU meanwhile; with the stream threads also how long\n"
        "it held the GVL without a CPU. Several of these options add up.\n"
        "\n"
        "With --endpoints: how long the spans of requests and jobs took, as the gem vm_trace marks\n"
        "them, by their argument `endpoint` (other spans that lie in no span, by their names);\n"
        "how long their threads ran, collected garbage, waited for the GVL and were blocked\n"
        "meanwhile; their exits, the time that these lost, and the sampled bytes of allocations;\n"
        "of a request in a fiber, the former are its thread's, whichever fiber it ran; with\n"
        "--group=gem also whose code the sampled time, lost time, exits and bytes were of;\n"
        "and the slowest one of each, with a command that shows it. The files are read twice.\n"
        "\n"
        "With --group=gem, instead of these: exits, lost time, calls, samples and allocations by\n"
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
