#ifndef JSON_H
#define JSON_H
/* json.h - writes JSON to a stream. Brackets, quotes, commas and escapes come from here only.
 *
 *      struct json json = json_to(out);
 *      json_object(&json);
 *      json_integer(json_key(&json, "ts"), ts_ns);
 *      json_array(json_key(&json, "stack"));
 *      ...
 *      json_end(&json);
 *      json_end(&json);
 *
 * Nothing is kept but the nesting, so an output can have any size. Aborts if a value has no key in an
 * object or one in an array, or if an end has no begin.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/pool.h"

struct json {
    FILE *out;
    uint32_t arrays;  /* a bit for each open bracket, the innermost one is the lowest: whether it is an array */
    unsigned depth;
    bool first;       /* no comma is due */
    bool keyed;       /* the value of a key is due */
    bool line;        /* the next key, value or end begins a line */
    unsigned indent;  /* of that line */
    bool in_html;     /* a text never ends the script element that it is in */
};

struct json json_to(FILE *out);

void json_object(struct json *json);
void json_array(struct json *json);
/* Ends the innermost of them. */
void json_end(struct json *json);

/* Return json, for the value. */
struct json *json_key(struct json *json, const char *key);
struct json *json_key_text(struct json *json, struct fxt_string key);
/* The next key, value or end begins a line. Return json. */
struct json *json_line(struct json *json);
struct json *json_line_indented(struct json *json, unsigned indent);

/* Bytes that are not UTF-8 become U+FFFD, so the output is always valid JSON. */
void json_text(struct json *json, struct fxt_string text);
void json_c_text(struct json *json, const char *text);
void json_textf(struct json *json, const char *format, ...) __attribute__((format(printf, 2, 3)));
void json_integer(struct json *json, int64_t number);
void json_unsigned(struct json *json, uint64_t number);
/* number / 10^decimals, with all decimals. */
void json_decimal(struct json *json, int64_t number, unsigned decimals);
/* JSON has no infinity or NaN: they become texts. */
void json_double(struct json *json, double number, int digits);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

/* Several at once: unsigned numbers, as elements of an array or as an array of their own; members with a
 * text, a key and a text in turn, of an object or as an object of their own; members with an unsigned
 * number, each as {key, number}. */
#define json_numbers(json, ...) json_all_numbers((json), JSON_LIST(uint64_t, __VA_ARGS__))
#define json_tuple(json, ...) json_array_of((json), JSON_LIST(uint64_t, __VA_ARGS__))
#define json_texts(json, ...) json_all_texts((json), JSON_LIST(char *const, __VA_ARGS__))
#define json_text_object(json, ...) json_object_of((json), JSON_LIST(char *const, __VA_ARGS__))
#define json_counts(json, ...) json_all_counts((json), JSON_LIST(struct json_count, __VA_ARGS__))
#define JSON_LIST(type, ...) (const type[]){__VA_ARGS__}, sizeof (const type[]){__VA_ARGS__} / sizeof(type)
struct json_count {
    const char *key;
    uint64_t number;
};
void json_all_counts(struct json *json, const struct json_count *counts, size_t count);
void json_all_numbers(struct json *json, const uint64_t *numbers, size_t count);
void json_array_of(struct json *json, const uint64_t *numbers, size_t count);
void json_all_texts(struct json *json, const char *const *texts, size_t count);
void json_object_of(struct json *json, const char *const *texts, size_t count);

/* A text that needs no escapes, and that the caller writes to the stream between the two. */
void json_begin_plain(struct json *json);
void json_end_plain(struct json *json);
/* A writer of further members of an object, each after a comma: their text, or several such texts, go
 * into an object that has a member already. */
struct json json_members_to(FILE *out);
void json_members(struct json *json, struct fxt_string members);

/* The number of the first member with that key in a text; 0 if there is none. */
long json_number_in(const char *text, const char *key);

#endif
