/* explain.c - `vm-trace explain`: what a reason means, what usually causes it, and what helps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "topics/exits/advice.h"
#include "topics/exits/reason.h"
#include "report/report_chosen.h"
#include "base/escape.h"
#include "base/message.h"
#include "base/nearest.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "topics/exits/advice_table.h"
#include "render/document.h"

enum { TRACE_WIDTH = 36, STATS_WIDTH = 36, FALLBACK_WIDTH = 54 };

static enum document_format format = FORMAT_TEXT;
static const char *table_id;
static const char *method;

/* No flag takes the counter of a fallback, so it is not printed. */
static void
print_line(const char *trace, const char *stats, const char *counter, bool fallback)
{
    if (fallback) printf("%-*s  %s\n", FALLBACK_WIDTH, trace, stats);
    else printf("%-*s  %-*s  %s\n", TRACE_WIDTH, trace, STATS_WIDTH, stats, counter);
}

static void
print_zjit_names(bool fallbacks)
{
    struct reason_names names;
    const char *what = fallbacks ? "fallback of ZJIT, in traces" : "exit of ZJIT, in traces";
    print_line(what, "in --zjit-stats", "counter", fallbacks);
    for (size_t i = 0; reason_at(i, &names); i++) {
        if (names.fallback == fallbacks) print_line(names.trace, names.stats, names.counter, fallbacks);
    }
}

/* Names that are the same everywhere. */
static void
print_names(const char *title, const char *jit, enum advice_kind kind)
{
    puts(title);
    for (size_t i = 0; i < advice_count(); i++) {
        const struct advice *advice = advice_at(i);
        if (advice->kind != kind || (jit != NULL && strcmp(jit, advice->jit) != 0)) continue;
        for (unsigned name = 0; name < ADVICE_NAMES && advice->names[name] != NULL; name++) puts(advice->names[name]);
    }
}

static void
print_all(void)
{
    print_zjit_names(false);
    putchar('\n');
    print_zjit_names(true);
    putchar('\n');
    print_names("exit of YJIT, in traces and as a counter", "YJIT", ADVICE_EXIT);
    putchar('\n');
    print_names("why ZJIT could not compile a method", "ZJIT", ADVICE_COMPILE_ERROR);
    putchar('\n');
    print_names("outcome of a recompile exit", NULL, ADVICE_OUTCOME);
    putchar('\n');
    print_names("invalidation", NULL, ADVICE_INVALIDATION);
    puts("\nvm-trace explain NAME says what one of them means. report --reason takes any of these names,\n"
         "start --counter those of exits, and --zjit-trace-exits=COUNTER takes counters. * matches\n"
         "details that a trace adds.");
}

static enum status
print_unknown_reason(const char *name)
{
    struct nearest nearest = nearest_to(name);
    advice_nearest(&nearest);
    fputs("vm-trace: explain: there is no reason ", stderr);
    print_escaped(stderr, text_of(name));
    if (nearest.name != NULL) fprintf(stderr, "; did you mean %s?\n", nearest.name);
    else fputs("; vm-trace explain lists all\n", stderr);
    return STATUS_USAGE;
}

/* --- the reasons of a trace ------------------------------------------------------------------------- */

static bool
file_p(const char *name)
{
    struct stat found;
    return stat(name, &found) == 0 && S_ISREG(found.st_mode);
}

/* A place as messages name it, as a glob for labels: "app/a.rb:4" has a line, anything else is a method. */
static char *
glob_of_site(const char *site)
{
    const char *colon = strrchr(site, ':');
    bool line = colon != NULL && colon[1] != '\0' && strspn(colon + 1, "0123456789") == strlen(colon + 1);
    size_t size = strlen(site) + sizeof "*)";
    char *glob = xcalloc(size, 1);
    snprintf(glob, size, line ? "*%s)" : "%s", site);
    return glob;
}

