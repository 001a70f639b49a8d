/* message.c - see message.h */
#include <errno.h>
#include <stdio.h>
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
file_message(const char *file, const char *text)
{
    fputs("vm-trace: ", stderr);
    print_file_name(stderr, file);
    fprintf(stderr, ": %s\n", text);
}

enum status
finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return STATUS_FINE;
    fprintf(stderr, "vm-trace: cannot write to standard output: %s\n", strerror(errno));
    return STATUS_CANNOT_READ;
}
