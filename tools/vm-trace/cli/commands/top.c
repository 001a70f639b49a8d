/* top.c - `vm-trace top`: what a running program does, again and again. */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/portable.h"
#include "base/redirect.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "cli/folders.h"
#include "cli/live_source.h"
#include "cli/screen.h"
#include "render/display.h"
#include "report/report_live.h"

static int64_t window_ns = 5 * INT64_C(1000000000), interval_ns = INT64_C(1000000000);
static uint64_t count;
static bool by_count, alive;

enum { SEARCH_BYTES = 64, LEAST_ROWS = 3 };

/* What is shown, and how. */
static struct {
    struct live_source source;
    struct report *report; /* of the last refresh; NULL: there was nothing to read */
    double seconds;        /* that it covers */
    int64_t start_ns;      /* time 0 of the traces */
    int traces;
    char *problem;         /* what was wrong in the last refresh, one line; malloc'ed, or NULL */
    char search[SEARCH_BYTES];
    bool typing, paused;
} top;

/* --- reading ------------------------------------------------------------------------------------------------- */

/* Events of traces have the time of CLOCK_BOOTTIME. A filter's is from the first event on. */
static struct report *
read_window(const struct options *options, int trace_count, char **traces)
{
    const struct trace_choice filter = {
        .since_ns = top.start_ns == INT64_MIN ? INT64_MIN : clock_ns(CLOCK_BOOTTIME) - window_ns - top.start_ns,
        .until_ns = INT64_MAX};
    struct report *report = report_new(options->memory_bytes, &filter);
    report->alive_of_any_age = true;
    report_read_all(report, 0, trace_count, traces);
    return report;
}

/* The last line of messages, without the tool's name. malloc'ed, or NULL. */
static char *
last_message(char *messages)
{
    static const char PREFIX[] = "vm-trace: ";
    char *end = messages + strlen(messages);
    while (end > messages && end[-1] == '\n') *--end = '\0';
    char *line = strrchr(messages, '\n');
    line = line != NULL ? line + 1 : messages;
    if (strncmp(line, PREFIX, sizeof PREFIX - 1) == 0) line += sizeof PREFIX - 1;
    return *line != '\0' ? xformat("%s", line) : NULL;
}

static void
refresh(const struct options *options)
{
    char **traces;
    if (top.report != NULL) report_free(top.report);
    top.report = NULL;
    /* Messages would tear the screen. Faults of traces that are being written are none; why there is no trace is
     * shown. */
    struct redirected errors = redirect_errors();
    int trace_count = live_source_traces(&top.source, (double)window_ns / 1e9, &traces);
    for (int tries = 0; trace_count > 0 && tries < 2; tries++) {
        if (top.report != NULL) report_free(top.report);
        top.report = read_window(options, trace_count, traces);
        if (top.report->start_ns == top.start_ns) break;
        top.start_ns = top.report->start_ns; /* now it is known: read what is wanted */
    }
    char *messages = redirected_text(&errors);
    free(top.problem);
    top.problem = last_message(messages);
    free(messages);
    if (trace_count >= 0) folder_traces_free(traces, trace_count);
    top.traces = trace_count;
    int64_t covered_ns = clock_ns(CLOCK_BOOTTIME) - top.start_ns;
    top.seconds = (double)(covered_ns < window_ns ? covered_ns : window_ns) / 1e9;
}

/* --- showing ------------------------------------------------------------------------------------------------- */

/* malloc'ed. `each`: rows of a table. */
static char *
render_tables(const char *name, unsigned each, unsigned causes, bool methods)
{
    char seconds[64];
    snprintf(seconds, sizeof seconds, ": the last %.1f s", top.seconds);
    unsigned columns = display_columns(stdout), room = columns - (unsigned)strlen(seconds);
    char *fit = display_fit(name, room);
    struct document document = {.title = document_text(&document, "%s%s", fit, seconds)};
    const struct report_live live = {.seconds = top.seconds, .rows = each, .causes = causes, .methods = methods,
                                     .alive = alive, .by_count = by_count, .search = top.search};
    const struct fxt_parts *parts = reader_parts(top.report->reader);
    if (fxt_parts_stopped(parts)) document_partial(&document, parts); /* faults of traces being written are none */
    report_live(top.report, &document, &live);
    char *text;
    size_t bytes;
    FILE *out = xmemstream(&text, &bytes);
    document_print_text(out, &document);
    fclose(out);
    document_free(&document);
    free(fit);
    return text;
}

