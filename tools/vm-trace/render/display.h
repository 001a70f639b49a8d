#ifndef DISPLAY_H
#define DISPLAY_H
/* display.h - the width of a text on a terminal, and texts shortened to a width.
 *
 * Texts are UTF-8, escaped by escape.h: without control characters. Chinese, Japanese and Korean
 * characters and emoji take two columns, combining characters none.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Returns the length in bytes of a character with everything that joins it (accents, the parts
 * of an emoji), and sets its columns. len must be at least 1. */
size_t display_next(const char *text, size_t len, unsigned *columns_out);
unsigned display_width(const char *text);

/* Shortens the text to `columns` (at least 4), with "…" for what is left out; malloc'ed. Drops
 * the folders at the start of a path first, then the middle of the text; the file name and the
 * line number stay as long as possible. */
char *display_fit(const char *text, unsigned columns);

/* The columns of a page: COLUMNS, else the width of the terminal that `out` is, else 100. */
unsigned display_columns(FILE *out);

#endif
