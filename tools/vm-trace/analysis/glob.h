#ifndef GLOB_H
#define GLOB_H
/* glob.h - which strings of a pool a glob matches. Each string is tried once. */
#include <stdbool.h>

#include "base/pool.h"

/* Whether a glob (as for fnmatch) matches a text, which a NUL must follow. */
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
/* Whether any string that was tried matches; true for a glob that matches all. */
bool glob_matched_any(const struct glob *glob);
void glob_free(struct glob *glob);

/* A glob_matcher of labels of frames: the whole label, or `Owner#method` alone, which may also be
 * spelled exactly (as `Array#[]`, which as a glob is something else). */
bool label_matches(const char *pattern, struct fxt_string label);

#endif
