/* json.c - see json.h. A stream belongs to one thread, so it is not locked for each byte. */
#define _GNU_SOURCE /* fwrite_unlocked, vasprintf */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/json.h"
#include "base/portable.h"
#include "base/xalloc.h"

enum { DEPTH_MAX = 32, DIGITS_MAX = 20 };

struct json
json_to(FILE *out)
{
    return (struct json){.out = out, .first = true};
}

struct json
json_members_to(FILE *out)
{
    return (struct json){.out = out, .depth = 1};
}

/* --- nesting ----------------------------------------------------------------------------------- */

static void
require(bool nested)
{
    if (!nested) abort(); /* of a caller */
}

static bool
in_array(const struct json *json)
{
    return json->arrays & 1;
}

static void
begin_line(struct json *json)
{
    if (!json->line) return;
    json->line = false;
    putc_unlocked('\n', json->out);
    for (unsigned i = 0; i < json->indent; i++) putc_unlocked(' ', json->out);
}

/* What comes before a key, or a value without one. */
static void
separate(struct json *json)
{
    if (!json->first) putc_unlocked(',', json->out);
    json->first = json->depth == 0; /* there, each value is a text of its own */
    begin_line(json);
}

static void
begin_value(struct json *json)
{
    require(json->keyed != (json->depth == 0 || in_array(json)));
    if (!json->keyed) separate(json);
    json->keyed = false;
}

static void
begin_nested(struct json *json, bool array)
{
    begin_value(json);
    require(json->depth++ < DEPTH_MAX);
    json->arrays = json->arrays << 1 | array;
    json->first = true;
    putc_unlocked(array ? '[' : '{', json->out);
}

void
json_object(struct json *json)
{
    begin_nested(json, false);
}

void
json_array(struct json *json)
{
    begin_nested(json, true);
}

void
json_end(struct json *json)
{
    require(json->depth > 0 && !json->keyed);
    begin_line(json);
    putc_unlocked(in_array(json) ? ']' : '}', json->out);
    json->arrays >>= 1;
    json->first = --json->depth == 0;
}

struct json *
json_line_indented(struct json *json, unsigned indent)
{
    json->line = true;
    json->indent = indent;
    return json;
}

struct json *
json_line(struct json *json)
{
    return json_line_indented(json, 0);
}

/* --- texts ------------------------------------------------------------------------------------- */

static void
put(struct json *json, const char *bytes, size_t count)
{
    fwrite_unlocked(bytes, 1, count, json->out);
}

/* Writes one character that is not plain ASCII, or that HTML would read. Returns the bytes read. */
static unsigned
put_character(struct json *json, const char *at, size_t len)
{
    uint32_t codepoint;
    unsigned taken = utf8_decode(at, len, &codepoint);
    if (taken == 0) put(json, "\\ufffd", 6);
    else if (codepoint == '"' || codepoint == '\\') put(json, (const char[]){'\\', (char)codepoint}, 2);
    else if (escape_needed(codepoint) || codepoint == '<') fprintf(json->out, "\\u%04x", (unsigned)codepoint);
    else put(json, at, taken);
    return taken > 0 ? taken : 1;
}

static void
put_text(struct json *json, struct fxt_string text)
{
    putc_unlocked('"', json->out);
    for (uint32_t at = 0; at < text.len;) {
        uint32_t plain = plain_ascii(text.ptr + at, text.len - at);
        const char *tag = json->in_html ? memchr(text.ptr + at, '<', plain) : NULL;
        if (tag != NULL) plain = (uint32_t)(tag - text.ptr) - at;
        put(json, text.ptr + at, plain);
        at += plain;
        if (at < text.len) at += put_character(json, text.ptr + at, text.len - at);
    }
    putc_unlocked('"', json->out);
}

struct json *
json_key_text(struct json *json, struct fxt_string key)
{
    require(json->depth > 0 && !in_array(json) && !json->keyed);
    separate(json);
    put_text(json, key);
    putc_unlocked(':', json->out);
    json->keyed = true;
    return json;
}

