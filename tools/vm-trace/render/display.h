#ifndef DISPLAY_H
#define DISPLAY_H
/* display.h - how many columns of a terminal a text takes, and texts made to fit.
 *
 * Texts are UTF-8, escaped by escape.h: without control characters. Chinese, Japanese and Korean
 * characters and emoji take two columns, combining characters none.
 */
#include <stdbool.h>
#include <stddef.h>

/*
 * A character with all that joins it: accents, the parts of an emoji. Its bytes (1 at least, `len`
 * must be), and its columns.
 */
size_t display_next(const char *text, size_t len, unsigned *columns_out);
unsigned display_width(const char *text);

/* The text in at most `columns` (4 at least), with "…" for what is left out; malloc'ed. Folders at the start of a path go first, then
 * the middle of the text; the file's name and the line number stay as long as they can. */
char *display_fit(const char *text, unsigned columns);

/* Columns of a page: what COLUMNS says, else the width of the terminal that standard output is, else 100. */
unsigned display_columns(void);

#endif
