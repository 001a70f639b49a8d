#ifndef MESSAGE_H
#define MESSAGE_H
/* message.h - messages about files, on stderr: `vm-trace: FILE: text`. */
#include <stdio.h>

#include "base/status.h"

/* The file's name, escaped; "standard input" for "-". */
void print_file_name(FILE *out, const char *file);

/* Prints `vm-trace: FILE: text` on stderr. */
void file_message(const char *file, const char *text);

/* Flushes standard output. Prints a message and returns STATUS_CANNOT_READ when anything that was
 * printed there could not be written. */
enum status finish_output(void);

#endif
