/* options.c - see options.h */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "cli/options.h"
#include "render/document.h"

enum { OPTIONS_MAX = 32, FIRST_CODE = 256 }; /* codes above all letters */

struct options common_options = {
    .top = DEFAULT_TOP,
    .max_faults = DEFAULT_MAX_FAULTS,
    .memory_bytes = (size_t)DEFAULT_MEMORY_MIB << 20,
};

bool
option_wrong(const struct cli_option *option, const char *what, const char *text)
{
    message("--%s takes %s, not %s", option->name, what, text);
    return false;
}

/* Reads an unsigned number, digits only. */
static bool
read_number(const struct cli_option *option, const char *text, uint64_t *number_out)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && number >= option->least &&
        number <= option->most) {
        *number_out = number;
        return true;
    }
    char what[80];
    snprintf(what, sizeof what, "a number from %llu to %llu", (unsigned long long)option->least,
             (unsigned long long)option->most);
    return option_wrong(option, what, text);
}

bool
take_number(const struct cli_option *option, const char *text)
{
    return read_number(option, text, option->value);
}

bool
take_mebibytes(const struct cli_option *option, const char *text)
{
    uint64_t mebibytes;
    if (!read_number(option, text, &mebibytes)) return false;
    *(size_t *)option->value = (size_t)mebibytes << 20;
    return true;
}

bool
take_text(const struct cli_option *option, const char *text)
{
    *(const char **)option->value = text;
    return true;
}

bool
take_time(const struct cli_option *option, const char *text)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    char *end;
    double number = strtod(text, &end);
    bool plain = text + strspn(text, "0123456789.") == end; /* excludes signs, exponents and "inf" */
    for (unsigned i = 0; plain && end > text && i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) != 0) continue;
        double ns = number * units[i].ns;
        if (ns > 9e18) break;
        *(int64_t *)option->value = (int64_t)(ns + 0.5);
        return true;
    }
    return option_wrong(option, "a time such as 1.5, 20ms or 300us", text);
}

bool
take_format(const struct cli_option *option, const char *text)
{
    static const char *const names[] = {
        [FORMAT_TEXT] = "text", [FORMAT_JSON] = "json", [FORMAT_MARKDOWN] = "markdown", [FORMAT_CSV] = "csv"};
    for (int i = FORMAT_TEXT; i <= FORMAT_CSV; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *(enum document_format *)option->value = (enum document_format)i;
        return true;
    }
    return option_wrong(option, "text, json, markdown or csv", text);
}

/* Names of options of the command, each once. */
static const char *given[OPTIONS_MAX + 1];

bool
option_given(const char *name)
{
    for (unsigned i = 0; given[i] != NULL; i++) {
        if (strcmp(given[i], name) == 0) return true;
    }
    return false;
}

bool
options_refused(const char *names, const char *why)
{
    for (unsigned i = 0; given[i] != NULL; i++) {
        size_t bytes = strlen(given[i]);
        for (const char *name = names; (name = strstr(name, given[i])) != NULL; name += bytes) {
            if ((name > names && name[-1] != ' ') || (name[bytes] != ' ' && name[bytes] != '\0')) continue;
            message("--%s %s", given[i], why);
            return true;
        }
    }
    return false;
}

static void
note_given(const char *name)
{
    unsigned i = 0;
    while (given[i] != NULL && given[i] != name) i++; /* a command has fewer than OPTIONS_MAX */
    given[i] = name;
}

/* --- letters ------------------------------------------------------------------------------------------ */

/* One meaning for each, in all commands. -h is --help. */
static const struct {
    char letter;
    const char *name;
} letters[] = {
    {'C', "context"}, {'D', "delay"},    {'M', "memory"}, {'N', "normalize"}, {'O', "open"},   {'S', "sources"},
    {'T', "table"},   {'a', "advice"},   {'c', "calls"},  {'d', "duration"},  {'e', "method"}, {'f', "format"},
    {'i', "interval"}, {'k', "kind"},    {'l', "labels"}, {'m', "max-faults"}, {'n', "top"},   {'o', "output"},
    {'p', "pid"},     {'q', "quiet"},    {'r', "reason"}, {'s', "since"},     {'t', "thread"}, {'u', "until"},
    {'w', "weight"},  {'y', "syscalls"}, {'z', "compress"},
};
enum { LETTERS = sizeof letters / sizeof letters[0] };

/* What letters meant in single commands before. They are accepted, with a warning. */
static const struct {
    const char *command;
    char letter;
    const char *name;
} old_letters[] = {
    {"html", 'a', "against"},       {"html", 'c', "max-calls"},   {"query", 'F', "format"},  {"query", 'f', "file"},
    {"record", 'k', "every"},       {"record", 'm', "max-files"}, {"report", 'k', "sched"},  {"report", 'p', "samples"},
    {"save", 't', "timeout"},       {"scrub", 'r', "remove"},     {"start", 'c', "counter"}, {"start", 'm', "memory"},
    {"start", 'k', "sample-rate"},  {"start", 'o', "file"},       {"start", 's', "max-size"},
    {"start", 't', "timeout"},      {"status", 't', "timeout"},   {"stop", 't', "timeout"},  {"top", 'c', "count"},
    {"top", 's', "by-count"},       {"top", 'w', "window"},
};
enum { OLD_LETTERS = sizeof old_letters / sizeof old_letters[0] };

