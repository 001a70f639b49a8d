/* main.c - the command line: which command, which options, which files. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "escape.h"

#ifndef VM_TRACE_VERSION
# define VM_TRACE_VERSION "0.1"
#endif

enum { DEFAULT_TOP = 10, DEFAULT_MAX_FAULTS = 100, DEFAULT_MEMORY_MIB = 1024 };

/* Options beyond --help, by the letter that getopt_long returns. */
enum { OPTION_HELP = 'h', OPTION_TOP = 'n', OPTION_MAX_FAULTS = 'm', OPTION_MEMORY = 'M' };

struct command {
    const char *name;
    const char *purpose;
    const char *options; /* letters that it takes */
    const char *help;
    enum status (*run)(const struct options *options, int file_count, char **files);
    const char *arguments;
};

static const struct command commands[] = {
    {"check", "say everything that is wrong with a trace", "mM",
     "Reads each trace from start to end and says every fault as\n"
     "`vm-trace: FILE: offset N: reason` on standard error. For a trace that was written\n"
     "by the tracer its event contract is checked as well. A trace without a fault gets one\n"
     "line on standard output: `FILE: ok: N records, N events, N chunks`. Warnings (what is\n"
     "legal but comes to nothing) do not change the exit status.\n",
     command_check, "FILE..."},
    {"summary", "count exits by reason and by frame, compilations, losses", "nmM",
     "Prints one screen for each trace: settings, time span, what was lost, exits by reason\n"
     "and by innermost frame, what recompile exits led to, fallbacks, exact counts for each\n"
     "exit's site, compilations, invalidations, threads. Where exits were sampled, counts are\n"
     "scaled by weight, and it says so.\n",
     command_summary, "FILE..."},
    {"dump", "print each event as one line of JSON", "mM",
     "Prints the events in the order of the file, one JSON object in a line, with the\n"
     "members ts (ns), dur, ph (i C B E X b n e s t f, as in Chrome's trace format), id, cat,\n"
     "name, pid, tid, thread, provider, offset, args. Bytes that are not UTF-8 become U+FFFD.\n",
     command_dump, "FILE..."},
    {"query", "run SQL over traces, with the tables of Perfetto", "mM",
     "Prints the rows of a query as comma-separated values. Tables and columns are Perfetto's:\n"
     "slice, args, thread, process, track, thread_track, counter, counter_track, flow, sched,\n"
     "thread_state, stats. Which method exits for which reason:\n"
     "  SELECT s.name AS reason, a.display_value AS method, COUNT(*) AS count\n"
     "  FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id AND a.key = '0'\n"
     "  GROUP BY s.name, a.display_value ORDER BY count DESC\n",
     command_query, "FILE... SQL"},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static const char statuses[] =
    "Exit status: 0 all is fine; 1 the trace has faults, or is cut: what could be read was\n"
    "used; 2 wrong usage or SQL; 3 a file cannot be opened or read, or the output not written;\n"
    "4 a file is not a Fuchsia trace. Of several files the worst counts.\n";

static void
print_option_help(const char *letters)
{
    puts("Options:");
    if (strchr(letters, OPTION_TOP)) printf("  -n, --top=N         rows of each table (default %d)\n", DEFAULT_TOP);
    if (strchr(letters, OPTION_MAX_FAULTS)) {
        printf("  -m, --max-faults=N  faults to show of each file (default %d); all are counted\n", DEFAULT_MAX_FAULTS);
    }
    if (strchr(letters, OPTION_MEMORY)) {
        printf("  -M, --memory=MIB    most memory for a trace's names and tables (default %d)\n", DEFAULT_MEMORY_MIB);
    }
    puts("  -h, --help          this text");
}

static void
print_help(FILE *out)
{
    fputs("Usage: vm-trace COMMAND [OPTION]... FILE...\n\n"
          "Reads Fuchsia trace files (.fxt), those of CRuby's JIT tracer above all.\n\n"
          "Commands:\n", out);
    for (int i = 0; i < COMMAND_COUNT; i++) fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].purpose);
    fputs("\nFILE may be - for standard input, and may still be being written.\n"
          "vm-trace COMMAND --help tells more; vm-trace --version prints the version.\n\n", out);
    fputs(statuses, out);
}

