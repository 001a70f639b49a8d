/* scrub_text.c - see scrub_text.h */
#define _GNU_SOURCE /* memmem, memrchr, REG_STARTEND */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frames.h"
#include "analysis/label.h"
#include "analysis/scrub_text.h"
#include "base/xalloc.h"

const char *
scrub_add_pattern(struct scrub *scrub, const char *pattern)
{
    static char why[PATTERN_WHY];
    if (scrub->pattern_count == SCRUB_PATTERNS_MAX) return "there are too many";
    struct pattern *compiled = pattern_new(text_of(pattern), why);
    if (compiled == NULL) return why;
    scrub->patterns[scrub->pattern_count++] = compiled;
    return NULL;
}

void
scrub_add_secret(struct scrub *scrub, struct fxt_string text, bool word)
{
    enum { LEAST = 2 };
    uint32_t stars = 0; /* what is removed already */
    while (stars < text.len && text.ptr[stars] == '*') stars++;
    if (text.len < LEAST || stars == text.len) return;
    for (uint32_t i = 0; i < scrub->secret_count; i++) {
        const char *known = scrub->secrets[i].text;
        if (strlen(known) == text.len && memcmp(known, text.ptr, text.len) == 0) return;
    }
    make_room(scrub->secrets, scrub->secret_count, scrub->secret_capacity);
    scrub->secrets[scrub->secret_count++] = (struct scrub_secret){xformat("%.*s", (int)text.len, text.ptr), word};
}

void
scrub_forget_secrets(struct scrub *scrub)
{
    for (uint32_t i = 0; i < scrub->secret_count; i++) free(scrub->secrets[i].text);
    scrub->secret_count = 0;
}

/* Up to three stars instead of so many bytes. Returns how many are left. */
static size_t
cover(char *at, size_t bytes)
{
    enum { STARS = 3 };
    size_t stars = bytes < STARS ? bytes : STARS;
    memset(at, '*', stars);
    return stars;
}

/* Replaces what lies in a text from `from` to `to` by stars. Returns the new length. */
static size_t
remove_part(char *text, size_t len, size_t from, size_t to)
{
    size_t stars = cover(text + from, to - from);
    memmove(text + from + stars, text + to, len - to + 1);
    return len - (to - from) + stars;
}

