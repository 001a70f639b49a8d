/* known_strings.c - see known_strings.h */
#include "fxt/known_strings.h"

const char *const known_strings[KNOWN_STRINGS_END] = {
#define FIXED(name, text) [STRING_##name] = (text),
#define STRING(name, text) [STRING_##name] = (text),
#include "vm_trace/schema/events.def"
};
