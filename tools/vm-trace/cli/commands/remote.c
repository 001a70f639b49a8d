/* remote.c - start, stop, status, save: control the trace of a running program (cli/control.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topics/exits/reason.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "cli/control.h"
#include "cli/process.h"

static uint64_t timeout_s = CONTROL_TIMEOUT_S; /* of all four commands */

static enum status
send_request(struct control_request *request, int count, char **arguments)
{
    if (count == 1 && process_pid_p(arguments[0])) return control_send(request, arguments[0], timeout_s, stdout);
    fputs("vm-trace: give exactly one process id\n", stderr);
    return STATUS_USAGE;
}

static const char *allocations, *call_options, *counter, *file, *keep, *save_at, *preset, *samples, *spool,
    *spool_compress, *spool_every, *spool_limit, *streams, *thread_options;
static bool no_exits, exit_samples, compiles, invalidations, markers, threads, gc, states, calls, syscalls, sched;
static uint64_t sample_rate = 1, max_size, memory, seconds, stack, min_free = UINT64_MAX;

static bool
take_keep(const struct cli_option *option, const char *text)
{
    if (strcmp(text, "newest") != 0 && strcmp(text, "oldest") != 0)
        return option_wrong(option, "newest or oldest", text);
    keep = text;
    return true;
}

/* Converts a list of counters, separated by commas, each by any name of its reason. The program
 * checks whether they exist. malloc'ed. */
static char *
counters_of(const char *list)
{
    char *counters = xcalloc(strlen(list) + 1, REASON_COUNTER); /* each letter could be a name */
    for (const char *at = list; *at != '\0';) {
        size_t bytes = strcspn(at, ",");
        char name[REASON_COUNTER], counter[REASON_COUNTER];
        snprintf(name, sizeof name, "%.*s", (int)bytes, at);
        if (bytes < sizeof name && reason_counter(name, counter)) strcat(counters, counter);
        else strncat(counters, at, bytes);
        at += bytes;
        if (*at == ',') strcat(counters, ","), at++;
    }
    return counters;
}

static enum status
run_start(const struct options *options, int count, char **arguments)
{
    (void)options;
    if (no_exits && options_refused("counter", "has no effect with --no-exits")) return STATUS_USAGE;
    char *counters = counter != NULL ? counters_of(counter) : NULL;
    struct control_request request = {.bytes = 0};
    control_word(&request, "start");
    control_pair(&request, "exits", no_exits ? "false" : counters);
    free(counters);
    if (exit_samples) control_pair(&request, "exit_samples", "true");
    control_pair(&request, "samples", samples);
    if (compiles) control_pair(&request, "compiles", "true");
    if (invalidations) control_pair(&request, "invalidations", "true");
    if (markers) control_pair(&request, "markers", "true");
    if (thread_options != NULL) control_pair(&request, "threads", thread_options);
    else if (threads) control_pair(&request, "threads", "true");
    control_pair(&request, "preset", preset);
    control_pair(&request, "streams", streams);
    if (gc) control_pair(&request, "gc", "true");
    if (states) control_pair(&request, "states", "true");
    if (call_options != NULL) control_pair(&request, "calls", call_options);
    else if (calls) control_pair(&request, "calls", "true");
    if (syscalls) control_pair(&request, "syscalls", "true");
    if (sched) control_pair(&request, "sched", "true");
    control_pair(&request, "allocations", allocations);
    if (sample_rate > 1) control_number(&request, "sample_rate", sample_rate);
    if (max_size) control_number(&request, "max_size", max_size);
    if (memory) control_number(&request, "memory", memory);
    if (seconds) control_number(&request, "seconds", seconds);
    if (stack) control_number(&request, "stack", stack);
    if (min_free != UINT64_MAX) control_number(&request, "min_free", min_free);
    control_pair(&request, "keep", keep);
    control_pair(&request, "save_at", save_at);
    control_pair(&request, "spool", spool);
    control_pair(&request, "spool_every", spool_every);
    control_pair(&request, "spool_limit", spool_limit);
    control_pair(&request, "spool_compress", spool_compress);
    control_pair(&request, "file", file);
    return send_request(&request, count, arguments);
}

static enum status
run_stop(const struct options *options, int count, char **arguments)
{
    (void)options;
    struct control_request request = {.bytes = 0};
    control_word(&request, "stop");
    return send_request(&request, count, arguments);
}

static enum status
run_status(const struct options *options, int count, char **arguments)
{
    (void)options;
    struct control_request request = {.bytes = 0};
    control_word(&request, "status");
    return send_request(&request, count, arguments);
}

static enum status
run_save(const struct options *options, int count, char **arguments)
{
    (void)options;
    struct control_request request = {.bytes = 0};
    control_word(&request, "save");
    if (count > 1) control_word(&request, arguments[1]);
    return send_request(&request, count > 2 ? count : 1, arguments);
}

#define OPTION_TIMEOUT                                                                                                 \
    {                                                                                                                  \
        "timeout", "SECONDS", "how long to wait for the program's answer (default 60)", take_number, &timeout_s,       \
            1, 86400                                                                                                   \
    }

