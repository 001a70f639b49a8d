/*
 * The texts of known strings. See known_strings.h.
 */
#include "vm_trace/base/known_strings.h"

#include <string.h>

static const struct {
    const char *text;
    size_t bytes;
} strings[FIXED_STRINGS] = {
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

const struct vm_trace_string *rb_vm_trace_known[KNOWN_TEXTS];

/* Threads that do it at once get the same texts. */
bool
rb_vm_trace_known_init(void)
{
    static const char *const texts[KNOWN_TEXTS] = {
#define FIXED(name, text) text,
#define STRING(name, text) text,
#include "vm_trace/schema/events.def"
    };
    static bool made;
    if (__atomic_load_n(&made, __ATOMIC_ACQUIRE)) return true;
    for (int i = 0; i < KNOWN_TEXTS; i++) {
        const struct vm_trace_string *text = rb_vm_trace_string_permanent(texts[i], strlen(texts[i]));
        if (!text) return false;
        __atomic_store_n(&rb_vm_trace_known[i], text, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&made, true, __ATOMIC_RELEASE);
    return true;
}

enum known_string
rb_vm_trace_known_string(const char *text)
{
    int string = FIXED_STRINGS - 1;
    while (string > STRING_NONE && strcmp(strings[string].text, text) != 0) string--;
    return (enum known_string)string;
}
