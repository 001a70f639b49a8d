#ifndef TRACE_FILTER_H
#define TRACE_FILTER_H
/* trace_filter.h - the options that choose what of a trace counts, and what to say when that is nothing. */
#include "analysis/report_data.h"
#include "base/status.h"
#include "cli/options.h"

/* Options for the members of a struct report_filter. */
#define OPTIONS_TRACE_FILTER(filter)                                                                                   \
    CLI_OPTION("since", "TIME",                                                                                   \
               "count only from this time on: seconds after the first\n"                                               \
               "event, or with a unit: 20ms, 300us, 5ns",                                                              \
               take_time, &(filter).since_ns),                                                                         \
        CLI_OPTION("until", "TIME", "count only before this time", take_time, &(filter).until_ns),                \
        CLI_OPTION("reason", "GLOB",                                                                              \
                   "only exits and fallbacks with these reasons: 'Guard*', or as in\n"                                 \
                   "the JIT's stats: guard_type_failure (see vm-trace explain)",                                       \
                   take_text, &(filter).reason),                                                                       \
        CLI_OPTION("method", "GLOB", "only those in these methods: 'Foo#*', '*app/models/*'", take_text,          \
                   &(filter).method),                                                                                  \
        CLI_OPTION("thread", "GLOB", "only this thread, by name or tid", take_text, &(filter).thread)

/* Whether a window of time has any; before anything is read. Prints a message if not. */
bool trace_filter_window(const char *command, int64_t since_ns, int64_t until_ns);
/* After all is read and shown: prints a message for the first option that nothing in the trace matches, with what
 * there is. STATUS_USAGE if it must be misspelled; a known reason just has no events. */
enum status trace_filter_check(const char *command, struct report *report);

#endif
