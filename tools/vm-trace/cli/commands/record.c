/* record.c - `vm-trace record`: runs a program traced, or traces one that runs, and shows what was recorded. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "page/page_data.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/nearest.h"
#include "base/xalloc.h"
#include "cli/browser.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/control.h"
#include "cli/folders.h"
#include "cli/live_line.h"
#include "cli/page_file.h"
#include "cli/process.h"
#include "cli/program_window.h"
#include "cli/ruby_of.h"
#include "cli/trace_folder.h"
#include "report/report_tables.h"
#include "source/annotated_source.h"

static const char default_streams[] = "profile";

static const char *out_path, *pid_text, *streams = default_streams;
static uint64_t every, max_files;
static int64_t delay_ns, duration_ns;
static bool open_page, quiet;

enum { TICK_MS = 250, EDGE_MS = 20, CANNOT_RUN = 126, NOT_FOUND = 127 };

static struct trace_folder folder;

/* --- what was recorded --------------------------------------------------------------------------------- */

/* Which process each file is of. */
static void
write_index(struct document *document)
{
    char *path = xformat("%s/" FOLDER_INDEX, folder.path);
    FILE *index = fopen(path, "wx");
    if (index != NULL) {
        document_print(index, document, FORMAT_CSV, "processes");
        fclose(index);
    }
    else {
        file_message(path, strerror(errno));
    }
    free(path);
}

static bool
any_jit(const struct report *report)
{
    for (uint32_t i = 0; i < report->setting_count; i++) {
        const struct report_setting *setting = &report->settings[i];
        if (setting->name != STRING_JIT) continue;
        if (strcmp(pool_string(report->pool, setting->value).ptr, "none") != 0) return true;
    }
    return false;
}

/* Standard output is the program's. Through a stream of its own, because stderr has no buffer. */
static void
print_report(struct report *report, const struct document *head, time_t traced, uint64_t top)
{
    FILE *out = fdopen(dup(STDERR_FILENO), "w");
    if (out == NULL) return;
    report_first_print(out, report, head, folder.name, traced, top);
    fclose(out);
}

/* Returns whether there is a report: no trace may be readable. */
static bool
print_first(const struct options *options, int count, char **traces)
{
    const struct trace_choice all = TRACE_CHOICE_ALL;
    struct report *report = report_new(options->memory_bytes, &all);
    struct endpoints endpoints;
    enum { FAULTS = 3 };
    endpoints_init(&endpoints, report->pool);
    report->endpoints = &endpoints;
    report_read_all(report, FAULTS, count, traces);
    report_read_requests(report, options->memory_bytes, count, traces);
    bool readable = report_readable(report);
    if (readable) {
        struct document document = {0};
        document_partial(&document, reader_parts(report->reader));
        report_head(report, &document);
        if (!quiet) print_report(report, &document, traces_written(count, traces), options->top);
        write_index(&document);
        if (!quiet && !any_jit(report))
            fputs("\nNo JIT was on, so there are no exits: ruby --yjit or --zjit turns one on.\n", stderr);
        document_free(&document);
    }
    report_free(report);
    endpoints_free(&endpoints);
    return readable;
}

