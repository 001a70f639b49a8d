/* scrub_text.c - see scrub_text.h */
#define _GNU_SOURCE /* memmem */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

/* What separates a path from the text around it. */
static bool
path_char_p(char c)
{
    return !isspace((unsigned char)c) && strchr("()<>'\"`,;=|", c) == NULL;
}

/* A path is absolute, or begins with a dot or ~, or its last part has an ending: app/models/user.rb, not I/O. */
static bool
path_p(const char *word, size_t bytes, size_t last)
{
    if (word[0] == '/' || word[0] == '~' || word[0] == '.') return true;
    const char *dot = memchr(word + last, '.', bytes - last);
    return dot != NULL && dot + 1 < word + bytes && isalnum((unsigned char)dot[1]);
}

/* Where the place of a label begins: "Foo#bar (two words/bin/runner:7)", "block (2 levels) in f (x.rb:1)". `len`: it
 * has none. */
static size_t
place_of_label(const char *text, size_t len)
{
    static const char levels[] = " levels) ", eval_at[] = "(eval at ";
    size_t digits = 0;
    while (digits + 1 < len && isdigit((unsigned char)text[len - 2 - digits])) digits++;
    if (digits == 0 || text[len - 1] != ')' || len < digits + 2 || text[len - 2 - digits] != ':') return len;
    for (size_t at = 0; at + 2 < len; at++) {
        if (text[at] != ' ' || text[at + 1] != '(') continue;
        size_t place = at + 2, number = strspn(text + place, "0123456789");
        if (number > 0 && strncmp(text + place + number, levels, strlen(levels)) == 0) continue;
        if (strncmp(text + place, eval_at, strlen(eval_at)) == 0) place += strlen(eval_at);
        return place;
    }
    return len;
}

/* A star for the folders of a path, which lies from `from` on and ends with the text. Returns the new length. */
static size_t
shorten_path(char *text, size_t len, size_t from)
{
    const char *slash = from < len ? memrchr(text + from, '/', len - from) : NULL;
    if (slash == NULL || slash == text + from) return len;
    size_t last = (size_t)(slash - text);
    text[from] = '*';
    memmove(text + from + 1, text + last, len - last + 1);
    return len - (last - from - 1);
}

static size_t
shorten_paths(char *text, size_t len)
{
    len = shorten_path(text, len, place_of_label(text, len));
    for (size_t at = 0; at < len;) {
        size_t end = at;
        while (end < len && path_char_p(text[end])) end++;
        const char *root = memmem(text + at, end - at, ":/", 2); /* #<File:/home/me> */
        if (root != NULL) at = (size_t)(root + 1 - text);
        const char *slash = memrchr(text + at, '/', end - at);
        size_t last = slash != NULL ? (size_t)(slash - text) : at;
        if (last > at && path_p(text + at, end - at, last + 1 - at)) {
            text[at] = '*';
            memmove(text + at + 1, text + last, len - last + 1);
            len -= last - at - 1;
            end -= last - at - 1;
        }
        at = end + 1;
    }
    return len;
}

struct fxt_string
scrub_text(struct scrub *scrub, struct fxt_string text)
{
    if (scrub->capacity < (size_t)text.len + 1) {
        scrub->capacity = 2 * ((size_t)text.len + 1);
        scrub->text = xrealloc(scrub->text, scrub->capacity, 1);
    }
    memcpy(scrub->text, text.ptr, text.len);
    scrub->text[text.len] = '\0';
    size_t len = remove_secrets(scrub, scrub->text, text.len);
    len = remove_matches(scrub, scrub->text, len);
    if (!scrub->keep_paths) len = shorten_paths(scrub->text, len);
    scrub->changed += len != text.len || memcmp(scrub->text, text.ptr, len) != 0;
    return (struct fxt_string){.ptr = scrub->text, .len = (uint32_t)len};
}

void
scrub_free(struct scrub *scrub)
{
    for (unsigned i = 0; i < scrub->pattern_count; i++) pattern_free(scrub->patterns[i]);
    scrub_forget_secrets(scrub);
    free(scrub->secrets);
    free(scrub->text);
}