static int
lines_of(const char *text)
{
    int lines = 0;
    for (; (text = strchr(text, '\n')) != NULL; text++) lines++;
    return lines;
}

/* malloc'ed. `rows`: lines that there is room for. */
static char *
render(int rows)
{
    char name[256];
    escape_into(name, sizeof name, text_of(top.source.name));
    if (top.report == NULL || !report_readable(top.report)) {
        const char *state = top.traces < 0 ? "not recorded any more" : "nothing is recorded yet";
        return xformat("%s: %s%s%s\n", name, state, top.problem != NULL ? ": " : "",
                       top.problem != NULL ? top.problem : "");
    }
    /* Of a table: a blank line, its title, its columns. Small screens have fewer tables; causes name methods, too. */
    enum { LINES = 7, CAUSES = 3, AROUND = 3, CAUSES_LINES = 20, ALL_TABLES_LINES = 30 };
    unsigned causes = rows >= CAUSES_LINES && !alive ? CAUSES : 0;
    bool methods = causes == 0 || rows >= ALL_TABLES_LINES;
    int each = (rows - LINES - (causes > 0 ? AROUND + CAUSES : 0)) / (alive ? 1 : methods ? 3 : 2) - AROUND;
    if (each < LEAST_ROWS) each = LEAST_ROWS;
    char *text = render_tables(name, (unsigned)each, causes, methods);
    while (each > 1 && lines_of(text) >= rows) { /* in a narrow terminal the head has more lines */
        free(text);
        text = render_tables(name, (unsigned)--each, causes, methods);
    }
    return text;
}

static void
draw(void)
{
    int rows, columns;
    char width[16];
    screen_size(&rows, &columns);
    snprintf(width, sizeof width, "%d", columns);
    setenv("COLUMNS", width, 1);
    char *text = render(rows), *bottom;
    if (top.typing) bottom = xformat("/%s_   Enter: done   Esc: show all", top.search);
    else
        bottom = xformat("q: quit  s: sort  a: %s  /: search%s%s  space: %s", alive ? "time" : "alive",
                         top.search[0] != '\0' ? " " : "", top.search, top.paused ? "go on" : "pause");
    screen_draw(text, bottom);
    free(text);
    free(bottom);
}

/* Returns whether the key is part of the text to search for. */
static bool
type_key(int key)
{
    size_t bytes = strlen(top.search);
    if (!top.typing) return false;
    if (key == SCREEN_ENTER) top.typing = false;
    else if (key == SCREEN_ESCAPE) top.typing = false, top.search[0] = '\0';
    else if (key == SCREEN_BACKSPACE) top.search[bytes > 0 ? bytes - 1 : 0] = '\0';
    else if (key >= ' ' && bytes + 1 < SEARCH_BYTES) top.search[bytes] = (char)key, top.search[bytes + 1] = '\0';
    return true;
}

/* Returns whether to go on. */
static bool
take_key(int key)
{
    if (key == SCREEN_CLOSED) return false;
    if (key == SCREEN_RESIZED || type_key(key)) return true;
    switch (tolower(key)) {
      case 'q': return false;
      case 's': by_count = !by_count; break;
      case 'a': alive = !alive; break;
      case '/': top.typing = true; break;
      case ' ': top.paused = !top.paused; break;
      case SCREEN_ESCAPE: top.search[0] = '\0'; break;
      default: break;
    }
    return true;
}

/* Takes keys until it is time for the next refresh. Returns whether to go on. */
static bool
take_keys(int64_t until_ns)
{
    for (;;) {
        int64_t left_ns = until_ns - clock_ns(CLOCK_MONOTONIC);
        if (left_ns <= 0 && !top.paused) return true;
        int key = screen_key(top.paused ? 1000 : (int)(left_ns / 1000000) + 1);
        if (key == 0) continue;
        if (!take_key(key)) return false;
        draw();
    }
}

/* Reading takes at most a fifth of the time, whatever the size of the traces. */
static int64_t
next_refresh_ns(int64_t begin_ns)
{
    enum { SHARE = 5 };
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC), took_ns = now_ns - begin_ns;
    int64_t pause_ns = (SHARE - 1) * took_ns;
    return pause_ns + took_ns > interval_ns ? now_ns + pause_ns : begin_ns + interval_ns;
}

