#ifndef PATH_PART_H
#define PATH_PART_H
/* path_part.h - folders that a command makes, with names from a trace in their paths. */
#include <stdbool.h>

#include "base/pool.h"

/* Returns a text as a part of a path, malloc'ed: other bytes than letters, digits, `.`, `_` and `-` become %2F, as
 * Hive writes them, and a long text is cut. "unknown" for an empty one. */
char *path_part(struct fxt_string text);
/* Makes a folder, and those above it. Prints a message and returns false if that fails. */
bool make_folders(char *path);

#endif
