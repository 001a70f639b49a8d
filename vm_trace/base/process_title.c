/*
 * The title of the process. See process_title.h.
 */
#include "vm_trace/base/process_title.h"
#include "vm_trace/base/strings.h"
#include "vm_trace/platform/platform.h"

#include <string.h>

size_t
rb_vm_trace_process_title(char *title, size_t size)
{
    /* A title overwrites the arguments: Linux shows it up to the end of these, or all of it if it is longer. */
    char text[4096];
    size_t n = rb_vm_trace_platform_arguments(text, sizeof(text), false);
    if (!n) return 0;

    size_t bytes = strnlen(text, n), end = bytes;
    while (end < n && text[end] == '\0') end++;
    if (end < n) return 0; /* another argument */
    /* One NUL is the end of the program's name if it has no arguments, or of a title that is as long as they were. */
    if (end - bytes == 1 && !memchr(text, ' ', bytes)) return 0;

    bytes = rb_vm_trace_text_fit(text, bytes, size);
    memcpy(title, text, bytes);
    return bytes;
}