static void
show_on_screen(const struct options *options)
{
    bool going_on = true;
    for (uint64_t shown = 0; going_on && live_source_runs(&top.source) && (count == 0 || shown < count); shown++) {
        int64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
        refresh(options);
        draw();
        going_on = take_keys(next_refresh_ns(begin_ns));
    }
    screen_end();
}

static volatile sig_atomic_t interrupted;

static void
interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* Into a file or a pipe: one after the other. */
static void
print_all(const struct options *options)
{
    enum { BATCH_ROWS = 60 };
    const struct sigaction on_interrupt = {.sa_handler = interrupt};
    sigaction(SIGINT, &on_interrupt, NULL);
    sigaction(SIGTERM, &on_interrupt, NULL);
    sigaction(SIGPIPE, &on_interrupt, NULL);
    for (uint64_t shown = 0; live_source_runs(&top.source) && (count == 0 || shown < count) && !interrupted; shown++) {
        int64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
        refresh(options);
        char *text = render(BATCH_ROWS);
        printf("%s%s", shown > 0 ? "\n" : "", text);
        fflush(stdout);
        free(text);
        if (ferror(stdout) || shown + 1 == count) break;
        int64_t left_ns = next_refresh_ns(begin_ns) - clock_ns(CLOCK_MONOTONIC);
        const struct timespec pause = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        if (left_ns > 0 && !interrupted) nanosleep(&pause, NULL);
    }
}

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    if (argument_count > 1) {
        fputs("vm-trace: top takes one process id, folder or file\n", stderr);
        return STATUS_USAGE;
    }
    top.start_ns = INT64_MIN;
    if (!live_source_open(&top.source, arguments[0], true)) return STATUS_CANNOT_READ;
    if (top.source.started) { /* nothing is recorded yet */
        const struct timespec pause = {.tv_nsec = 500 * 1000000L};
        nanosleep(&pause, NULL);
    }
    if (screen_begin()) show_on_screen(options);
    else print_all(options);
    if (!live_source_runs(&top.source)) message("process %s has ended", arguments[0]);
    if (top.report != NULL) report_free(top.report);
    free(top.problem);
    live_source_close(&top.source);
    return finish_output();
}

static const struct cli_option top_options[] = {
    CLI_OPTION("window", "TIME", "show what was in so many last seconds (default 5)", take_time, &window_ns),
    CLI_OPTION("interval", "TIME", "read the traces again after so long (default 1), or later, so that\n"
               "reading takes a fifth of the time at most", take_time, &interval_ns),
    CLI_OPTION("alive", NULL, "sampled objects that are alive, in place of the other tables (key a)", NULL, &alive),
    CLI_OPTION("by-count", NULL, "sort exits by their number, not by lost time (key s)", NULL, &by_count),
    {"count", "N", "end after so many times (default: never)", take_number, &count, 1, UINT64_MAX},
    OPTION_MEMORY,
    {0},
};

const struct command command_top = {
    .name = "top",
    .purpose = "show what running programs do, live",
    .arguments = "PID | FOLDER | FILE",
    .needs = "a process id, a folder or a file",
    .help =
        "Shows, again and again, what a program did in the last seconds: what to change first, as\n"
        "in vm-trace report; exits per second by reason and place, and the time that they lost;\n"
        "what threads ran, waited for or were blocked in; garbage collections, compilations; and,\n"
        "with 30 lines or more, the methods that ran, by samples.\n"
        "\n"
        "PID is a traced program: one that writes a trace, or records into memory. One that does\n"
        "neither records into 16 MiB of memory meanwhile; for that, and for memory, it\n"
        "must have been started with RUBY_VM_TRACE_CONTROL set (see vm-trace start). FOLDER has the\n"
        "traces of several processes, as vm-trace record writes them.\n"
        "\n"
        "Keys: q quits; a shows which objects are alive, by class and method; s sorts exits by\n"
        "lost time or by number; / searches for a text, which rows must have (Esc: all); space\n"
        "stops and goes on. Without a terminal it prints one table after the other; --count=1\n"
        "prints one.\n",
    .options = top_options,
    .run = run,
};
