/* explain.c - `vm-trace explain`: what a reason means, what usually causes it, and what helps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/advice.h"
#include "analysis/reason.h"
#include "base/escape.h"
#include "base/nearest.h"
#include "base/xalloc.h"
#include "cli/command.h"
#include "render/advice_table.h"
#include "render/document.h"

enum { TRACE_WIDTH = 36, STATS_WIDTH = 36, FALLBACK_WIDTH = 54 };

static enum document_format format = FORMAT_TEXT;
static const char *table_id;

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

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    (void)options;
    enum status status = STATUS_FINE;
    bool any = argument_count == 0;
    uint32_t *chosen = xcalloc(advice_count(), sizeof *chosen);
    if (any) advice_choose(NULL, chosen);
    for (int i = 0; i < argument_count; i++) {
        if (advice_choose(arguments[i], chosen)) any = true;
        else status = worse(status, print_unknown_reason(arguments[i]));
    }
    struct document document = {.title = text_of("Reasons of JITs")};
    struct table *people = advice_table_chosen(&document, chosen);
    if (argument_count == 0 && format == FORMAT_TEXT && table_id == NULL) print_all();
    else if (any && format == FORMAT_TEXT && table_id == NULL) document_prose_text(stdout, people);
    else if (any && !document_print(stdout, &document, format, table_id)) status = worse(status, STATUS_USAGE);
    document_free(&document);
    free(chosen);
    return worse(status, finish_output());
}

static const struct cli_option explain_options[] = {
    OPTION_FORMAT(format, table_id),
    {0},
};

const struct command command_explain = {
    .name = "explain",
    .purpose = "say what a reason means, what causes it, and what helps",
    .arguments = "[REASON]...",
    .needs = "the name of a reason",
    .may_lack_arguments = true,
    .help =
        "Says what a reason of an exit, a fallback, an invalidation or a compile error means, what\n"
        "usually causes it, and what helps; prints its names in the JIT's stats and as a counter\n"
        "(GuardLess in a trace is guard_less_failure in --zjit-stats and the counter\n"
        "exit_guard_less_failure), and a program that has it. REASON is one of the names, with or\n"
        "without what is in parentheses, in any case, or a glob; without it, all names are printed.\n",
    .options = explain_options,
    .run = run,
};
