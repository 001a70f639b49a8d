#ifndef PATTERN_H
#define PATTERN_H
/* pattern.h - regular expressions, in the syntax of Perl and Ruby: by PCRE2, if the tool was built with it.
 *
 * The work and the memory of a search are bounded, because people write patterns and anybody writes the texts of a
 * trace: some pairs of them would take years.
 */
#include <stddef.h>

#include "base/pool.h"

struct pattern;

/* Why a pattern is wrong, or a search was given up. */
enum { PATTERN_WHY = 160 };

/* NULL: the pattern is wrong, or the tool has no regular expressions. */
struct pattern *pattern_new(struct fxt_string text, char why_out[PATTERN_WHY]);

enum pattern_result { PATTERN_NO_MATCH, PATTERN_MATCH, PATTERN_FAILED };

/* Searches a text from the byte `from` on; what is before it counts for ^ and \b. Bytes that are not UTF-8 match
 * nothing. PATTERN_FAILED: a limit is reached. */
enum pattern_result pattern_search(struct pattern *pattern, struct fxt_string text, size_t from,
                                   char why_out[PATTERN_WHY]);
/* Where the last match begins and ends. */
void pattern_bounds(const struct pattern *pattern, size_t *begin_out, size_t *end_out);

void pattern_free(struct pattern *pattern);

#endif
