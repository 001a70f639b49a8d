#ifndef ESCAPE_H
#define ESCAPE_H
/* escape.h - bytes from a file, made fit for a terminal, for a message, for JSON.
 *
 * Names in a trace can hold anything: they must not move the cursor, break a line or end a JSON string. Well-formed UTF-8 is
 * passed on; the rest is shown by its codes.
 */
#include <stdio.h>

#include "base/pool.h"

/* Decodes one character of at least one byte. Its length in bytes; 0 when the first byte starts nothing well-formed (then
 * *codepoint_out is that byte). */
unsigned utf8_decode(const char *ptr, size_t len, uint32_t *codepoint_out);

/* Text for people: a control character is shown as \n, \t, \r or \x1B, one that changes the direction or breaks the line as
 * \u202E, a byte that is not UTF-8 as \xFF. */
void print_escaped(FILE *out, struct fxt_string string);

/* The same into a buffer, always terminated; what does not fit ends in "...". Returns buffer. */
char *escape_into(char *buffer, size_t size, struct fxt_string string);

/* A JSON string with its quotes. A byte that is not UTF-8 becomes U+FFFD, so the output is valid JSON whatever the input. */
void print_json(FILE *out, struct fxt_string string);

/* A quoted field of comma-separated values, escaped as for people. */
void print_csv(FILE *out, struct fxt_string string);

#endif
