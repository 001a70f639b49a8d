/* main.c - the command line: selects the command, and prints help. Commands describe themselves
 * (cli/command.h). */
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/hash_index.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "cli/folders.h"

#ifndef VM_TRACE_VERSION /* the Makefile has it from configure.ac */
# define VM_TRACE_VERSION "(unknown version)"
#endif

/* In the order of --help. */
static const struct command *const commands[] = {
    &command_report,
    &command_history,
    &command_annotate,
    &command_info,
    &command_check,
    &command_dump,
    &command_query,
    &command_diff,
    &command_export,
    &command_metrics,
    &command_html,
    &command_open,
    &command_merge,
    &command_cut,
    &command_scrub,
    &command_explain,
    &command_record,
    &command_top,
    &command_start,
    &command_stop,
    &command_status,
    &command_save,
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static const char files[] = "\nFILE may be compressed with gzip or still being written; - is standard input.\n";
static const char folders[] = "A folder stands for the traces in it (*.fxt, *.fxt.gz, *.fxt.zst, *.fxt.NUMBER).\n";

static const char statuses[] =
    "Exit status: 0 success; 1 the trace has faults or is truncated (the tool used what it\n"
    "could read); 2 wrong usage or wrong SQL; 3 a file cannot be read or written, or a program\n"
    "cannot be reached; 4 a file is not a Fuchsia trace. Of several files the worst status\n"
    "counts. Of diff: 1 more growth than --fail-over allows; 5 a trace has faults or was\n"
    "skipped, whatever grew.\n";

static void
print_help(FILE *out)
{
    fputs("Usage: vm-trace COMMAND [OPTION]... FILE...\n\n"
          "Reads Fuchsia trace files (.fxt), in particular those of CRuby's JIT tracer, and makes\n"
          "a running program write them.\n\n"
          "Commands:\n", out);
    for (int i = 0; i < COMMAND_COUNT; i++) fprintf(out, "  %-9s  %s\n", commands[i]->name, commands[i]->purpose);
    fprintf(out, "%s%s", files, folders);
    fputs("vm-trace COMMAND --help has the details; vm-trace --version prints the version.\n\n", out);
    fputs(statuses, out);
}

static void
print_command_help(const struct command *command)
{
    printf("Usage: vm-trace %s [OPTION]... %s\n\n%s\n", command->name, command->arguments, command->help);
    options_print_help(command->name, command->options);
    printf("%s%s\n%s", command->needs ? "" : files, command->folders ? folders : "", statuses);
}

static const struct command *
find_command(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    }
    return NULL;
}

static enum status
print_unknown_command(const char *name)
{
    fputs("vm-trace: unknown command ", stderr);
    print_escaped(stderr, text_of(name));
    struct nearest nearest = nearest_to(name);
    for (int i = 0; i < COMMAND_COUNT; i++) nearest_try(&nearest, commands[i]->name);
    if (nearest.name != NULL) fprintf(stderr, "; did you mean %s?\n", nearest.name);
    else fputs("; vm-trace --help lists them\n", stderr);
    return STATUS_USAGE;
}

static enum status
run_command(const struct command *command, int argc, char **argv)
{
    int first = options_read(command->options, command->stops_at_argument, argc, argv);
    if (first == OPTIONS_HELP) {
        print_command_help(command);
        return finish_output();
    }
    if (first >= 0 && command->needs == NULL) argc = first + traces_of_arguments(argc - first, argv + first);
    bool lacks = first == argc && !command->may_lack_arguments;
    if (lacks)
        fprintf(stderr, "vm-trace: %s needs %s\n", command->name, command->needs ? command->needs : "a file to read");
    if (lacks || first == OPTIONS_WRONG) {
        fprintf(stderr, "vm-trace: see vm-trace %s --help\n", command->name);
        return STATUS_USAGE;
    }
    if (!command->folders) return command->run(&common_options, argc - first, argv + first);
    int count;
    char **arguments;
    if (!folders_expand(argc - first, argv + first, &count, &arguments)) return STATUS_CANNOT_READ;
    enum status status = command->run(&common_options, count, arguments);
    folder_traces_free(arguments, count);
    return status;
}

int
main(int argc, char **argv)
{
    hash_seed_init();
    if (argc < 2) {
        print_help(stderr);
        return STATUS_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        puts("vm-trace " VM_TRACE_VERSION);
        return finish_output();
    }
    bool help = strcmp(name, "help") == 0;
    if (help || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        const struct command *command = help && argc > 2 ? find_command(argv[2]) : NULL;
        if (help && argc > 2 && command == NULL) return print_unknown_command(argv[2]);
        if (command != NULL) print_command_help(command);
        else print_help(stdout);
        return finish_output();
    }
    const struct command *command = find_command(name);
    return command == NULL ? print_unknown_command(name) : run_command(command, argc - 1, argv + 1);
}