/* Says of the reasons in a trace what they mean there. chosen: only these, or NULL. */
static enum status
explain_trace(const struct options *options, int file_count, char **files, const uint32_t *chosen, const char *site)
{
    char *method = site != NULL ? glob_of_site(site) : NULL;
    struct trace_choice filter = TRACE_CHOICE_ALL;
    filter.method = method;
    struct report *report = report_new(options->memory_bytes, &filter);
    enum status status = report_read_all(report, options->max_faults, file_count, files);
    if (report_readable(report)) {
        struct document document = {.title = text_of("Reasons in a trace")};
        document_partial(&document, reader_parts(report->reader));
        const struct table *table = advice_table_report(report, &document, UINT64_MAX, chosen);
        status = worse(status, report_check_chosen("explain", NULL, report));
        if (table->row_count == 0) message("explain: the trace has no such exits, fallbacks or invalidations");
        if (format == FORMAT_TEXT && table_id == NULL) {
            document_print_partial(stdout, &document, false);
            document_prose_text(stdout, table);
        }
        else if (!document_print(stdout, &document, format, table_id)) status = worse(status, STATUS_USAGE);
        document_free(&document);
    }
    report_free(report);
    free(method);
    return status;
}

/* --- all reasons -------------------------------------------------------------------------------------- */

static enum status
explain_reasons(uint32_t *chosen, bool all, bool any)
{
    enum status status = STATUS_FINE;
    struct document document = {.title = text_of("Reasons of JITs")};
    if (all) advice_choose(NULL, chosen);
    struct table *people = advice_table_chosen(&document, chosen);
    if (all && format == FORMAT_TEXT && table_id == NULL) print_all();
    else if (any && format == FORMAT_TEXT && table_id == NULL) document_prose_text(stdout, people);
    else if (any && !document_print(stdout, &document, format, table_id)) status = STATUS_USAGE;
    document_free(&document);
    return status;
}

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    enum status status = STATUS_FINE;
    uint32_t *chosen = xcalloc(advice_count(), sizeof *chosen);
    char **files = xcalloc((size_t)argument_count + 1, sizeof *files);
    const char *site = method;
    int file_count = 0;
    bool any = argument_count == 0, reasons = false;
    for (int i = 0; i < argument_count; i++) {
        if (file_p(arguments[i])) files[file_count++] = arguments[i];
    }
    for (int i = 0; i < argument_count; i++) {
        if (file_p(arguments[i])) continue;
        if (advice_choose(arguments[i], chosen)) reasons = any = true;
        else if (file_count > 0 && site == NULL) site = arguments[i];
        else status = worse(status, print_unknown_reason(arguments[i]));
    }
    if (file_count == 0 && method != NULL) {
        fputs("vm-trace: explain: --method is for a trace\n", stderr);
        status = worse(status, STATUS_USAGE);
    }
    else if (file_count == 0) status = worse(status, explain_reasons(chosen, argument_count == 0, any));
    else if (status == STATUS_FINE) status = explain_trace(options, file_count, files, reasons ? chosen : NULL, site);
    free(files);
    free(chosen);
    return worse(status, finish_output());
}

static const struct cli_option explain_options[] = {
    CLI_OPTION("method", "GLOB", "with a trace: only in these methods, as SITE", take_text, &method),
    OPTION_FORMAT(format, table_id),
    OPTION_MAX_FAULTS,
    OPTION_MEMORY,
    {0},
};

const struct command command_explain = {
    .name = "explain",
    .purpose = "say what a reason means, what causes it, and what helps",
    .folders = true,
    .arguments = "[FILE] [REASON | SITE]...",
    .needs = "the name of a reason",
    .may_lack_arguments = true,
    .help =
        "Says what a reason of an exit, a fallback, an invalidation or a compile error means, what\n"
        "usually causes it, and what helps; prints its names in the JIT's stats and as a counter\n"
        "(GuardLess in a trace is guard_less_failure in --zjit-stats and the counter\n"
        "exit_guard_less_failure), and a program that has it. REASON is one of the names, with or\n"
        "without what is in parentheses, in any case, or a glob; without it, all names are printed.\n"
        "With a trace, FILE: the reasons in it, or those of them that are named, the place that\n"
        "has most exits of each, and what helps there. If one place has at least 1,000 exits, half\n"
        "of all with the reason, and they go on in the last quarter of the trace, the warm-up is\n"
        "over: the advice is another one then. SITE is a method ('Foo#bar', or a glob) or a line\n"
        "(app/foo.rb:4): only its exits count.\n",
    .options = explain_options,
    .run = run,
};
