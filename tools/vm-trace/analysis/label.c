/* label.c - see label.h */
#define _GNU_SOURCE /* memmem */
#include <stdlib.h>
#include <string.h>

#include "analysis/label.h"
#include "base/xalloc.h"

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Finds " (PATH:LINE)", or returns NULL. A method can be "block (2 levels) in foo" or "<top
 * (required)>", and a path can contain anything, even parentheses. */
static const char *
location_of(struct fxt_string label)
{
    static const char levels[] = " levels) in ", required[] = "required)>";
    const char *end = label.ptr + label.len;
    if (label.len == 0 || end[-1] != ')') return NULL;
    for (const char *at = label.ptr; (at = memmem(at, (size_t)(end - at), " (", 2)) != NULL; at++) {
        const char *number = at + 2, *after = number;
        while (is_digit(*after)) after++;
        if (after > number && (size_t)(end - after) > sizeof levels - 1 &&
            memcmp(after, levels, sizeof levels - 1) == 0)
            continue;
        if ((size_t)(end - number) > sizeof required - 1 && memcmp(number, required, sizeof required - 1) == 0)
            continue;
        return at;
    }
    return NULL;
}

/* Finds the colon before the line number that ends at `end`, or returns NULL. A line can be negative. */
static const char *
colon_of_line(const char *path, const char *end)
{
    const char *number = end;
    while (is_digit(number[-1])) number--;
    if (number == end) return NULL;
    if (number[-1] == '-') number--;
    return number > path && number[-1] == ':' ? number - 1 : NULL;
}

static bool
ends_with(struct fxt_string text, const char *end)
{
    size_t len = strlen(end);
    return text.len >= len && memcmp(text.ptr + text.len - len, end, len) == 0;
}

/* "...[7 bytes cut]" at the end */
static bool
is_cut(struct fxt_string label)
{
    static const char before[] = "...[", after[] = " bytes cut]";
    if (!ends_with(label, after)) return false;
    const char *end = label.ptr + label.len - (sizeof after - 1), *number = end;
    while (number > label.ptr && is_digit(number[-1])) number--;
    label.len = (uint32_t)(number - label.ptr);
    return number < end && ends_with(label, before);
}

bool
label_has_place(struct fxt_string label)
{
    const char *location = location_of(label);
    if (location != NULL && colon_of_line(location + 2, label.ptr + label.len - 1) != NULL) return true;
    return ends_with(label, " (<cfunc>)") || is_cut(label);
}

struct label_parts
label_parts(struct fxt_string label)
{
    struct label_parts parts = {.method = label, .path = {.ptr = ""}};
    const char *location = location_of(label);
    if (location == NULL) return parts;
    const char *path = location + 2, *end = label.ptr + label.len - 1, *colon = colon_of_line(path, end);
    if (colon != NULL && colon > path) {
        parts.line = strtoll(colon + 1, NULL, 10); /* stops at the parenthesis */
        end = colon;
    }
    parts.method.len = (uint32_t)(location - label.ptr);
    parts.path = (struct fxt_string){.ptr = path, .len = (uint32_t)(end - path)};
    return parts;
}

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == ':' ||
           (unsigned char)c >= 0x80;
}

struct label_owner
label_owner(struct fxt_string method)
{
    static const char *const bodies[] = {"block ", "rescue ", "ensure "};
    size_t at = 0;
    for (unsigned i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        size_t len = strlen(bodies[i]);
        if (method.len < len || memcmp(method.ptr, bodies[i], len) != 0) continue;
        for (const char *in; (in = memmem(method.ptr + at, method.len - at, " in ", 4)) != NULL;)
            at = (size_t)(in - method.ptr) + 4;
    }
    struct label_owner owner = {.at = at,
                                .possible = at < method.len && method.ptr[at] != '<' && method.ptr[at] != '('};
    if (!owner.possible || !((method.ptr[at] >= 'A' && method.ptr[at] <= 'Z') || (unsigned char)method.ptr[at] >= 0x80))
        return owner;
    size_t end = at;
    while (end < method.len && is_word(method.ptr[end])) end++;
    if (end + 1 < method.len && (method.ptr[end] == '#' || method.ptr[end] == '.')) owner.bytes = end + 1 - at;
    return owner;
}

size_t
label_method_bytes(struct fxt_string label)
{
    return label_parts(label).method.len;
}

size_t
label_path_end(struct fxt_string label)
{
    struct label_parts parts = label_parts(label);
    return parts.path.len == 0 ? label.len : (size_t)(parts.path.ptr + parts.path.len - label.ptr);
}

uint32_t
label_without_line(struct pool *pool, uint32_t label)
{
    struct fxt_string text = pool_string(pool, label);
    size_t end = label_path_end(text);
    if (end == text.len) return label;
    char *copy = xrealloc(NULL, end + 2, 1);
    memcpy(copy, text.ptr, end);
    copy[end] = ')';
    uint32_t id = pool_intern(pool, copy, end + 1);
    free(copy);
    return id;
}

uint32_t
label_path_and_line(struct pool *pool, uint32_t label)
{
    struct fxt_string text = pool_string(pool, label);
    size_t method = label_method_bytes(text);
    return pool_intern(pool, text.ptr + method, text.len - method);
}