/* The name of the option that a letter meant in a command, or NULL. */
static const char *
old_meaning(const char *command, char letter)
{
    for (int i = 0; i < OLD_LETTERS; i++) {
        if (old_letters[i].letter == letter && strcmp(old_letters[i].command, command) == 0) return old_letters[i].name;
    }
    return NULL;
}

/* 0: it has none; or one that is still accepted as that of another one of the command. */
static char
letter_of(const char *command, const char *name)
{
    for (int i = 0; i < LETTERS; i++) {
        if (strcmp(letters[i].name, name) == 0)
            return old_meaning(command, letters[i].letter) == NULL ? letters[i].letter : 0;
    }
    return 0;
}

static void
warn_of_old(const char *command, char letter, const char *name)
{
    char now = letter_of(command, name), instead[8] = "";
    if (now != 0) snprintf(instead, sizeof instead, "-%c or ", now);
    message("-%c is no longer the letter of --%s; write %s--%s", letter, name, instead, name);
}

/* The option that a letter means, which is one of the command's. Warns of one that means it no longer. */
static const struct cli_option *
option_of_letter(const char *command, const struct cli_option *options, char letter)
{
    const char *old = old_meaning(command, letter);
    const struct cli_option *option = options;
    for (; option->name != NULL; option++) {
        if (old != NULL ? strcmp(option->name, old) == 0 : letter_of(command, option->name) == letter) break;
    }
    if (old != NULL) warn_of_old(command, letter, old);
    return option;
}

/* As getopt would, but for what is in `word`, the argument that it has read last. */
static void
print_wrong(int code, const struct cli_option *options, const char *word)
{
    if (optopt != 0 && optopt < FIRST_CODE) {
        message(code == ':' ? "option '-%c' requires an argument" : "unrecognized option '-%c'", optopt);
        return;
    }
    if (optopt != 0) {
        message(code == ':' ? "option '%s' requires an argument" : "option '%s' takes no argument", word);
        return;
    }
    unsigned possible = 0;
    for (; options->name != NULL; options++) possible += strncmp(options->name, word + 2, strcspn(word + 2, "=")) == 0;
    message(possible > 1 ? "option '%s' is ambiguous" : "unrecognized option '%s'", word);
}

int
options_read(const struct cli_option *options, bool stop_at_argument, int argc, char **argv)
{
    struct option long_options[OPTIONS_MAX + 2] = {{"help", no_argument, NULL, 'h'}};
    const char *command = argv[0];
    char accepted[4 * OPTIONS_MAX + 4] = "+:h";
    char *end = accepted + 3;
    for (int i = 0; i < OPTIONS_MAX && options[i].name != NULL; i++) {
        bool takes = options[i].argument != NULL;
        long_options[i + 1] =
            (struct option){options[i].name, takes ? required_argument : no_argument, NULL, FIRST_CODE + i};
        char of_option[] = {letter_of(command, options[i].name), 0};
        if (of_option[0] != 0) end = stpcpy(stpcpy(end, of_option), takes ? ":" : "");
        for (int old = 0; old < OLD_LETTERS; old++) {
            if (strcmp(old_letters[old].command, command) != 0 || strcmp(old_letters[old].name, options[i].name) != 0)
                continue;
            of_option[0] = old_letters[old].letter;
            end = stpcpy(stpcpy(end, of_option), takes ? ":" : "");
        }
    }
    opterr = 0;
    memset(given, 0, sizeof given); /* a test may read options again */
    for (;;) {
        int code = getopt_long(argc, argv, accepted + (stop_at_argument ? 0 : 1), long_options, NULL);
        if (code == -1) return optind;
        if (code == 'h') return OPTIONS_HELP;
        if (code == '?' || code == ':') print_wrong(code, options, argv[optind - 1]);
        if (code == '?' || code == ':') return OPTIONS_WRONG;
        const struct cli_option *option =
            code >= FIRST_CODE ? &options[code - FIRST_CODE] : option_of_letter(command, options, (char)code);
        note_given(option->name);
        if (option->argument == NULL) *(bool *)option->value = true;
        else if (!option->take(option, optarg)) return OPTIONS_WRONG;
    }
}

void
options_print_help(const char *command, const struct cli_option *options)
{
    puts("Options:");
    for (; options->name != NULL; options++) {
        char form[64];
        char letter = letter_of(command, options->name);
        int len = letter ? snprintf(form, sizeof form, "-%c, ", letter) : snprintf(form, sizeof form, "    ");
        snprintf(form + len, sizeof form - (size_t)len, "--%s%s%s", options->name, options->argument ? "=" : "",
                 options->argument ? options->argument : "");
        printf("  %-19s", form);
        if (strlen(form) > 19) printf("\n%22s", ""); /* too long for the first line of its help to follow */
        else putchar(' ');
        for (const char *line = options->help; *line != '\0';) {
            int line_len = (int)strcspn(line, "\n");
            printf("%*s%.*s\n", line == options->help ? 0 : 22, "", line_len, line);
            line += line_len + (line[line_len] == '\n');
        }
    }
    puts("  -h, --help          this text");
}