static bool
word_char_p(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether what lies in a text from `from` to `to` is a part of a longer word. */
static bool
part_of_word_p(const char *text, size_t len, size_t from, size_t to)
{
    return (from > 0 && word_char_p(text[from - 1])) || (to < len && word_char_p(text[to]));
}

static size_t
remove_secrets(const struct scrub *scrub, char *text, size_t len)
{
    for (uint32_t i = 0; i < scrub->secret_count; i++) {
        const struct scrub_secret *secret = &scrub->secrets[i];
        size_t bytes = strlen(secret->text), from = 0;
        for (char *at; (at = memmem(text + from, len - from, secret->text, bytes)) != NULL;) {
            from = (size_t)(at - text);
            if (secret->word && part_of_word_p(text, len, from, from + bytes)) from++;
            else len = remove_part(text, len, from, from + bytes);
        }
    }
    return len;
}

/* A text may contain NUL. */
static size_t
remove_matches(struct scrub *scrub, char *text, size_t len)
{
    for (unsigned i = 0; i < scrub->pattern_count; i++) {
        char why[PATTERN_WHY];
        for (size_t at = 0; at < len;) {
            const struct fxt_string whole = {.ptr = text, .len = (uint32_t)len};
            enum pattern_result found = pattern_search(scrub->patterns[i], whole, at, why);
            if (found == PATTERN_NO_MATCH) break;
            size_t from = 0, to = len, before = len;
            if (found == PATTERN_MATCH) pattern_bounds(scrub->patterns[i], &from, &to);
            else scrub->given_up++;
            if (to > from) len = remove_part(text, len, from, to);
            at = to > from ? to - (before - len) : to + 1;
        }
    }
    return len;
}

/* --- paths ------------------------------------------------------------------------------------------------------- */

static void
put(struct scrub *scrub, const char *from, const char *to)
{
    memcpy(scrub->result + scrub->result_len, from, (size_t)(to - from));
    scrub->result_len += (size_t)(to - from);
}

/* Puts a star instead of what is before the last slash. */
static void
put_shortened(struct scrub *scrub, const char *from, const char *to)
{
    const char *slash = to > from ? memrchr(from, '/', (size_t)(to - from)) : NULL;
    if (slash != NULL && slash > from) {
        scrub->result[scrub->result_len++] = '*';
        from = slash;
    }
    put(scrub, from, to);
}

/* All of it is a path, whatever it looks like; the path of an eval or of Ruby's own code is inside of something. */
static void
put_path(struct scrub *scrub, const char *from, const char *to)
{
    static const char *const before[] = {"(eval at ", "<internal:"};
    for (unsigned i = 0; i < sizeof before / sizeof before[0]; i++) {
        size_t bytes = strlen(before[i]);
        for (; (size_t)(to - from) > bytes && memcmp(from, before[i], bytes) == 0; from += bytes)
            put(scrub, from, from + bytes);
    }
    put_shortened(scrub, from, to);
}

/* Any text may have paths in it, with blanks in their folders: "#<File:/home/two words/key>". A path ends at the last
 * slash, or behind it. It begins at the first one if that is no part of a word, and else with the text. */
static void
put_free(struct scrub *scrub, const char *from, const char *to)
{
    const char *slash = to > from ? memchr(from, '/', (size_t)(to - from)) : NULL, *begin = slash;
    while (begin != NULL && begin > from && strchr("~.*", begin[-1]) != NULL) begin--;
    bool alone = begin == NULL || begin == from || strchr(" \t\r\n([{<'\"`=:,;|", begin[-1]) != NULL;
    if (!alone) begin = from;
    if (begin != NULL) put(scrub, from, begin);
    put_shortened(scrub, begin != NULL ? begin : from, to);
}

/* The method `/` is no path. */
static void
put_method(struct scrub *scrub, const char *from, const char *to)
{
    bool slash = to > from && to[-1] == '/' && (to - from == 1 || to[-2] == '#' || to[-2] == '.');
    put_free(scrub, from, slash ? to - 1 : to);
    if (slash) put(scrub, to - 1, to);
}

static void
put_labels(struct scrub *scrub, struct fxt_string labels)
{
    const char *at = labels.ptr, *end = labels.ptr + labels.len;
    while (at < end) {
        uint32_t run;
        struct fxt_string rest = {.ptr = at, .len = (uint32_t)(end - at)}, label = frames_take_label(&rest, &run);
        struct label_parts parts = label_parts(label);
        bool place = parts.path.len > 0;
        const char *label_end = label.ptr + label.len, *method_end = place ? label.ptr + parts.method.len : label_end;
        put_method(scrub, label.ptr, method_end);
        if (place) {
            const char *path_end = parts.path.ptr + parts.path.len;
            put(scrub, method_end, parts.path.ptr);
            put_path(scrub, parts.path.ptr, path_end);
            put(scrub, path_end, label_end);
        }
        put(scrub, label_end, rest.ptr); /* " x2 < " */
        at = rest.ptr;
    }
}

static void
put_compilation(struct scrub *scrub, const char *from, const char *to)
{
    const char *at = memchr(from, '@', (size_t)(to - from));
    if (at != NULL) put_method(scrub, from, at++);
    if (at != NULL) put(scrub, at - 1, at);
    put_path(scrub, at != NULL ? at : from, to);
}

static void
put_text(struct scrub *scrub, enum scrub_role role, const char *text, size_t len)
{
    switch (scrub->keep[SCRUB_PATH] ? SCRUB_ROLES : role) {
      case SCRUB_LABEL: put_labels(scrub, (struct fxt_string){.ptr = text, .len = (uint32_t)len}); break;
      case SCRUB_COMPILATION: put_compilation(scrub, text, text + len); break;
      case SCRUB_PATH: put_path(scrub, text, text + len); break;
      case SCRUB_ROLES: put(scrub, text, text + len); break;
      default: put_free(scrub, text, text + len); break;
    }
}

struct fxt_string
scrub_text(struct scrub *scrub, enum scrub_role role, struct fxt_string text)
{
    if (role == SCRUB_WORD) return text;
    if (scrub->capacity < (size_t)text.len + 1) {
        scrub->capacity = 2 * ((size_t)text.len + 1);
        scrub->text = xrealloc(scrub->text, scrub->capacity, 1);
        scrub->result = xrealloc(scrub->result, scrub->capacity, 1);
    }
    size_t len = text.len;
    scrub->result_len = 0;
    memcpy(scrub->text, text.ptr, len);
    scrub->text[len] = '\0';
    if (role >= SCRUB_COMMAND && !scrub->keep[role]) {
        scrub->result_len = cover(scrub->result, len);
    }
    else {
        len = remove_secrets(scrub, scrub->text, len);
        len = remove_matches(scrub, scrub->text, len);
        put_text(scrub, role, scrub->text, len);
    }
    scrub->changed += scrub->result_len != text.len || memcmp(scrub->result, text.ptr, text.len) != 0;
    return (struct fxt_string){.ptr = scrub->result, .len = (uint32_t)scrub->result_len};
}

void
scrub_free(struct scrub *scrub)
{
    for (unsigned i = 0; i < scrub->pattern_count; i++) pattern_free(scrub->patterns[i]);
    scrub_forget_secrets(scrub);
    free(scrub->secrets);
    free(scrub->text);
    free(scrub->result);
}
