#ifndef SCRUB_TEXT_H
#define SCRUB_TEXT_H
/* scrub_text.h - what `vm-trace scrub` removes from a text. A text never gets longer, and scrubbing it again changes
 * nothing. */
#include <limits.h>

#include "scrub/scrub_role.h"
#include "base/pattern.h"
#include "base/pool.h"

enum { SCRUB_PATTERNS_MAX = 32 };

struct scrub {
    bool keep[SCRUB_ROLES]; /* SCRUB_PATH: the folders of all paths */
    struct pattern *patterns[SCRUB_PATTERNS_MAX];
    unsigned pattern_count;
    struct scrub_secret {
        char *text;
        uint32_t len;
        bool word;       /* not as a part of a longer word */
        uint32_t prefix; /* number + 1 of the longest other secret that this one begins with, or 0 */
    } *secrets;          /* in the order of their bytes, each once, when they are needed */
    uint32_t secret_count, secret_capacity;
    uint32_t begins[UCHAR_MAX + 2]; /* by first byte: number of the first secret from there on */
    bool sorted;
    char *text, *result; /* the last one */
    size_t result_len, capacity;
    uint64_t changed; /* texts */
    uint64_t given_up; /* of these: a search took too long, so all of the text was removed */
};

/* Returns NULL, or why the pattern (a regular expression) is wrong; static. */
const char *scrub_add_pattern(struct scrub *scrub, const char *pattern);
/* Adds a text that is removed wherever it is, such as a command line; `word`: only as a word, such as a host's name,
 * which may be short. */
void scrub_add_secret(struct scrub *scrub, struct fxt_string text, bool word);
/* Before another trace. */
void scrub_forget_secrets(struct scrub *scrub);
/* Removes secrets; what patterns match; and the folders of paths, which become a star. What a command line, a host or a
 * service is called becomes stars, and a word of the schema stays. Valid until the next call. */
struct fxt_string scrub_text(struct scrub *scrub, enum scrub_role role, struct fxt_string text);
void scrub_free(struct scrub *scrub);

#endif
