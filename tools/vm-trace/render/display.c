/* display.c - see display.h */
#define _GNU_SOURCE /* wcwidth */
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <wchar.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "render/display.h"

/* --- widths ------------------------------------------------------------------------------------ */

enum { ZERO_WIDTH_JOINER = 0x200d, EMOJI_STYLE = 0xfe0f };

static bool
skin_tone_p(uint32_t codepoint)
{
    return codepoint >= 0x1f3fb && codepoint <= 0x1f3ff;
}

/* Two of these make a flag. */
static bool
regional_p(uint32_t codepoint)
{
    return codepoint >= 0x1f1e6 && codepoint <= 0x1f1ff;
}

/* The system's table of widths needs a UTF-8 locale, whatever the user's locale is. Nothing else
 * here depends on the character set of the locale. */
static unsigned
codepoint_width(uint32_t codepoint)
{
    static bool ready;
    if (codepoint < 0x80) return 1;
    if (!ready && setlocale(LC_CTYPE, "C.UTF-8") == NULL) setlocale(LC_CTYPE, "en_US.UTF-8");
    ready = true;
    int width = wcwidth((wchar_t)codepoint);
    return width < 0 ? 1 : (unsigned)width;
}

static unsigned
decode(const char *text, size_t len, uint32_t *codepoint_out)
{
    unsigned taken = utf8_decode(text, len, codepoint_out);
    return taken ? taken : 1;
}

size_t
display_next(const char *text, size_t len, unsigned *columns_out)
{
    uint32_t first, codepoint;
    size_t at = decode(text, len, &first);
    unsigned columns = codepoint_width(first);
    bool joined = false, pair = false;
    while (at < len) {
        unsigned taken = decode(text + at, len - at, &codepoint);
        bool flag = regional_p(first) && regional_p(codepoint) && !pair;
        if (!joined && !flag && !skin_tone_p(codepoint) && codepoint_width(codepoint) > 0) break;
        if (flag || (codepoint == EMOJI_STYLE && first > 0x80)) columns = 2;
        pair = pair || flag;
        joined = codepoint == ZERO_WIDTH_JOINER;
        at += taken;
    }
    *columns_out = columns;
    return at;
}

static unsigned
width_of(const char *text, size_t len)
{
    unsigned width = 0, columns;
    for (size_t at = 0; at < len; width += columns) at += display_next(text + at, len - at, &columns);
    return width;
}

unsigned
display_width(const char *text)
{
    return width_of(text, strlen(text));
}

/* --- shortening ----------------------------------------------------------------------------------- */

static const char ellipsis[] = "…";

/* The length of the start of the text that fits, in bytes. */
static size_t
bytes_that_fit(const char *text, size_t len, unsigned room)
{
    size_t at = 0;
    while (at < len) {
        unsigned columns;
        size_t next = display_next(text + at, len - at, &columns);
        if (columns > room) break;
        room -= columns;
        at += next;
    }
    return at;
}

/* The start of the longest end of the text that fits. */
static size_t
end_that_fits(const char *text, size_t len, unsigned room)
{
    unsigned width = width_of(text, len), columns;
    size_t at = 0;
    for (; at < len && width > room; width -= columns) at += display_next(text + at, len - at, &columns);
    return at;
}

/* Copies the text without its middle into a buffer of strlen(text) + sizeof ellipsis bytes. */
static void
cut_middle(char *to, const char *text, size_t len, unsigned columns)
{
    if (width_of(text, len) <= columns) {
        memcpy(to, text, len);
        to[len] = '\0';
        return;
    }
    unsigned kept = columns > 1 ? columns - 1 : 0;
    size_t head = bytes_that_fit(text, len, kept - kept / 2);
    size_t tail = end_that_fits(text, len, kept / 2);
    memcpy(to, text, head);
    memcpy(to + head, ellipsis, sizeof ellipsis - 1);
    memcpy(to + head + sizeof ellipsis - 1, text + tail, len - tail);
    to[head + sizeof ellipsis - 1 + len - tail] = '\0';
}

/* Finds the path in "Foo#bar (/app/foo.rb:3)", or in a text that is a path. NULL if there is
 * none with a folder. */
static const char *
path_in(const char *text)
{
    const char *path = text, *found;
    while ((found = strstr(path, " (")) != NULL) path = found + 2;
    return strchr(path, '/') != NULL ? path : NULL;
}

char *
display_fit(const char *text, unsigned columns)
{
    size_t len = strlen(text);
    char *fit = xcalloc(len + 2 * sizeof ellipsis, 1);
    const char *path = width_of(text, len) > columns ? path_in(text) : NULL;
    if (path == NULL) {
        cut_middle(fit, text, len, columns);
        return fit;
    }
    /* drop folder after folder until the rest fits */
    size_t head = (size_t)(path - text);
    unsigned head_width = width_of(text, head);
    const char *rest = path, *slash;
    while ((slash = strchr(rest + 1, '/')) != NULL) {
        rest = slash;
        if (head_width + 1 + display_width(rest) <= columns) break;
    }
    char *tail = xcalloc(strlen(rest) + sizeof ellipsis, 1);
    sprintf(tail, "%s%s", rest == path ? "" : ellipsis, rest);
    unsigned tail_width = display_width(tail);
    enum { LEAST_HEAD = 6 };
    if (head_width + tail_width <= columns) {
        memcpy(fit, text, head);
        strcpy(fit + head, tail);
    }
    else if (tail_width + LEAST_HEAD <= columns) {
        cut_middle(fit, text, head, columns - tail_width);
        strcat(fit, tail);
    }
    else {
        cut_middle(fit, text, len, columns);
    }
    free(tail);
    return fit;
}

unsigned
display_columns(FILE *out)
{
    enum { LEAST = 40, MOST = 100000, NO_TERMINAL = 100 };
    const char *text = getenv("COLUMNS");
    long columns = text != NULL ? strtol(text, NULL, 10) : 0;
    struct winsize size;
    if (columns <= 0 && ioctl(fileno(out), TIOCGWINSZ, &size) == 0) columns = size.ws_col;
    if (columns <= 0 || columns > MOST) return NO_TERMINAL;
    return columns < LEAST ? LEAST : (unsigned)columns;
}