static void
show_page(const struct options *options, int count, char **traces)
{
    char *path = xformat("%s/" FOLDER_PAGE, folder.path);
    const struct page_options page = {.out_path = path, .max_calls = PAGE_CALLS_SHOWN, .choice = TRACE_CHOICE_ALL};
    if (page_file_write(&page, options, count, traces) < STATUS_USAGE) {
        message("the page is %s", path);
        pid_t pid = browser_start(path);
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    free(path);
}

static void
say_how_to_go_on(int count)
{
    int kept_count;
    uint64_t bytes;
    char size[NUMBER_TEXT];
    trace_folder_size(&folder, &kept_count, &bytes);
    fprintf(stderr, "\nvm-trace: %d trace%s, %s, in ", count, count == 1 ? "" : "s", bytes_text(size, bytes));
    print_escaped(stderr, text_of(folder.name));
    if (folder.removed > 0) fprintf(stderr, "; %" PRIu32 " older ones are removed (--max-files)", folder.removed);
    fputs("\n", stderr);
    const char *const next[][2] = {
        {"vm-trace report --all ", "   all tables; --advice says what to do"},
        {"vm-trace html -o trace.html ", "   timeline and flame graphs in one page"},
    };
    for (unsigned i = 0; i < sizeof next / sizeof next[0]; i++) {
        fprintf(stderr, "  %s", next[i][0]);
        print_escaped(stderr, text_of(folder.name));
        fprintf(stderr, "%s\n", next[i][1]);
    }
    fputs("  vm-trace open TRACE shows one in https://ui.perfetto.dev\n", stderr);
}

/* Shows what is in the folder. Returns whether there is a trace. */
static bool
show(const struct options *options)
{
    char **traces;
    if (max_files > 0) trace_folder_prune(&folder, max_files);
    int count = folder_traces(folder.path, &traces);
    bool any = count > 0 && print_first(options, count, traces);
    if (any && !quiet) say_how_to_go_on(count);
    if (any && open_page) show_page(options, count, traces);
    if (count >= 0) folder_traces_free(traces, count);
    return any;
}

/* --- while it runs ---------------------------------------------------------------------------------------- */

static void
show_progress(int64_t begin_ns)
{
    int count;
    uint64_t bytes;
    char text[160], size[NUMBER_TEXT];
    trace_folder_size(&folder, &count, &bytes);
    int64_t s = (clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1000000000;
    snprintf(text, sizeof text, "vm-trace: recording for %" PRId64 ":%02" PRId64 ", %d process%s, %s", s / 60, s % 60,
             count, count == 1 ? "" : "es", bytes_text(size, bytes));
    live_line_show(text);
}

static volatile sig_atomic_t interrupted;

static void
interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* Signals that end a recording, not the tool; those that are ignored stay so. */
static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof ending_signals[0] };
static struct sigaction actions_before[ENDING_SIGNALS];

static void
catch_signals(void)
{
    const struct sigaction on_interrupt = {.sa_handler = interrupt};
    for (unsigned i = 0; i < ENDING_SIGNALS; i++) {
        sigaction(ending_signals[i], NULL, &actions_before[i]);
        if (actions_before[i].sa_handler != SIG_IGN) sigaction(ending_signals[i], &on_interrupt, NULL);
    }
}

static void
signals_as_before(void)
{
    for (unsigned i = 0; i < ENDING_SIGNALS; i++) sigaction(ending_signals[i], &actions_before[i], NULL);
}

/* For the rest of the process. */
static const char *
streams_wanted(void)
{
    return every == 0 ? streams : xformat("%s,exits:rate=%" PRIu64, streams, every);
}

/* --- a program that it starts ----------------------------------------------------------------------------- */

/* What is no Ruby may start some; that is not known here. */
static enum status
check_ruby(const char *command)
{
    char *ruby = ruby_of(command), why[1024];
    struct ruby_version version = {.traced = true};
    bool known = ruby != NULL && ruby_ask(ruby, &version);
    enum status status = version.traced ? STATUS_FINE : STATUS_CANNOT_READ;
    if (known && version.traced && !ruby_takes_streams(ruby, streams_wanted(), why, sizeof why)) {
        message("record: %s", why);
        status = STATUS_USAGE;
    }
    if (known && !version.traced) {
        message("record: %s (%s) has no tracer: `make` in a clone of vm_trace builds a Ruby that has one, to be named"
                " here instead", ruby, version.description);
    }
    if (known && status == STATUS_FINE && !quiet) message("recording %s to %s", version.description, folder.name);
    free(ruby);
    return status;
}

static void
say_no_trace(const char *command, int status)
{
    if (WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0)) return; /* it has said why */
    message("record: %s%s ran no Ruby that has the tracer (`ruby -e 'p RubyVM::Trace'` tells), or its options name"
            " another file for the trace", command,
            delay_ns > 0 ? " ended before the trace began (--delay), or" : "");
}

/* A launcher may end before the programs that it has started, and before --delay or --duration have passed. Whoever
 * ends it by a signal does not want to wait. */
static void
wait_for_others(struct program_window *window, int64_t begin_ns, int status)
{
    catch_signals();
    bool goes_on = !WIFSIGNALED(status) && program_window_goes_on(window);
    if (goes_on && !quiet) fputs("vm-trace: the command has ended; what it started is recorded until Ctrl-C at the"
                                 " latest\n", stderr);
    for (unsigned i = 0; goes_on && !interrupted; i++) {
        const struct timespec tick = {.tv_nsec = EDGE_MS * 1000000L};
        nanosleep(&tick, NULL);
        program_window_tick(window);
        if (i % (TICK_MS / EDGE_MS) != 0) continue;
        if (max_files > 0) trace_folder_prune(&folder, max_files);
        show_progress(begin_ns);
        goes_on = program_window_goes_on(window);
    }
    program_window_end(window);
    signals_as_before();
}

