#ifndef MESSAGE_H
#define MESSAGE_H
/* message.h - messages on stderr: `vm-trace: FILE: text`. What is in them may be anybody's. */
#include <stdio.h>

#include "base/status.h"

/* The file's name, escaped; "standard input" for "-". */
void print_file_name(FILE *out, const char *file);

/* Prints `vm-trace: text` on stderr; the text is formatted like printf, and then escaped. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints `vm-trace: FILE: text` on stderr, escaped. */
void file_message(const char *file, const char *text);

/* Flushes standard output. Prints a message and returns STATUS_CANNOT_READ when anything that was
 * printed there could not be written. */
enum status finish_output(void);

#endif
