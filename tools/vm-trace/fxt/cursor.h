#ifndef CURSOR_H
#define CURSOR_H
/* cursor.h - a position within one record, with its bounds. A read past the end fails and
 * changes nothing. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vm_trace/schema/fxt.h"

struct cursor {
    const uint8_t *record;
    size_t words; /* of the record */
    size_t at;    /* next word; past the end if an argument's size says so */
};

static inline bool
cursor_words(struct cursor *cursor, size_t words, const uint8_t **bytes_out)
{
    if (cursor->at > cursor->words || words > cursor->words - cursor->at) return false;
    *bytes_out = cursor->record + cursor->at * FXT_WORD_BYTES;
    cursor->at += words;
    return true;
}

static inline bool
cursor_u64(struct cursor *cursor, uint64_t *value_out)
{
    const uint8_t *bytes;
    if (!cursor_words(cursor, 1, &bytes)) return false;
    memcpy(value_out, bytes, sizeof *value_out);
    return true;
}

/* Reads bytes that are padded to a whole word. */
static inline bool
cursor_bytes(struct cursor *cursor, size_t len, const char **bytes_out)
{
    const uint8_t *bytes;
    if (!cursor_words(cursor, fxt_words(len), &bytes)) return false;
    *bytes_out = (const char *)bytes;
    return true;
}

#endif
