/*
 * Lines on stderr. See messages.h.
 */
#include "vm_trace/base/messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct vm_trace_messages rb_vm_trace_messages = { .prefix = "vm_trace" };

static struct stat first_stderr;

void
rb_vm_trace_messages_begin(void)
{
    if (fstat(STDERR_FILENO, &first_stderr) != 0) first_stderr.st_ino = 0; /* there is none */
}

static bool
stderr_is_the_first(void)
{
    struct stat now;
    return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == first_stderr.st_dev &&
        now.st_ino == first_stderr.st_ino;
}

#ifdef __GNUC__
__attribute__((format(printf, 1, 0)))
#endif
static void
say_list(const char *format, va_list arguments)
{
    char line[4096 + 256]; /* a path and some words */
    int n = snprintf(line, sizeof(line), "%s: ", rb_vm_trace_messages.prefix);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, arguments);
    if ((size_t)n > sizeof(line) - 2) {
        n = (int)sizeof(line) - 2;
        memcpy(line + n - 3, "...", 3);
    }
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0) { /* nobody listens */ }
}

void
rb_vm_trace_message(const char *format, ...)
{
    if (!stderr_is_the_first()) return;
    va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
}

void
rb_vm_trace_warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
}
