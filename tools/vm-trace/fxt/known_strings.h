#ifndef KNOWN_STRINGS_H
#define KNOWN_STRINGS_H
/* known_strings.h - the strings of the schema: categories, names of events and arguments, outcomes.
 *
 * A reader's string pool begins with them in this order, so the number of a string shows whether it
 * is one of them.
 */
#include "base/pool.h"

enum known_string {
    KNOWN_STRINGS_BEGIN = STRING_NONE,
#define FIXED(name, text) STRING_##name,
#define STRING(name, text) STRING_##name,
#include "vm_trace/schema/events.def"
    KNOWN_STRINGS_END
};

/* Their texts, by number; NULL for STRING_NONE. */
extern const char *const known_strings[KNOWN_STRINGS_END];

#endif
