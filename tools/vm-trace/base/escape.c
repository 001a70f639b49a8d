/* escape.c - see escape.h */
#include <string.h>

#include "base/escape.h"

unsigned
utf8_decode(const char *ptr, size_t len, uint32_t *codepoint_out)
{
    const unsigned char *bytes = (const unsigned char *)ptr;
    uint32_t codepoint = bytes[0];
    *codepoint_out = codepoint;
    if (codepoint < 0x80) return 1;

    unsigned more;
    uint32_t least; /* an overlong form is not well-formed */
    if (codepoint >= 0xc2 && codepoint <= 0xdf) more = 1, least = 0x80, codepoint &= 0x1f;
    else if ((codepoint & 0xf0) == 0xe0) more = 2, least = 0x800, codepoint &= 0x0f;
    else if (codepoint >= 0xf0 && codepoint <= 0xf4) more = 3, least = 0x10000, codepoint &= 0x07;
    else return 0;
    if (len <= more) return 0;
    for (unsigned i = 1; i <= more; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;
        codepoint = codepoint << 6 | (bytes[i] & 0x3f);
    }
    if (codepoint < least || codepoint > 0x10ffff || (codepoint >= 0xd800 && codepoint <= 0xdfff)) return 0;
    *codepoint_out = codepoint;
    return more + 1;
}

bool
escape_needed(uint32_t codepoint)
{
    return codepoint < 0x20 || (codepoint >= 0x7f && codepoint < 0xa0) || codepoint == 0x2028 || codepoint == 0x2029 ||
           codepoint == 0x200e || codepoint == 0x200f || (codepoint >= 0x202a && codepoint <= 0x202e) ||
           (codepoint >= 0x2066 && codepoint <= 0x2069) || codepoint == 0xfeff;
}

/* Escapes one character, if necessary, into at least 8 bytes. Sets *taken_out to the bytes read,
 * and returns the bytes written. */
static unsigned
escape_one(const char *ptr, size_t len, char text[8], unsigned *taken_out)
{
    uint32_t codepoint;
    unsigned taken = utf8_decode(ptr, len, &codepoint);
    *taken_out = taken ? taken : 1;
    if (taken != 0 && !escape_needed(codepoint)) {
        memcpy(text, ptr, taken);
        return taken;
    }
    switch (taken ? codepoint : UINT32_MAX) {
      case '\n': return (unsigned)snprintf(text, 8, "\\n");
      case '\t': return (unsigned)snprintf(text, 8, "\\t");
      case '\r': return (unsigned)snprintf(text, 8, "\\r");
    }
    if (taken > 1 && codepoint > 0xff) return (unsigned)snprintf(text, 8, "\\u%04X", (unsigned)(codepoint & 0xffff));
    return (unsigned)snprintf(text, 8, "\\x%02X", (unsigned)(codepoint & 0xff));
}

void
print_escaped(FILE *out, struct fxt_string string)
{
    char text[8];
    for (uint32_t at = 0; at < string.len;) {
        unsigned taken;
        unsigned made = escape_one(string.ptr + at, string.len - at, text, &taken);
        fwrite(text, 1, made, out);
        at += taken;
    }
}

char *
escape_into(char *buffer, size_t size, struct fxt_string string)
{
    static const char cut[] = "...";
    char text[8];
    size_t used = 0;
    for (uint32_t at = 0; at < string.len;) {
        unsigned taken;
        unsigned made = escape_one(string.ptr + at, string.len - at, text, &taken);
        if (used + made + sizeof cut > size) {
            memcpy(buffer + used, cut, sizeof cut);
            return buffer;
        }
        memcpy(buffer + used, text, made);
        used += made;
        at += taken;
    }
    buffer[used] = '\0';
    return buffer;
}

uint32_t
plain_ascii(const char *ptr, uint32_t len)
{
    uint32_t count = 0;
    while (count < len && ptr[count] >= ' ' && ptr[count] < 0x7f && ptr[count] != '"' && ptr[count] != '\\') count++;
    return count;
}

/* Behind the first quote. */
static void
print_quoted(FILE *out, struct fxt_string string, void (*print)(FILE *out, struct fxt_string string))
{
    for (const char *quote; (quote = memchr(string.ptr, '"', string.len)) != NULL;) {
        uint32_t len = (uint32_t)(quote - string.ptr);
        print(out, (struct fxt_string){.ptr = string.ptr, .len = len});
        fputs("\"\"", out);
        string.ptr += len + 1;
        string.len -= len + 1;
    }
    print(out, string);
    putc('"', out);
}

void
print_csv(FILE *out, struct fxt_string string)
{
    putc('"', out);
    print_quoted(out, string, print_escaped);
}

/* Also in the full width of East Asian keyboards. A tab or a line end, which some skip, is escaped. */
static bool
begins_formula(struct fxt_string string)
{
    uint32_t first = 0;
    if (string.len > 0) utf8_decode(string.ptr, string.len, &first);
    if (first > 0xff00 && first < 0xff5f) first -= 0xff00 - 0x20;
    return first == '=' || first == '+' || first == '-' || first == '@';
}

void
print_csv_cell(FILE *out, struct fxt_string string)
{
    fputs(begins_formula(string) ? "\"'" : "\"", out);
    print_quoted(out, string, print_escaped);
}

static void
print_escaped_ascii(FILE *out, struct fxt_string string)
{
    for (uint32_t at = 0; at < string.len;) {
        uint32_t plain = plain_ascii(string.ptr + at, string.len - at);
        fwrite(string.ptr + at, 1, plain, out);
        at += plain;
        if (at == string.len) break;
        uint32_t codepoint;
        unsigned taken = utf8_decode(string.ptr + at, string.len - at, &codepoint);
        if (taken > 1) fwrite(string.ptr + at, 1, taken, out);
        else print_escaped(out, (struct fxt_string){.ptr = string.ptr + at, .len = 1});
        at += taken > 1 ? taken : 1;
    }
}

void
print_csv_data(FILE *out, struct fxt_string string)
{
    putc('"', out);
    print_quoted(out, string, print_escaped_ascii);
}