struct json *
json_key(struct json *json, const char *key)
{
    return json_key_text(json, text_of(key));
}

void
json_text(struct json *json, struct fxt_string text)
{
    begin_value(json);
    put_text(json, text);
}

void
json_c_text(struct json *json, const char *text)
{
    json_text(json, text_of(text));
}

void
json_textf(struct json *json, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    json_text(json, (struct fxt_string){.ptr = text, .len = len > 0 ? (uint32_t)len : 0});
    if (len >= 0) free(text);
}

void
json_begin_plain(struct json *json)
{
    begin_value(json);
    putc_unlocked('"', json->out);
}

void
json_end_plain(struct json *json)
{
    putc_unlocked('"', json->out);
}

void
json_members(struct json *json, struct fxt_string members)
{
    require(json->depth > 0 && !in_array(json) && !json->keyed && !json->first);
    put(json, members.ptr, members.len);
}

/* --- other values -------------------------------------------------------------------------------- */

/* At least `least` digits. */
static void
put_digits(struct json *json, uint64_t number, unsigned least)
{
    char digits[DIGITS_MAX], *at = digits + DIGITS_MAX;
    for (; number > 0 || least > 0; number /= 10, least -= least > 0) *--at = (char)('0' + number % 10);
    put(json, at, (size_t)(digits + DIGITS_MAX - at));
}

/* Begins a number; returns it without its sign. */
static uint64_t
put_sign(struct json *json, int64_t number)
{
    begin_value(json);
    if (number >= 0) return (uint64_t)number;
    putc_unlocked('-', json->out);
    return (uint64_t)0 - (uint64_t)number;
}

void
json_integer(struct json *json, int64_t number)
{
    put_digits(json, put_sign(json, number), 1);
}

void
json_unsigned(struct json *json, uint64_t number)
{
    begin_value(json);
    put_digits(json, number, 1);
}

void
json_decimal(struct json *json, int64_t number, unsigned decimals)
{
    uint64_t whole = put_sign(json, number), unit = 1;
    for (unsigned i = 0; i < decimals; i++) unit *= 10;
    put_digits(json, whole / unit, 1);
    putc_unlocked('.', json->out);
    put_digits(json, whole % unit, decimals);
}

void
json_double(struct json *json, double number, int digits)
{
    begin_value(json);
    fprintf(json->out, isfinite(number) ? "%.*g" : "\"%.*f\"", digits, number);
}

static void
put_word(struct json *json, const char *word)
{
    begin_value(json);
    put(json, word, strlen(word));
}

void
json_bool(struct json *json, bool value)
{
    put_word(json, value ? "true" : "false");
}

void
json_null(struct json *json)
{
    put_word(json, "null");
}

/* --- several values ------------------------------------------------------------------------------ */

void
json_all_numbers(struct json *json, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) json_unsigned(json, numbers[i]);
}

void
json_array_of(struct json *json, const uint64_t *numbers, size_t count)
{
    json_array(json);
    json_all_numbers(json, numbers, count);
    json_end(json);
}

void
json_all_texts(struct json *json, const char *const *texts, size_t count)
{
    for (size_t i = 0; i + 1 < count; i += 2) json_c_text(json_key(json, texts[i]), texts[i + 1]);
}

void
json_object_of(struct json *json, const char *const *texts, size_t count)
{
    json_object(json);
    json_all_texts(json, texts, count);
    json_end(json);
}

void
json_all_counts(struct json *json, const struct json_count *counts, size_t count)
{
    for (size_t i = 0; i < count; i++) json_unsigned(json_key(json, counts[i].key), counts[i].number);
}

/* --- reading -------------------------------------------------------------------------------------- */

long
json_number_in(const char *text, const char *key)
{
    char *member = xformat("\"%s\":", key);
    const char *at = strstr(text, member);
    long number = at == NULL ? 0 : strtol(at + strlen(member), NULL, 10);
    free(member);
    return number;
}
