#ifndef COMMAND_H
#define COMMAND_H
/* command.h - a command of the tool: its help, its options, and the function that runs it. Each
 * command has a file in commands/, and an entry in the list of main.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "cli/options.h"
#include "fxt/read_files.h"

struct command {
    const char *name;
    const char *purpose;   /* a few words for the list of commands */
    const char *arguments; /* for the usage line */
    const char *help;
    const char *needs;     /* the name of its arguments; NULL: files to read */
    bool may_lack_arguments;
    bool stops_at_argument; /* what follows the first argument is not an option: it is a command of its own */
    bool folders;          /* an argument that is a folder stands for the traces in it */
    const struct cli_option *options; /* ends with an empty option */
    /* Gets the arguments after the options: at least one, unless may_lack_arguments. Prints its
     * own errors, and returns the exit status. */
    enum status (*run)(const struct options *options, int argument_count, char **arguments);
};

extern const struct command command_check;
extern const struct command command_report;
extern const struct command command_info;
extern const struct command command_dump;
extern const struct command command_query;
extern const struct command command_diff;
extern const struct command command_export;
extern const struct command command_html;
extern const struct command command_open;
extern const struct command command_merge;
extern const struct command command_cut;
extern const struct command command_scrub;
extern const struct command command_history;
extern const struct command command_explain;
extern const struct command command_annotate;
extern const struct command command_record;
extern const struct command command_top;
extern const struct command command_metrics;
extern const struct command command_start;
extern const struct command command_stop;
extern const struct command command_status;
extern const struct command command_save;

#endif
