/* frames.c - see frames.h */
#define _GNU_SOURCE /* memmem */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frames.h"

static struct fxt_string
part(const char *from, const char *to)
{
    return (struct fxt_string){.ptr = from, .len = (uint32_t)(to - from)};
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads the digits from `at` to `end`. Returns false for anything else, and for more than 32
 * bits. */
static bool
whole_number(const char *at, const char *end, uint32_t *number_out)
{
    uint64_t number = 0;
    if (at == end) return false;
    for (; at < end; at++) {
        if (!is_digit(*at)) return false;
        number = number * 10 + (uint64_t)(*at - '0');
        if (number > UINT32_MAX) return false;
    }
    *number_out = (uint32_t)number;
    return true;
}

/* Finds " xN" at the end of a part. Returns its start, or the end of the part. Labels end in
 * ")". */
static const char *
run_suffix(struct fxt_string text, uint32_t *run_out)
{
    const char *end = text.ptr + text.len, *at = end;
    while (at > text.ptr && is_digit(at[-1])) at--;
    *run_out = 1;
    if (at - text.ptr < 3 || memcmp(at - 3, ") x", 3) != 0) return end;
    return whole_number(at, end, run_out) && *run_out > 0 ? at - 2 : end;
}

/* The end of the label at `at`: the next " < " after a complete label. A method can be called
 * `<`, and a block in it is "block in <"; that " < " is not a separator. */
static const char *
end_of_label(const char *at, const char *end)
{
    for (const char *found = at; (found = memmem(found, (size_t)(end - found), " < ", 3)) != NULL; found++) {
        uint32_t run;
        struct fxt_string label = part(at, found);
        const char *label_end = run_suffix(label, &run);
        if (label_end > at && label_end[-1] == ')') return found;
    }
    return end;
}

static bool
more_frames(struct fxt_string text, uint32_t *left_out)
{
    static const char many[] = " more frames", one[] = " more frame";
    const char *space = memchr(text.ptr, ' ', text.len);
    if (space == NULL || !whole_number(text.ptr, space, left_out)) return false;
    struct fxt_string rest = part(space, text.ptr + text.len);
    return fxt_string_is(rest, many) || fxt_string_is(rest, one);
}

bool
frames_rest_text(const struct fxt_arg *rest, char buffer[REST_TEXT_BYTES], struct fxt_string *text_out)
{
    uint64_t count;
    if (rest->type == FXT_ARG_STRING) {
        *text_out = rest->string;
        return true;
    }
    if (!fxt_arg_uint(rest, &count) || count == 0 || count > UINT32_MAX) return false;
    snprintf(buffer, REST_TEXT_BYTES, "%" PRIu64 " more frame%s", count, count == 1 ? "" : "s");
    *text_out = text_of(buffer);
    return true;
}

struct fxt_string
frames_take_label(struct fxt_string *rest, uint32_t *run_out)
{
    const char *end = rest->ptr + rest->len, *label_end = end_of_label(rest->ptr, end);
    struct fxt_string label = part(rest->ptr, label_end);
    label.len = (uint32_t)(run_suffix(label, run_out) - label.ptr);
    *rest = part(label_end == end ? end : label_end + 3, end);
    return label;
}

void
frames_of_rest(struct frames *frames, struct pool *pool, struct fxt_string rest)
{
    frames->count = frames->left_out = 0;
    while (rest.len > 0) {
        struct frame frame;
        struct fxt_string text = frames_take_label(&rest, &frame.run);
        if (rest.len == 0 && more_frames(text, &frames->left_out)) break;
        frame.label = pool_id(pool, text);
        make_room(frames->list, frames->count, frames->capacity);
        frames->list[frames->count++] = frame;
    }
}
