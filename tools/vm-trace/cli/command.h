#ifndef COMMAND_H
#define COMMAND_H
/* command.h - the commands, each defined in a file of its own, and what they share. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "cli/options.h"
#include "fxt/read_files.h"

struct command {
    const char *name;
    const char *purpose;   /* a few words, for the list of commands */
    const char *arguments; /* as the line of usage shows them */
    const char *help;
    const char *needs;     /* what the arguments are; NULL: files to read */
    bool may_lack_arguments;
    const struct cli_option *options; /* ends with an empty one */
    /*
     * The arguments after the options: one at least, unless it may lack them. Returns the exit
     * status, and says its own errors.
     */
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
extern const struct command command_merge;
extern const struct command command_cut;
extern const struct command command_history;
extern const struct command command_explain;
extern const struct command command_start;
extern const struct command command_stop;
extern const struct command command_status;
extern const struct command command_save;

#endif
