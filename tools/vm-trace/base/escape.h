#ifndef ESCAPE_H
#define ESCAPE_H
/* escape.h - makes bytes from a file safe for a terminal or a message; for JSON see json.h.
 *
 * Names in a trace can contain anything. They must not move the cursor or break a line. Well-formed
 * UTF-8 passes through; everything else is shown by its codes.
 */
#include <stdbool.h>
#include <stdio.h>

#include "base/pool.h"

/* Decodes one character from at least one byte. Returns its length in bytes; or 0 if the first
 * byte does not start a well-formed character, and then sets *codepoint_out to that byte. */
unsigned utf8_decode(const char *ptr, size_t len, uint32_t *codepoint_out);

/* Whether no name needs the character, and it could change what a terminal shows. */
bool escape_needed(uint32_t codepoint);

/* The bytes at the start that need no escapes in JSON and CSV: most names consist of nothing else. */
uint32_t plain_ascii(const char *ptr, uint32_t len);

/* Prints text for people. Control characters become \n, \t, \r or \x1B; characters that change
 * the direction or break the line become \u202E; bytes that are not UTF-8 become \xFF. */
void print_escaped(FILE *out, struct fxt_string string);

/* Writes the same into a buffer, with a NUL. A text that does not fit ends in "...". Returns
 * buffer. */
char *escape_into(char *buffer, size_t size, struct fxt_string string);

/* Prints a quoted CSV field, escaped as for people. */
void print_csv(FILE *out, struct fxt_string string);

/* Likewise for spreadsheets: a text that they would take for a formula begins with an apostrophe. */
void print_csv_cell(FILE *out, struct fxt_string string);

/* Likewise for programs only: well-formed characters above U+007F stay as they are, also those that
 * a terminal may take for commands. */
void print_csv_data(FILE *out, struct fxt_string string);

#endif
