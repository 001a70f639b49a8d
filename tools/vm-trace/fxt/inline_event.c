/* inline_event.c - see inline_event.h */
#include <string.h>

#include "fxt/inline_event.h"

static struct fxt_string
shortened(struct fxt_string text)
{
    if (text.len > INLINE_EVENT_TEXT) text.len = INLINE_EVENT_TEXT;
    return text;
}

static unsigned
reference(struct fxt_string text)
{
    return text.len > 0 ? FXT_STRING_REF_INLINE | text.len : 0;
}

static uint64_t *
add_text(uint64_t *at, struct fxt_string text)
{
    size_t words = fxt_words(text.len);
    for (size_t i = 0; i < words; i++) at[i] = 0;
    memcpy(at, text.ptr, text.len);
    return at + words;
}

uint64_t *
inline_event_begin(uint64_t *words, const struct inline_event *event)
{
    struct fxt_string category = shortened(event->category), name = shortened(event->name);
    words[0] = fxt_event_header(event->type, 0, 0, 0, reference(category), reference(name));
    words[1] = event->ticks;
    words[2] = event->pid;
    words[3] = event->tid;
    return add_text(add_text(words + 4, category), name);
}

struct fxt_record
inline_event_end(uint64_t *words, const uint64_t *end, unsigned args, uint32_t provider)
{
    size_t size = (size_t)(end - words);
    words[0] |= fxt_field(size, FXT_HEADER_SIZE) | fxt_field(args, FXT_EVENT_ARGS);
    return (struct fxt_record){.type = FXT_RECORD_EVENT, .header = words[0], .bytes = (const uint8_t *)words,
                               .words = size, .provider = provider};
}