static const struct cli_option start_options[] = {
    CLI_OPTION("counter", "NAME", "only exits that this counter of the JIT's stats counts; for ZJIT\n"
               "also by another name of the reason (see vm-trace explain)", take_text, &counter),
    CLI_OPTION("preset", "NAME", "record what a preset names: default (safe in production), or\n"
               "full (all streams); the other options override it", take_text, &preset),
    CLI_OPTION("vm-trace", "LIST", "record these streams, as Ruby's option --vm-trace=LIST does; the\n"
               "other options override it", take_text, &streams),
    CLI_OPTION("no-exits", NULL, "do not record exits", NULL, &no_exits),
    CLI_OPTION("samples", "OPTIONS", "sample what all threads do and their stacks, too: a period, such\n"
               "as 1ms, of wall-clock time, or of CPU time: cpu:1ms; without a\n"
               "JIT give --no-exits", take_text, &samples),
    CLI_OPTION("exit-samples", NULL, "record exits as stack samples, too: flame graphs in Perfetto", NULL,
               &exit_samples),
    CLI_OPTION("compiles", NULL, "record compilations, too", NULL, &compiles),
    CLI_OPTION("invalidations", NULL, "record invalidations, too", NULL, &invalidations),
    CLI_OPTION("markers", NULL, "record the program's own events, too (RubyVM::Trace.instant,\n"
               ".span, .counter); without a JIT give --no-exits", NULL, &markers),
    CLI_OPTION("threads", NULL, "record states of threads, too; without a JIT give --no-exits", NULL, &threads),
    CLI_OPTION("thread-options", "OPTIONS",
               "the same with these options: min=DURATION, stack=all|top|none,\n"
               "with colons between them", take_text, &thread_options),
    CLI_OPTION("gc", NULL, "record garbage collections, too; without a JIT give --no-exits", NULL, &gc),
    CLI_OPTION("states", NULL, "record how long exits keep threads in the interpreter, with\n"
               "exits, compilations, threads and gc", NULL, &states),
    CLI_OPTION("calls", NULL, "record every call, too; without a JIT give --no-exits", NULL, &calls),
    CLI_OPTION("call-options", "OPTIONS",
               "the same with these options: min=DURATION, depth=N, with\n"
               "colons between them", take_text, &call_options),
    CLI_OPTION("syscalls", NULL, "record every system call, too; without a JIT give --no-exits", NULL, &syscalls),
    CLI_OPTION("sched", NULL, "record the CPU of each thread, too; without a JIT give --no-exits", NULL, &sched),
    CLI_OPTION("allocations", "SIZE", "record one allocation for so many bytes, too: 1K to 1G, such as\n"
               "512K, or 1 for each; without a JIT give --no-exits", take_text, &allocations),
    {"sample-rate", "K", "record only every K-th exit", take_number, &sample_rate, 1, UINT32_MAX},
    CLI_OPTION("file", "PATH",
               "path of the trace, as the program sees it; %p is its pid,\n"
               "%t the time, %n a number (default /tmp/perfetto-PID.fxt)", take_text, &file),
    {"max-size", "MIB", "size limit of the file", take_number, &max_size, 4, 1 << 20},
    CLI_OPTION("keep", "WHICH", "events to keep in a limited file: newest (default) or oldest", take_keep, NULL),
    {"memory", "MIB", "write no file: keep the newest events in memory, for save", take_number, &memory, 4,
     1 << 16},
    {"seconds", "N", "save only the last N seconds of it", take_number, &seconds, 1, 1 << 20},
    CLI_OPTION("save-at", "MOMENT,...", "save it to the file automatically: at exit, exception, crash", take_text,
               &save_at),
    CLI_OPTION("spool", "FOLDER", "record into memory, and write pieces to this folder, as the program\n"
               "sees it: every so often, when it stops or ends, and at save", take_text, &spool),
    CLI_OPTION("spool-every", "TIME", "how often: 1s to 24h (default 5min)", take_text, &spool_every),
    CLI_OPTION("spool-limit", "MIB[,N]", "delete the oldest pieces beyond so many MiB and files of the\n"
               "folder (default 1024,1000)", take_text, &spool_limit),
    CLI_OPTION("spool-compress", "HOW", "compress the pieces: zstd or gzip", take_text, &spool_compress),
    {"stack", "N", "record only the N innermost frames of each stack", take_number, &stack, 1, 1 << 20},
    {"min-free", "MIB", "stop recording when the disk has less free; 0: never", take_number, &min_free, 0, 1 << 20},
    OPTION_TIMEOUT,
    {0},
};
static const struct cli_option other_options[] = {OPTION_TIMEOUT, {0}};

static const char needed[] = "the pid of a program";

const struct command command_start = {
    .name = "start",
    .purpose = "make a running program trace itself",
    .arguments = "PID",
    .needs = needed,
    .help =
        "Makes a running program record its side exits from now on. The program must be yours, or\n"
        "you root; of one in a container, PID is the number out here. It must run under a patched\n"
        "Ruby with a JIT on, and have been started with RUBY_VM_TRACE_CONTROL set to a folder (or\n"
        "to the path of a socket, with %p for the pid). Prints the path of the trace.\n",
    .options = start_options,
    .run = run_start,
};

const struct command command_stop = {
    .name = "stop",
    .purpose = "end the trace of a running program",
    .arguments = "PID",
    .needs = needed,
    .help =
        "Ends the trace that start, or the program itself, began. Prints what the trace holds.\n",
    .options = other_options,
    .run = run_stop,
};

const struct command command_status = {
    .name = "status",
    .purpose = "show whether a running program is traced",
    .arguments = "PID",
    .needs = needed,
    .help =
        "Prints whether the program is traced, and what it has recorded so far.\n",
    .options = other_options,
    .run = run_status,
};

const struct command command_save = {
    .name = "save",
    .purpose = "write a trace of what a running program has in memory",
    .arguments = "PID [PATH]",
    .needs = needed,
    .help =
        "Writes a trace of what a program has recorded into memory (start --memory, or a flag such\n"
        "as --zjit-trace-memory), even while the program hangs, and prints what the trace holds.\n"
        "PATH is a file as the program sees it; %p is its pid, %t the time, %n the number of the\n"
        "saved trace (default /tmp/perfetto-PID-N.fxt). The program goes on recording.\n",
    .options = other_options,
    .run = run_save,
};
