/* metrics.c - `vm-trace metrics`: sums of traces as OpenMetrics text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/output_file.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "cli/folders.h"
#include "cli/live_source.h"
#include "cli/process.h"
#include "export/metrics.h"

static const char *out_path;
static const char *labels = "";

/* What is to be read. */
static struct {
    char **traces;
    uint32_t count, capacity;
    struct live_source *sources; /* processes */
    uint32_t source_count;
    enum status status;
} all;

static void
add_traces(char **traces, int count)
{
    for (int i = 0; i < count; i++) {
        make_room(all.traces, all.count, all.capacity);
        all.traces[all.count++] = traces[i];
    }
    free(traces);
}

static void
add_folder(const char *folder)
{
    char **traces;
    int count = folder_traces(folder, &traces);
    if (count >= 0) {
        add_traces(traces, count);
        return;
    }
    file_message(folder, strerror(errno));
    all.status = worse(all.status, STATUS_CANNOT_READ);
}

/* The trace that a process writes, or the events in its memory. */
static void
add_process(const char *pid)
{
    const bool may_start = false;
    struct live_source *source = &all.sources[all.source_count];
    char **traces;
    int count = live_source_open(source, pid, may_start) ? live_source_traces(source, 0, &traces) : -1;
    all.source_count += count >= 0;
    if (count >= 0) add_traces(traces, count);
    else all.status = worse(all.status, STATUS_CANNOT_READ);
}

static void
add_argument(char *argument)
{
    struct stat stat_of;
    bool exists = stat(argument, &stat_of) == 0;
    if (exists && S_ISDIR(stat_of.st_mode)) {
        add_folder(argument);
    }
    else if (!exists && process_pid_p(argument)) {
        add_process(argument);
    }
    else {
        char **one = xcalloc(1, sizeof *one);
        *one = xformat("%s", argument);
        add_traces(one, 1);
    }
}

/* Returns how many could not be read. */
static uint32_t
read_all(struct report *report, const struct options *options)
{
    uint32_t unread = 0;
    for (uint32_t i = 0; i < all.count; i++) {
        enum status status = report_read_one(report, options->max_faults, all.traces[i]);
        unread += status >= STATUS_USAGE;
        all.status = worse(all.status, status);
    }
    report_read_end(report);
    return unread;
}

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    const struct trace_choice filter = TRACE_CHOICE_ALL;
    struct output output;
    if (!metrics_labels_p(labels)) {
        fputs("vm-trace: metrics: --labels takes NAME=\"VALUE\", with commas between several\n", stderr);
        return STATUS_USAGE;
    }
    argument_count = traces_of_arguments(argument_count, arguments);
    if (!output_open(&output, OUTPUT_TEXT, out_path, argument_count, arguments)) return STATUS_CANNOT_READ;
    all.sources = xcalloc((size_t)argument_count, sizeof *all.sources);
    for (int i = 0; i < argument_count; i++) add_argument(arguments[i]);
    bool any = all.count > 0 || all.status == STATUS_FINE; /* an empty folder is fine: it has zeros */
    if (any) {
        struct report *report = report_new(options->memory_bytes, &filter);
        uint32_t unread = read_all(report, options);
        metrics_print(output.file, report, labels, all.count, unread);
        report_free(report);
    }
    for (uint32_t i = 0; i < all.source_count; i++) live_source_close(&all.sources[i]);
    free(all.sources);
    folder_traces_free(all.traces, (int)all.count);
    return worse(all.status, output_close(&output, any ? STATUS_FINE : all.status));
}

static const struct cli_option metrics_options[] = {
    OPTION_OUTPUT(out_path, "write to this file, which is replaced once it is complete: for the\n"
                  "textfile collector, name it *.prom"),
    CLI_OPTION("labels", "LIST", "further labels of all samples: 'service=\"shop\",version=\"42\"'", take_text,
               &labels),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_metrics = {
    .name = "metrics",
    .purpose = "sums of traces as OpenMetrics text, for Prometheus",
    .arguments = "FOLDER | FILE | PID ...",
    .needs = "a folder, a file or a process id",
    .help =
        "Prints what the traces of a folder, a file, or a running process have: exits and the time\n"
        "that they lost, by reason; exits of code that may not be compiled again; fallbacks;\n"
        "compilations; the time of threads by state; pauses of the garbage collector; what the\n"
        "recorder lost; and how many files were read, or skipped because they cannot be.\n"
        "\n"
        "All are gauges, of what was read: with a flight recorder's snapshots that is a part of the\n"
        "time, and old ones are deleted. So divide by vm_trace_traced_seconds: exits a second are\n"
        "sum(vm_trace_exits) / vm_trace_traced_seconds. The format is the same for Prometheus's\n"
        "older parser, as in the textfile collector.\n"
        "\n"
        "Sets of labels are bounded: GuardType(Fixnum) and GuardType(String) count as GuardType,\n"
        "and no label has a name of the program's methods, files or threads.\n",
    .options = metrics_options,
    .run = run,
};
