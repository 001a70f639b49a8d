#ifndef OPTIONS_H
#define OPTIONS_H
/* options.h - options of the command line as tables, for parsing and for --help.
 *
 * A command lists its options in an array that ends with an empty one. `value` points to a variable
 * of the command's file, which holds the default, or to one of the common options below. The letters of
 * options are in a table of all commands (options.c): each has one meaning.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_option {
    const char *name;     /* --name */
    const char *argument; /* the name of its argument in --help; NULL: none, and `value` is a bool */
    const char *help;     /* one or more lines */
    /* Reads the argument. Prints a message and returns false if it is wrong. */
    bool (*take)(const struct cli_option *option, const char *text);
    void *value;
    uint64_t least, most; /* for take_number */
};

/* An option without bounds. */
#define CLI_OPTION(name, argument, help, take, value) {name, argument, help, take, value, 0, 0}

/* Options that most commands share. */
struct options {
    uint64_t top;        /* rows of a table */
    uint64_t max_faults; /* to show for each file */
    size_t memory_bytes; /* limit for names and tables */
};
extern struct options common_options;

enum { DEFAULT_TOP = 10, DEFAULT_MAX_FAULTS = 100, DEFAULT_MEMORY_MIB = 1024 };

#define OPTION_TOP \
    {"top", "N", "rows of each table (default 10)", take_number, &common_options.top, 1, 1000000000}
#define OPTION_MAX_FAULTS \
    {"max-faults", "N", "faults to show for each file (default 100); all are counted", take_number, \
     &common_options.max_faults, 0, UINT64_MAX}
#define OPTION_MEMORY \
    {"memory", "MIB", "memory limit for a trace's names and tables (default 1024)", take_mebibytes, \
     &common_options.memory_bytes, 1, SIZE_MAX >> 21}

/* -o OUT, into a const char *. */
#define OPTION_OUTPUT(variable, what) CLI_OPTION("output", "OUT", what, take_text, &(variable))

/* Two options for document_print: an enum document_format, and the id of a table (const char *,
 * NULL: all). */
#define OPTION_FORMAT(format, table)                                                                                   \
    CLI_OPTION("format", "FORMAT", "text (default), json, markdown or csv", take_format, &(format)),              \
        CLI_OPTION("table", "NAME", "only this table, by its name in JSON; as CSV with its own columns",          \
                   take_text, &(table))

/* Options for the members of a struct trace_choice (topics/choice.h). */
#define OPTIONS_TRACE_CHOICE(choice)                                                                                   \
    CLI_OPTION("since", "TIME",                                                                                   \
               "count only from this time on: seconds after the first\n"                                               \
               "event, or with a unit: 20ms, 300us, 5ns",                                                              \
               take_time, &(choice).since_ns),                                                                         \
        CLI_OPTION("until", "TIME", "count only before this time", take_time, &(choice).until_ns),                \
        CLI_OPTION("reason", "GLOB",                                                                              \
                   "only exits and fallbacks with these reasons: 'Guard*', or as in\n"                                 \
                   "the JIT's stats: guard_type_failure (see vm-trace explain)",                                       \
                   take_text, &(choice).reason),                                                                       \
        CLI_OPTION("method", "GLOB", "only exits, fallbacks, calls and allocations in these methods:\n"           \
                   "'Foo#*', '*app/models/*'", take_text, &(choice).method),                                           \
        CLI_OPTION("thread", "GLOB", "only this thread, by name or tid", take_text, &(choice).thread)

/* value: a uint64_t */
bool take_number(const struct cli_option *option, const char *text);
/* value: a size_t, in bytes */
bool take_mebibytes(const struct cli_option *option, const char *text);
/* value: a const char * */
bool take_text(const struct cli_option *option, const char *text);
/* value: an int64_t, in ns. The text is a number of seconds, or has a unit: 1.5, 20ms, 300us,
 * 5ns */
bool take_time(const struct cli_option *option, const char *text);
/* value: an enum document_format */
bool take_format(const struct cli_option *option, const char *text);
/* Prints that the option takes `what`, not `text`. Returns false. */
bool option_wrong(const struct cli_option *option, const char *what, const char *text);

/* Parses the options in argv, of which argv[0] is the command, also those behind other arguments, unless it is to stop
 * at the first of these. Returns the index of the first other argument; OPTIONS_HELP for --help, which every command
 * has; or OPTIONS_WRONG after printing a message. */
enum { OPTIONS_HELP = -1, OPTIONS_WRONG = -2 };
int options_read(const struct cli_option *options, bool stop_at_argument, int argc, char **argv);

/* Whether the option was given. */
bool option_given(const char *name);
/* If one of these options (names with blanks between them) was given, prints its name and `why` ("has no effect with
 * --quiet") and returns true. */
bool options_refused(const char *names, const char *why);

void options_print_help(const char *command, const struct cli_option *options);

#endif