static enum status
run_program(const struct options *options, char **arguments)
{
    struct program_window window;
    if (!trace_folder_make(&folder, out_path)) return STATUS_CANNOT_READ;
    enum status status_of_ruby = check_ruby(arguments[0]);
    if (status_of_ruby == STATUS_FINE &&
        !program_window_open(&window, &folder, streams_wanted(), delay_ns, duration_ns))
        status_of_ruby = STATUS_CANNOT_READ;
    if (status_of_ruby != STATUS_FINE) {
        trace_folder_discard(&folder);
        return status_of_ruby;
    }
    if (!quiet) live_line_begin();
    int64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    pid_t pid = child_start(arguments);
    int error = errno, status;
    if (pid < 0) {
        live_line_end();
        message("record: %s cannot be run: %s", arguments[0], strerror(error));
        program_window_close(&window);
        trace_folder_discard(&folder);
        exit(error == ENOENT ? NOT_FOUND : CANNOT_RUN);
    }
    while (!child_wait(pid, program_window_timed_p(&window) ? EDGE_MS : TICK_MS, &status)) {
        program_window_tick(&window);
        if (max_files > 0) trace_folder_prune(&folder, max_files);
        show_progress(begin_ns);
    }
    wait_for_others(&window, begin_ns, status);
    live_line_end();
    program_window_close(&window);
    if (!show(options)) {
        say_no_trace(arguments[0], status);
        trace_folder_discard(&folder);
    }
    child_pass_on(status);
}

/* --- a program that runs ---------------------------------------------------------------------------------- */

static enum status
request(const char *word, const char *pattern)
{
    struct control_request request = {.bytes = 0};
    control_word(&request, word);
    if (pattern != NULL) {
        control_pair(&request, "streams", streams_wanted());
        control_pair(&request, "file", pattern);
    }
    return control_send(&request, pid_text, CONTROL_TIMEOUT_S, NULL);
}

/* Waits so long, until it is interrupted, or until the program ends. */
static void
wait_for(int64_t wait_ns, bool recording)
{
    int64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    pid_t pid = (pid_t)strtol(pid_text, NULL, 10);
    while (!interrupted && (wait_ns == 0 || clock_ns(CLOCK_MONOTONIC) - begin_ns < wait_ns) &&
           (kill(pid, 0) == 0 || errno == EPERM)) {
        const struct timespec tick = {.tv_nsec = EDGE_MS * 1000000L};
        nanosleep(&tick, NULL);
        if (recording) show_progress(begin_ns);
    }
}

static enum status
run_attached(const struct options *options)
{
    if (!process_pid_p(pid_text)) {
        fputs("vm-trace: record: --pid takes a process id\n", stderr);
        return STATUS_USAGE;
    }
    char root[PROCESS_ROOT_BYTES];
    process_root(pid_text, root);
    if (root[0] != '\0') {
        message("record: process %s has other files than we (a container); vm-trace start %s --file=/tmp/%%p.fxt records, "
                "vm-trace stop %s ends it, and the trace is below %s/tmp", pid_text, pid_text, pid_text, root);
        return STATUS_CANNOT_READ;
    }
    if (!trace_folder_make(&folder, out_path)) return STATUS_CANNOT_READ;
    process_give(pid_text, folder.path);
    catch_signals();
    if (delay_ns > 0) wait_for(delay_ns, false);
    char *pattern = trace_folder_pattern(&folder);
    enum status status = interrupted ? STATUS_FINE : request("start", pattern);
    free(pattern);
    if (interrupted || status != STATUS_FINE) {
        trace_folder_discard(&folder);
        return status;
    }
    if (!quiet && duration_ns == 0) fprintf(stderr, "vm-trace: recording process %s until Ctrl-C\n", pid_text);
    if (!quiet) live_line_begin();
    wait_for(duration_ns, true);
    live_line_end();
    if (kill((pid_t)strtol(pid_text, NULL, 10), 0) == 0) status = request("stop", NULL);
    signals_as_before();
    return show(options) ? status : worse(status, STATUS_CANNOT_READ);
}

static enum status
run(const struct options *options, int count, char **arguments)
{
    if ((pid_text != NULL) == (count > 0)) {
        fputs("vm-trace: record takes a command, or --pid=PID; see vm-trace record --help\n", stderr);
        return STATUS_USAGE;
    }
    if (quiet && options_refused("top", "has no effect with --quiet")) return STATUS_USAGE;
    return pid_text != NULL ? run_attached(options) : run_program(options, arguments);
}

