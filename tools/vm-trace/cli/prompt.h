#ifndef PROMPT_H
#define PROMPT_H
/* prompt.h - lines that a person types in a terminal: with editing, a history and completion by libedit, if the tool
 * was built with it; else plain. */
#include <stddef.h>

/* Begins. The history of earlier times is that of `name`, in the user's folder for such files ($XDG_STATE_HOME, or
 * ~/.local/state). `words` are what the tabulator completes; they must live until prompt_end. */
void prompt_begin(const char *name, char **words, size_t word_count);
/* Returns a line without its end, malloc'ed; NULL at the end of input. */
char *prompt_read(const char *prompt);
/* Adds a text, which may have several lines, to the history. */
void prompt_remember(const char *text);
/* Keeps the history for the next time. */
void prompt_end(void);

#endif
