#ifndef INLINE_EVENT_H
#define INLINE_EVENT_H
/* inline_event.h - an event record ("Event record") that needs no definitions: its ids and texts are in itself. */
#include "fxt/reader.h"

enum {
    INLINE_EVENT_TEXT = 1024, /* of a category or a name; the rest is left out */
    INLINE_EVENT_WORDS = 4 + 2 * INLINE_EVENT_TEXT / FXT_WORD_BYTES /* without arguments */
};

struct inline_event {
    enum fxt_event_type type;
    uint64_t ticks;
    uint32_t pid, tid;
    struct fxt_string category, name;
};

/* Writes the record to `words`. Returns where its arguments are to be added. */
uint64_t *inline_event_begin(uint64_t *words, const struct inline_event *event);
/* `end`: that of the arguments. The words must live as long as the record. */
struct fxt_record inline_event_end(uint64_t *words, const uint64_t *end, unsigned args, uint32_t provider);

#endif
