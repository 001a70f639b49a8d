#ifndef RUBY_VM_TRACE_BASE_KNOWN_STRINGS_H
#define RUBY_VM_TRACE_BASE_KNOWN_STRINGS_H 1
/*
 * Strings that have the same index in every chunk, because each chunk defines them first:
 * categories, names of arguments and events that occur everywhere. A stream whose strings are rare
 * interns them instead (strings.h), which costs nothing in the chunks that lack them.
 */

#include "vm_trace/base/strings.h"

/* An index. */
enum known_string {
    STRING_NONE,
#define FIXED(name, text) STRING_##name,
#include "vm_trace/schema/events.def"
    FIXED_STRINGS
};

/* Its text, which is static. */
const char *rb_vm_trace_known_text(enum known_string string, size_t *bytes_out);

/* The known string with that text, or STRING_NONE. Looks at all of them. */
enum known_string rb_vm_trace_known_string(const char *text);

/* All strings of the schema, as texts that a writer interns: KNOWN(LOST_NS). */
enum known_text {
#define FIXED(name, text) KNOWN_##name,
#define STRING(name, text) KNOWN_##name,
#include "vm_trace/schema/events.def"
    KNOWN_TEXTS
};
extern const struct vm_trace_string *rb_vm_trace_known[KNOWN_TEXTS];
#define KNOWN(name) rb_vm_trace_known[KNOWN_##name]

/* Make these texts, once for all. False: no memory. Any thread. */
bool rb_vm_trace_known_init(void);

#endif /* RUBY_VM_TRACE_BASE_KNOWN_STRINGS_H */
