/* explain.c - `vm-trace explain`: what a reason is called elsewhere. */
#include <stdio.h>
#include <string.h>

#include "analysis/reason.h"
#include "base/escape.h"
#include "base/nearest.h"
#include "cli/command.h"

enum { TRACE_WIDTH = 36, STATS_WIDTH = 36, FALLBACK_WIDTH = 52 };

/* The name as people write it: of a glob, what stands before the parentheses will do. */
static bool
asked_for(const char *glob, const struct reason_names *names)
{
    return reason_matches(glob, text_of(names->trace));
}

/* No flag takes the counter of a fallback. */
static void
print_line(const char *trace, const char *stats, const char *counter, bool fallback)
{
    if (fallback) printf("%-*s  %s\n", FALLBACK_WIDTH, trace, stats);
    else printf("%-*s  %-*s  %s\n", TRACE_WIDTH, trace, STATS_WIDTH, stats, counter);
}

static bool
print_names(const char *glob, bool fallbacks)
{
    struct reason_names names;
    bool any = false;
    for (size_t i = 0; reason_at(i, &names); i++) {
        if (names.fallback != fallbacks || (glob != NULL && !asked_for(glob, &names))) continue;
        if (!any) print_line(fallbacks ? "fallback, in traces" : "exit, in traces", "in --zjit-stats", "counter", fallbacks);
        print_line(names.trace, names.stats, names.counter, fallbacks);
        any = true;
    }
    return any;
}

static enum status
print_unknown_reason(const char *name)
{
    struct nearest nearest = nearest_to(name);
    reason_nearest(&nearest);
    fputs("vm-trace: explain: ZJIT has no reason ", stderr);
    print_escaped(stderr, text_of(name));
    if (nearest.name != NULL) fprintf(stderr, "; did you mean %s?\n", nearest.name);
    else fputs("; vm-trace explain lists all\n", stderr);
    return STATUS_USAGE;
}

static void
print_all(void)
{
    print_names(NULL, false);
    putchar('\n');
    print_names(NULL, true);
    puts("\nreport --reason takes any of these, start --counter those of exits, --zjit-trace-exits=COUNTER\n"
         "counters; * stands for what the trace says more. YJIT's reasons are the names of its counters.");
}

static enum status
run(const struct options *options, int argument_count, char **arguments)
{
    (void)options;
    enum status status = STATUS_FINE;
    if (argument_count == 0) print_all();
    for (int i = 0; i < argument_count; i++) {
        bool exits = print_names(arguments[i], false), fallbacks = print_names(arguments[i], true);
        if (!exits && !fallbacks) status = worse(status, print_unknown_reason(arguments[i]));
    }
    return worse(status, finish_output());
}

static const struct cli_option explain_options[] = {{0}};

const struct command command_explain = {
    .name = "explain",
    .purpose = "list the names of a reason: in traces, in the JIT's stats, as a counter",
    .arguments = "[REASON]...",
    .needs = "the name of a reason",
    .may_lack_arguments = true,
    .help =
        "Prints the names of ZJIT's reasons: GuardLess in a trace is guard_less_failure in\n"
        "--zjit-stats and the counter exit_guard_less_failure. REASON is one of the names or a\n"
        "glob; without it, all reasons are printed.\n",
    .options = explain_options,
    .run = run,
};
