#ifndef SOURCE_MATCH_H
#define SOURCE_MATCH_H
/* source_match.h - finds the file in a trace that a source on this machine belongs to. The program may
 * have run in another folder, or on another machine. */
#include "source/annotation.h"

enum { SOURCE_UNMATCHED = -1, SOURCE_AMBIGUOUS = -2 };

/* Returns the number of the file in annotation->files whose path ends like that of the source: with
 * most folders in common, and at least the same name. SOURCE_AMBIGUOUS if several have as many. */
int64_t source_match(const struct annotation *annotation, const struct pool *pool, const char *source);

#endif