static void
print_command_help(const struct command *command)
{
    printf("Usage: vm-trace %s [OPTION]... %s\n\n%s\n", command->name, command->arguments, command->help);
    print_option_help(command->options);
    printf("\nFILE may be - for standard input, and may still be being written.\n\n%s", statuses);
}

/* How many letters must change to make b of a: for "did you mean". Names are short. */
static unsigned
distance(const char *a, const char *b)
{
    enum { MOST = 32 };
    unsigned row[MOST + 1];
    size_t a_len = strlen(a), b_len = strlen(b);
    if (a_len > MOST || b_len > MOST) return MOST;
    for (size_t j = 0; j <= b_len; j++) row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned changed = diagonal + (a[i - 1] != b[j - 1]);
            unsigned shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = changed < shorter ? changed : shorter;
        }
    }
    return row[b_len];
}

static const struct command *
find_command(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    }
    return NULL;
}

static enum status
unknown_command(const char *name)
{
    fputs("vm-trace: unknown command ", stderr);
    print_escaped(stderr, (struct fxt_string){.ptr = name, .len = (uint32_t)strlen(name)});
    const struct command *nearest = NULL;
    unsigned least = 3; /* further off it would be guessing */
    for (int i = 0; i < COMMAND_COUNT; i++) {
        unsigned off = distance(name, commands[i].name);
        if (off < least) least = off, nearest = &commands[i];
    }
    if (nearest != NULL) fprintf(stderr, "; did you mean %s?\n", nearest->name);
    else fputs("; vm-trace --help lists them\n", stderr);
    return STATUS_USAGE;
}

/* A whole number from least to most, digits only. */
static bool
parse_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *number_out)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && number >= least && number <= most) {
        *number_out = number;
        return true;
    }
    fprintf(stderr, "vm-trace: --%s takes a number from %llu to %llu, not ", option, (unsigned long long)least,
            (unsigned long long)most);
    print_escaped(stderr, (struct fxt_string){.ptr = text, .len = (uint32_t)strlen(text)});
    fputc('\n', stderr);
    return false;
}

static enum status
run_command(const struct command *command, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"help", no_argument, NULL, OPTION_HELP},
        {"top", required_argument, NULL, OPTION_TOP},
        {"max-faults", required_argument, NULL, OPTION_MAX_FAULTS},
        {"memory", required_argument, NULL, OPTION_MEMORY},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.top = DEFAULT_TOP, .max_faults = DEFAULT_MAX_FAULTS};
    uint64_t memory_mib = DEFAULT_MEMORY_MIB;
    argv[0] = (char *)"vm-trace"; /* getopt begins its messages with it */
    for (;;) {
        int letter = getopt_long(argc, argv, "hn:m:M:", long_options, NULL);
        if (letter == -1) break;
        if (letter != '?' && letter != OPTION_HELP && strchr(command->options, letter) == NULL) {
            fprintf(stderr, "vm-trace: %s takes no option -%c\n", command->name, letter);
            letter = '?';
        }
        bool good = true;
        switch (letter) {
          case OPTION_HELP:
            print_command_help(command);
            return finish_output();
          case OPTION_TOP: good = parse_number("top", optarg, 1, 1000000000, &options.top); break;
          case OPTION_MAX_FAULTS: good = parse_number("max-faults", optarg, 0, UINT64_MAX, &options.max_faults); break;
          case OPTION_MEMORY: good = parse_number("memory", optarg, 1, SIZE_MAX >> 21, &memory_mib); break;
          default: good = false; break;
        }
        if (!good) {
            fprintf(stderr, "vm-trace: see vm-trace %s --help\n", command->name);
            return STATUS_USAGE;
        }
    }
    if (optind == argc) {
        fprintf(stderr, "vm-trace: %s needs a file to read; see vm-trace %s --help\n", command->name, command->name);
        return STATUS_USAGE;
    }
    options.memory_bytes = (size_t)memory_mib << 20;
    return command->run(&options, argc - optind, argv + optind);
}

int
main(int argc, char **argv)
{
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
        if (help && argc > 2 && command == NULL) return unknown_command(argv[2]);
        if (command != NULL) print_command_help(command);
        else print_help(stdout);
        return finish_output();
    }
    const struct command *command = find_command(name);
    return command == NULL ? unknown_command(name) : run_command(command, argc - 1, argv + 1);
}
