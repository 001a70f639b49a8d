#ifndef GLOB_H
#define GLOB_H
/* glob.h - remembers which strings of a pool match a glob, so that each string is tried once. */
#include <stdbool.h>

#include "base/pool.h"

/* Returns whether a glob (as in fnmatch) matches a text; a NUL must follow the text. */
typedef bool glob_matcher(const char *pattern, struct fxt_string text);

enum { GLOB_UNTRIED, GLOB_FAILS, GLOB_MATCHES };

/* A zeroed glob matches all. */
struct glob {
    const char *pattern; /* NULL: all; must live as long as the glob */
    glob_matcher *matches;
    uint8_t *known; /* by number of string */
    uint32_t size;
};

bool glob_matches(struct glob *glob, const struct pool *pool, uint32_t id);
/* Whether any tried string matches; true for a glob that matches all. */
bool glob_matched_any(const struct glob *glob);
void glob_free(struct glob *glob);

/* A glob_matcher for labels of frames: matches the whole label, or `Owner#method`. The latter
 * also matches literally: POSIX does not define what `Array#[]` means as a glob. */
bool label_matches(const char *pattern, struct fxt_string label);
/* Of the labels that the glob was tried on, and that it does not match: the method with the most similar name, with or
 * without its owner. Empty if none is similar. */
struct fxt_string glob_nearest_method(const struct glob *glob, const struct pool *pool);

#endif
