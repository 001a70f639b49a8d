/* pattern.c - see pattern.h */
#include <stdio.h>
#include <stdlib.h>

#include "base/pattern.h"
#include "base/xalloc.h"

#ifdef HAVE_PCRE2
# define PCRE2_CODE_UNIT_WIDTH 8
# include <pcre2.h>

/* So many steps take a tenth of a second. */
enum { STEPS_MAX = 10 * 1000 * 1000, MEMORY_MAX_KIB = 64 * 1024, PATTERN_MAX_BYTES = 64 * 1024 };

struct pattern {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

/* A dollar is the end of the text only, as in RE2, which Perfetto has. */
static pcre2_code *
compile(struct fxt_string text, int *error_out)
{
    const uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
    pcre2_compile_context *syntax = pcre2_compile_context_create(NULL);
    if (syntax == NULL) return NULL;
    pcre2_set_newline(syntax, PCRE2_NEWLINE_LF);
    pcre2_set_max_pattern_length(syntax, PATTERN_MAX_BYTES);
    PCRE2_SIZE at;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text.ptr, text.len, options, error_out, &at, syntax);
    pcre2_compile_context_free(syntax);
    return code;
}

struct pattern *
pattern_new(struct fxt_string text, char why_out[PATTERN_WHY])
{
    struct pattern *pattern = xcalloc(1, sizeof *pattern);
    int error = PCRE2_ERROR_NOMEMORY;
    pattern->code = compile(text, &error);
    if (pattern->code != NULL) {
        error = PCRE2_ERROR_NOMEMORY;
        pattern->match = pcre2_match_data_create_from_pattern(pattern->code, NULL);
        pattern->limits = pcre2_match_context_create(NULL);
    }
    if (pattern->match != NULL && pattern->limits != NULL) {
        pcre2_set_match_limit(pattern->limits, STEPS_MAX);
        pcre2_set_depth_limit(pattern->limits, STEPS_MAX);
        pcre2_set_heap_limit(pattern->limits, MEMORY_MAX_KIB);
        return pattern;
    }
    pcre2_get_error_message(error, (PCRE2_UCHAR *)why_out, PATTERN_WHY);
    pattern_free(pattern);
    return NULL;
}

enum pattern_result
pattern_search(struct pattern *pattern, struct fxt_string text, size_t from, char why_out[PATTERN_WHY])
{
    int found = pcre2_match(pattern->code, (PCRE2_SPTR)text.ptr, text.len, from, 0, pattern->match, pattern->limits);
    if (found >= 0) return PATTERN_MATCH;
    if (found == PCRE2_ERROR_NOMATCH) return PATTERN_NO_MATCH;
    bool limit = found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_DEPTHLIMIT || found == PCRE2_ERROR_HEAPLIMIT;
    if (!limit) pcre2_get_error_message(found, (PCRE2_UCHAR *)why_out, PATTERN_WHY);
    else snprintf(why_out, PATTERN_WHY, "takes too many steps in a text of %u bytes, as nested repetitions do",
                  (unsigned)text.len);
    return PATTERN_FAILED;
}

void
pattern_bounds(const struct pattern *pattern, size_t *begin_out, size_t *end_out)
{
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(pattern->match);
    *begin_out = bounds[0];
    *end_out = bounds[1];
}

void
pattern_free(struct pattern *pattern)
{
    if (pattern == NULL) return;
    pcre2_match_data_free(pattern->match);
    pcre2_match_context_free(pattern->limits);
    pcre2_code_free(pattern->code);
    free(pattern);
}
#else
struct pattern *
pattern_new(struct fxt_string text, char why_out[PATTERN_WHY])
{
    (void)text;
    snprintf(why_out, PATTERN_WHY, "not available: vm-trace was built without PCRE2 (libpcre2-dev)");
    return NULL;
}

/* There is no pattern to search with. */
enum pattern_result
pattern_search(struct pattern *pattern, struct fxt_string text, size_t from, char why_out[PATTERN_WHY])
{
    (void)pattern, (void)text, (void)from, (void)why_out;
    abort();
}

void
pattern_bounds(const struct pattern *pattern, size_t *begin_out, size_t *end_out)
{
    (void)pattern, (void)begin_out, (void)end_out;
    abort();
}

void
pattern_free(struct pattern *pattern)
{
    (void)pattern;
}
#endif
