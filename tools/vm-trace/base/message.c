/* message.c - see message.h */
#define _GNU_SOURCE /* vasprintf */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/message.h"

void
print_file_name(FILE *out, const char *file)
{
    if (strcmp(file, "-") == 0) file = "standard input";
    print_escaped(out, text_of(file));
}

void
message(const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) return;
    fputs("vm-trace: ", stderr);
    print_escaped(stderr, text_of(text));
    putc('\n', stderr);
    free(text);
}

void
file_message(const char *file, const char *text)
{
    message("%s: %s", strcmp(file, "-") == 0 ? "standard input" : file, text);
}

enum status
finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return STATUS_FINE;
    fprintf(stderr, "vm-trace: cannot write to standard output: %s\n", strerror(errno));
    return STATUS_CANNOT_READ;
}
