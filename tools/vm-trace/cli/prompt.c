/* prompt.c - see prompt.h */
#define _GNU_SOURCE /* strcasecmp */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/xalloc.h"
#include "cli/prompt.h"

#ifdef HAVE_LIBEDIT
# include <editline/readline.h>

enum { HISTORY_MAX = 1000 };

static char **words;
static size_t word_count;
static char *history_file; /* NULL: none can be kept */

/* Makes the folder if it is missing. malloc'ed, or NULL. */
static char *
history_path(const char *name)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool given = state != NULL && state[0] == '/';
    if (!given && (home == NULL || home[0] != '/')) return NULL;
    char *folder = given ? xformat("%s/vm-trace", state) : xformat("%s/.local/state/vm-trace", home);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0700);
        *slash = '/';
    }
    mkdir(folder, 0700);
    char *path = xformat("%s/%s", folder, name);
    free(folder);
    return path;
}

/* The next word that begins so, as libedit asks for it: malloc'ed, NULL at the end. */
static char *
next_word(const char *begin, int state)
{
    static size_t at;
    if (state == 0) at = 0;
    while (at < word_count) {
        const char *word = words[at++];
        if (strncasecmp(word, begin, strlen(begin)) == 0) return xformat("%s", word);
    }
    return NULL;
}

static char **
complete(const char *text, int start, int end)
{
    (void)start;
    (void)end;
    rl_attempted_completion_over = 1; /* never names of files */
    rl_completion_append_character = '\0';
    return rl_completion_matches(text, next_word);
}

void
prompt_begin(const char *name, char **known_words, size_t count)
{
    words = known_words;
    word_count = count;
    rl_readline_name = "vm-trace";
    rl_attempted_completion_function = complete;
    rl_basic_word_break_characters = " \t\n\"'`,;()=<>+-*/%|.";
    using_history();
    stifle_history(HISTORY_MAX);
    history_file = history_path(name);
    if (history_file != NULL) read_history(history_file);
}

char *
prompt_read(const char *prompt)
{
    return readline(prompt);
}

void
prompt_remember(const char *text)
{
    /* One line, so that it can be edited as one, unless a comment ends with its line. */
    char *copy = xformat("%s", text);
    for (char *at = copy; strstr(copy, "--") == NULL && *at != '\0'; at++) {
        if (*at == '\n') *at = at[1] == '\0' ? '\0' : ' ';
    }
    add_history(copy);
    free(copy);
}

void
prompt_end(void)
{
    if (history_file != NULL) write_history(history_file);
    free(history_file);
    history_file = NULL;
}
#else
void
prompt_begin(const char *name, char **known_words, size_t count)
{
    (void)name;
    (void)known_words;
    (void)count;
}

char *
prompt_read(const char *prompt)
{
    char *line = NULL;
    size_t size = 0;
    fputs(prompt, stdout);
    fflush(stdout);
    ssize_t bytes = getline(&line, &size, stdin);
    if (bytes >= 0) {
        line[strcspn(line, "\n")] = '\0';
        return line;
    }
    free(line);
    return NULL;
}

void
prompt_remember(const char *text)
{
    (void)text;
}

void
prompt_end(void)
{
}
#endif
