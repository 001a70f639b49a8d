/* scrub_text.c - see scrub_text.h */
#define _GNU_SOURCE /* memmem, memrchr, REG_STARTEND */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frames.h"
#include "analysis/label.h"
#include "scrub/scrub_text.h"
#include "base/portable.h"
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
    char *copy = xcalloc(text.len, 1);
    memcpy(copy, text.ptr, text.len);
    make_room(scrub->secrets, scrub->secret_count, scrub->secret_capacity);
    scrub->secrets[scrub->secret_count++] = (struct scrub_secret){.text = copy, .len = text.len, .word = word};
    scrub->sorted = false;
}

void
scrub_forget_secrets(struct scrub *scrub)
{
    for (uint32_t i = 0; i < scrub->secret_count; i++) free(scrub->secrets[i].text);
    scrub->secret_count = 0;
    scrub->sorted = false;
}

static int
compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

/* Of equal texts, one that is removed everywhere comes first. */
static int
compare_secrets(const void *one, const void *other)
{
    const struct scrub_secret *a = one, *b = other;
    int order = compare_bytes(a->text, a->len, b->text, b->len);
    return order != 0 ? order : a->word - b->word;
}

static bool
begins_with(const struct scrub_secret *secret, const struct scrub_secret *with)
{
    return with->len <= secret->len && memcmp(secret->text, with->text, with->len) == 0;
}

/* A trace of many processes has as many command lines, so they are not looked for one by one. */
static void
sort_secrets(struct scrub *scrub)
{
    struct scrub_secret *secrets = scrub->secrets;
    uint32_t count = 0;
    if (scrub->secret_count > 0) qsort(secrets, scrub->secret_count, sizeof *secrets, compare_secrets);
    memset(scrub->begins, 0, sizeof scrub->begins);
    for (uint32_t i = 0; i < scrub->secret_count; i++) {
        struct scrub_secret secret = secrets[i];
        uint32_t prefix = count;
        if (count > 0 && secret.len == secrets[count - 1].len && begins_with(&secret, &secrets[count - 1])) {
            free(secret.text);
            continue;
        }
        while (prefix > 0 && !begins_with(&secret, &secrets[prefix - 1])) prefix = secrets[prefix - 1].prefix;
        secret.prefix = prefix;
        secrets[count++] = secret;
        scrub->begins[(unsigned char)*secret.text + 1] = count;
    }
    scrub->secret_count = count;
    for (unsigned i = 1; i < UCHAR_MAX + 2; i++) {
        if (scrub->begins[i] == 0) scrub->begins[i] = scrub->begins[i - 1];
    }
    scrub->sorted = true;
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

/* The bytes of the longest secret at a place in a text, or 0. `before`: the byte before it. */
static size_t
secret_bytes(const struct scrub *scrub, const char *text, size_t len, char before)
{
    uint32_t begin = scrub->begins[(unsigned char)*text], low = begin, high = scrub->begins[(unsigned char)*text + 1];
    while (low < high) { /* to the first one behind the text: those that the text begins with come before it */
        uint32_t middle = low + (high - low) / 2;
        const struct scrub_secret *secret = &scrub->secrets[middle];
        if (compare_bytes(secret->text, secret->len, text, len) <= 0) low = middle + 1;
        else high = middle;
    }
    if (low == begin) return 0;
    const struct scrub_secret *secret = &scrub->secrets[low - 1];
    size_t same = 0;
    while (same < secret->len && same < len && secret->text[same] == text[same]) same++;
    for (uint32_t number = low; number != 0; number = secret->prefix) {
        secret = &scrub->secrets[number - 1];
        if (secret->len > same) continue;
        bool part = word_char_p(before) || (secret->len < len && word_char_p(text[secret->len]));
        if (!secret->word || !part) return secret->len;
    }
    return 0;
}

/* What overlaps is removed as a whole: a command line may begin with another one. */
static size_t
remove_secrets(const struct scrub *scrub, char *text, size_t len)
{
    size_t kept = 0;
    for (size_t at = 0; at < len;) {
        size_t end = at + secret_bytes(scrub, text + at, len - at, kept > 0 ? text[kept - 1] : '\0');
        for (size_t next = at + 1; next < end; next++) {
            size_t bytes = secret_bytes(scrub, text + next, len - next, text[next - 1]);
            if (next + bytes > end) end = next + bytes;
        }
        if (end == at) {
            text[kept++] = text[at++];
        }
        else {
            kept += cover(text + kept, end - at);
            at = end;
        }
    }
    text[kept] = '\0';
    return kept;
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

/* Its lines stay: other events have their numbers. */
static void
put_code(struct scrub *scrub, const char *from, const char *to)
{
    for (const char *at = from; at < to;) {
        const char *newline = memchr(at, '\n', (size_t)(to - at)), *end = newline != NULL ? newline + 1 : to;
        if (at == from) put_compilation(scrub, at, end);
        else put_free(scrub, at, end);
        at = end;
    }
}

static void
put_text(struct scrub *scrub, enum scrub_role role, const char *text, size_t len)
{
    switch (scrub->keep[SCRUB_PATH] ? SCRUB_ROLES : role) {
      case SCRUB_LABEL: put_labels(scrub, (struct fxt_string){.ptr = text, .len = (uint32_t)len}); break;
      case SCRUB_COMPILATION: put_compilation(scrub, text, text + len); break;
      case SCRUB_CODE: put_code(scrub, text, text + len); break;
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
        if (!scrub->sorted) sort_secrets(scrub);
        if (scrub->secret_count > 0) len = remove_secrets(scrub, scrub->text, len);
        if (len != text.len) len = remove_secrets(scrub, scrub->text, len); /* beside stars, a name may have become a word */
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