static const char *const stream_names[] = {
    "exits",       "fallbacks", "compiles", "invalidations", "markers", "threads", "fibers", "gc",
    "allocations", "states",    "calls",    "syscalls",      "sched",   "samples", "counters",
    "default",     "profile",   "full", /* presets */
};
enum { STREAM_NAMES = sizeof stream_names / sizeof stream_names[0] };
static const char what_streams[] = "names of streams with commas between them";

/* A name that the Ruby would refuse, and then run the program without a trace. */
static bool
check_name(const struct cli_option *option, const char *name)
{
    struct nearest nearest = nearest_to(name);
    if (*name == '\0') return option_wrong(option, what_streams, streams);
    for (unsigned i = 0; i < STREAM_NAMES; i++) {
        if (strcmp(name, stream_names[i]) == 0) return true;
        nearest_try(&nearest, stream_names[i]);
    }
    fprintf(stderr, "vm-trace: --%s: there is no stream ", option->name);
    print_escaped(stderr, text_of(name));
    if (nearest.name != NULL) fprintf(stderr, "; did you mean %s?", nearest.name);
    else fputs("; streams and presets are:", stderr);
    for (unsigned i = 0; nearest.name == NULL && i < STREAM_NAMES; i++)
        fprintf(stderr, "%s %s", i > 0 ? "," : "", stream_names[i]);
    fputc('\n', stderr);
    return false;
}

static bool
take_streams(const struct cli_option *option, const char *text)
{
    bool known = true;
    streams = text;
    if (*text == '\0' || strpbrk(text, " \t\n\\") != NULL) return option_wrong(option, what_streams, text);
    for (const char *item = text; known; item++) {
        size_t bytes = strcspn(item, ",");
        char *name = xformat("%.*s", (int)strcspn(item, ",:"), item);
        /* What begins with a digit is one more option of the stream before. */
        known = (item > text && *name >= '0' && *name <= '9') || check_name(option, name);
        free(name);
        item += bytes;
        if (*item == '\0') break;
    }
    return known;
}

static const struct cli_option record_options[] = {
    CLI_OPTION("output", "FOLDER", "folder of the traces, one for each process (default: a new\n"
               "one here, named by the time)", take_text, &out_path),
    CLI_OPTION("vm-trace", "LIST", "what to record, as Ruby's option --vm-trace=LIST\n"
               "(default: profile)", take_streams, NULL),
    {"every", "K", "record every K-th exit (default: as the list says, 97)", take_number, &every, 1, UINT32_MAX},
    CLI_OPTION("delay", "TIME", "begin so long after the program: seconds, or 500ms", take_time, &delay_ns),
    CLI_OPTION("duration", "TIME", "end the trace after so long; the program goes on", take_time, &duration_ns),
    CLI_OPTION("pid", "PID", "record a running program, until Ctrl-C or --duration", take_text, &pid_text),
    {"max-files", "N", "keep only the newest N traces of processes that have ended", take_number, &max_files, 1,
     UINT32_MAX},
    CLI_OPTION("open", NULL, "then write the HTML page and open it ($BROWSER, or xdg-open)", NULL, &open_page),
    CLI_OPTION("quiet", NULL, "print nothing but what is wrong", NULL, &quiet),
    {"top", "N", "causes that it shows at the end (default 5)", take_number, &common_options.top, 1, 1000000000},
    {0},
};

const struct command command_record = {
    .name = "record",
    .purpose = "run a program traced, and show what was recorded",
    .arguments = "[--] COMMAND [ARGUMENT]...",
    .needs = "a command to run, or --pid=PID",
    .may_lack_arguments = true,
    .stops_at_argument = true,
    .help =
        "Runs a command that is a patched Ruby, or that starts one (bundle exec, rake, a shell\n"
        "script), and records all Ruby processes that it starts: exits of compiled code (one in\n"
        "97), samples of time, states of threads, garbage collections and markers. Each process\n"
        "writes a trace of its own into one folder, with a table of them in index.csv. At the end\n"
        "it prints the top of the report on stderr. It turns no JIT on: for that, run ruby --yjit.\n"
        "\n"
        "The command has the terminal, and Ctrl-C ends it as it does without vm-trace. The exit\n"
        "status is the command's; 2 if there is no such stream, 3 if its Ruby cannot be traced, 126\n"
        "or 127 if it cannot be run.\n"
        "\n"
        "With --pid it records a program that was started with RUBY_VM_TRACE_CONTROL, as start and\n"
        "stop do.\n",
    .options = record_options,
    .run = run,
};
