/*
 * The texts of known strings. See known_strings.h.
 */
#include "vm_trace/base/known_strings.h"

#include <string.h>

static const struct {
    const char *text;
    size_t bytes;
} strings[STRING_COUNT] = {
    { "", 0 },
#define FIXED(name, text) { text, sizeof(text) - 1 },
#include "vm_trace/schema/events.def"
};

const char *
rb_vm_trace_known_text(enum known_string string, size_t *bytes_out)
{
    *bytes_out = strings[string].bytes;
    return strings[string].text;
}

enum known_string
rb_vm_trace_known_string(const char *text)
{
    int string = STRING_COUNT - 1;
    while (string > STRING_NONE && strcmp(strings[string].text, text) != 0) string--;
    return (enum known_string)string;
}
