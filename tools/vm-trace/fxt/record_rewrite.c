/* record_rewrite.c - see record_rewrite.h */
#include <string.h>

#include "fxt/packet.h"
#include "fxt/record_rewrite.h"

/* What is read of a record, and what is written. */
struct rewrite {
    const struct text_rewriter *rewriter;
    const uint8_t *at, *end;
    uint8_t *to;
    bool damaged;
};

static uint64_t
read_word(struct rewrite *rewrite)
{
    uint64_t word = 0;
    rewrite->damaged |= rewrite->end - rewrite->at < FXT_WORD_BYTES;
    if (rewrite->damaged) return 0;
    memcpy(&word, rewrite->at, sizeof word);
    rewrite->at += sizeof word;
    return word;
}

static void
write_word(struct rewrite *rewrite, uint64_t word)
{
    memcpy(rewrite->to, &word, sizeof word);
    rewrite->to += sizeof word;
}

static void
copy_words(struct rewrite *rewrite, size_t words)
{
    for (size_t i = 0; i < words && !rewrite->damaged; i++) write_word(rewrite, read_word(rewrite));
}

/* Writes bytes and the zeros behind them. */
static void
write_bytes(struct rewrite *rewrite, const char *bytes, size_t count)
{
    size_t room = fxt_words(count) * FXT_WORD_BYTES;
    memset(rewrite->to, 0, room);
    if (count > 0) memcpy(rewrite->to, bytes, count);
    rewrite->to += room;
}

/* Rewrites a text of so many bytes. Returns how many it has then. */
static size_t
rewrite_text(struct rewrite *rewrite, size_t bytes)
{
    size_t room = fxt_words(bytes) * FXT_WORD_BYTES;
    rewrite->damaged |= (size_t)(rewrite->end - rewrite->at) < room;
    if (rewrite->damaged) return 0;
    const struct text_rewriter *rewriter = rewrite->rewriter;
    struct fxt_string text = {.ptr = (const char *)rewrite->at, .len = (uint32_t)bytes};
    if (bytes > 0) text = rewriter->rewrite(rewriter->context, text);
    rewrite->at += room;
    write_bytes(rewrite, text.ptr, text.len);
    return text.len;
}

/* What a reference to a string says; an inline string is the next text. */
static uint64_t
rewrite_reference(struct rewrite *rewrite, uint64_t reference)
{
    if ((reference & FXT_STRING_REF_INLINE) == 0) return reference;
    return FXT_STRING_REF_INLINE | rewrite_text(rewrite, reference & FXT_STRING_REF_BYTES);
}

/* The word with these bits instead. */
#define with_bits(word, value, field) with_bits_between(word, value, field)
static uint64_t
with_bits_between(uint64_t word, uint64_t value, unsigned first, unsigned last)
{
    uint64_t mask = (UINT64_MAX >> (63 - (last - first))) << first;
    return (word & ~mask) | (value << first & mask);
}

static void
rewrite_argument(struct rewrite *rewrite)
{
    uint8_t *start = rewrite->to;
    const uint8_t *from = rewrite->at;
    uint64_t header = read_word(rewrite);
    size_t words = fxt_bits(header, FXT_ARG_SIZE);
    rewrite->damaged |= words == 0 || (size_t)(rewrite->end - from) < words * FXT_WORD_BYTES;
    if (rewrite->damaged) return;
    write_word(rewrite, header);
    header = with_bits(header, rewrite_reference(rewrite, fxt_bits(header, FXT_ARG_NAME)), FXT_ARG_NAME);
    if (fxt_bits(header, FXT_ARG_TYPE) == FXT_ARG_STRING) {
        uint64_t value = rewrite_reference(rewrite, fxt_bits(header, FXT_ARG_VALUE_STRING));
        header = with_bits(header, value, FXT_ARG_VALUE_STRING);
    }
    const uint8_t *end = from + words * FXT_WORD_BYTES;
    rewrite->damaged |= rewrite->at > end;
    if (rewrite->damaged) return;
    copy_words(rewrite, (size_t)(end - rewrite->at) / FXT_WORD_BYTES);
    header = with_bits(header, (size_t)(rewrite->to - start) / FXT_WORD_BYTES, FXT_ARG_SIZE);
    memcpy(start, &header, sizeof header);
}

static uint64_t
rewrite_event(struct rewrite *rewrite, uint64_t header)
{
    copy_words(rewrite, 1);                                            /* the time */
    if (fxt_bits(header, FXT_EVENT_THREAD) == 0) copy_words(rewrite, 2); /* process and thread */
    header = with_bits(header, rewrite_reference(rewrite, fxt_bits(header, FXT_EVENT_CATEGORY)), FXT_EVENT_CATEGORY);
    header = with_bits(header, rewrite_reference(rewrite, fxt_bits(header, FXT_EVENT_NAME)), FXT_EVENT_NAME);
    for (uint64_t i = fxt_bits(header, FXT_EVENT_ARGS); i > 0; i--) rewrite_argument(rewrite);
    return header;
}

static uint64_t
rewrite_object(struct rewrite *rewrite, uint64_t header)
{
    copy_words(rewrite, 1); /* the id */
    uint64_t name = rewrite_reference(rewrite, fxt_bits(header, FXT_KERNEL_OBJECT_NAME));
    header = with_bits(header, name, FXT_KERNEL_OBJECT_NAME);
    for (uint64_t i = fxt_bits(header, FXT_KERNEL_OBJECT_ARGS); i > 0; i--) rewrite_argument(rewrite);
    return header;
}

static void
rewrite_scheduling(struct rewrite *rewrite, uint64_t header)
{
    enum { SWITCH_WORDS = 3, WAKEUP_WORDS = 2 }; /* the time and the threads */
    uint64_t type = fxt_bits(header, FXT_SCHED_TYPE);
    if (type != FXT_SCHED_SWITCH && type != FXT_SCHED_WAKEUP) return; /* others have no texts */
    copy_words(rewrite, type == FXT_SCHED_SWITCH ? SWITCH_WORDS : WAKEUP_WORDS);
    for (uint64_t i = fxt_bits(header, FXT_SCHED_ARGS); i > 0; i--) rewrite_argument(rewrite);
}

/* --- Perfetto's packets ------------------------------------------------------------------------------------------ */

/* Which fields of a message have texts, or messages with such fields. */
struct message_texts {
    uint32_t field;
    const struct message_texts *inside; /* NULL: the field is a text */
};

static const struct message_texts entry_texts[] = {{2, NULL}, {0, NULL}};
/* function names, build ids, mapping paths, source paths, async contexts, tasks' names: numbers of sample_packets.c */
static const struct message_texts interned_texts[] = {
    {5, entry_texts}, {17, entry_texts}, {18, entry_texts}, {51, entry_texts}, {0, NULL}};
static const struct message_texts packet_texts[] = {{PACKET_INTERNED_DATA, interned_texts}, {0, NULL}};
static const struct message_texts trace_texts[] = {{TRACE_PACKET, packet_texts}, {0, NULL}};

static uint8_t *
put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

/* Returns the end of the new message; it is not longer than the old one. */
static uint8_t *
rewrite_message(struct rewrite *rewrite, struct proto message, const struct message_texts *texts, uint8_t *to)
{
    enum { MOST_VARINT = 10 };
    for (struct proto_field field;;) {
        const uint8_t *from = message.at;
        if (!proto_next(&message, &field)) break;
        const struct message_texts *text = texts;
        while (text->field != 0 && text->field != field.number) text++;
        if (text->field == 0 || field.type != PROTO_BYTES) {
            memmove(to, from, (size_t)(message.at - from));
            to += message.at - from;
            continue;
        }
        uint8_t *start = put_varint(to, (uint64_t)field.number << 3 | PROTO_BYTES), *end = start + MOST_VARINT;
        if (text->inside != NULL) {
            end = rewrite_message(rewrite, field.message, text->inside, end);
        }
        else {
            struct fxt_string name = {.ptr = (const char *)field.message.at,
                                      .len = (uint32_t)(field.message.end - field.message.at)};
            if (name.len > 0) name = rewrite->rewriter->rewrite(rewrite->rewriter->context, name);
            memcpy(end, name.ptr, name.len);
            end += name.len;
        }
        size_t bytes = (size_t)(end - start) - MOST_VARINT;
        uint8_t *content = put_varint(start, bytes);
        memmove(content, start + MOST_VARINT, bytes);
        to = content + bytes;
    }
    rewrite->damaged |= message.damaged;
    return to;
}

static uint64_t
rewrite_blob(struct rewrite *rewrite, uint64_t header)
{
    header = with_bits(header, rewrite_reference(rewrite, fxt_bits(header, FXT_BLOB_NAME)), FXT_BLOB_NAME);
    size_t bytes = fxt_bits(header, FXT_BLOB_BYTES);
    rewrite->damaged |= fxt_bits(header, FXT_BLOB_TYPE) != FXT_BLOB_OF_PERFETTO ||
                        (size_t)(rewrite->end - rewrite->at) < bytes;
    if (rewrite->damaged) return header;
    uint8_t *end = rewrite_message(rewrite, proto_of(rewrite->at, bytes), trace_texts, rewrite->to);
    bytes = (size_t)(end - rewrite->to);
    memset(end, 0, fxt_words(bytes) * FXT_WORD_BYTES - bytes);
    rewrite->to += fxt_words(bytes) * FXT_WORD_BYTES;
    return with_bits(header, bytes, FXT_BLOB_BYTES);
}

bool
record_rewrite(const struct text_rewriter *rewriter, const struct fxt_record *record, uint8_t *to,
               struct fxt_record *rewritten_out)
{
    struct rewrite rewrite = {.rewriter = rewriter, .at = record->bytes + FXT_WORD_BYTES,
                              .end = record->bytes + record->words * FXT_WORD_BYTES, .to = to + FXT_WORD_BYTES};
    uint64_t header = record->header;
    size_t bytes;
    switch (record->type) {
      case FXT_RECORD_METADATA:
        if (!fxt_provider_info_p(header)) break;
        bytes = rewrite_text(&rewrite, fxt_bits(header, FXT_PROVIDER_NAME_BYTES));
        header = with_bits(header, bytes, FXT_PROVIDER_NAME_BYTES);
        break;
      case FXT_RECORD_STRING:
        bytes = rewrite_text(&rewrite, fxt_bits(header, FXT_STRING_BYTES));
        header = with_bits(header, bytes, FXT_STRING_BYTES);
        break;
      case FXT_RECORD_INITIALIZATION:
      case FXT_RECORD_THREAD: break;
      case FXT_RECORD_EVENT: header = rewrite_event(&rewrite, header); break;
      case FXT_RECORD_BLOB: header = rewrite_blob(&rewrite, header); break;
      case FXT_RECORD_KERNEL_OBJECT: header = rewrite_object(&rewrite, header); break;
      case FXT_RECORD_SCHEDULING: rewrite_scheduling(&rewrite, header); break;
      default: return false;
    }
    bool rest = record->type == FXT_RECORD_EVENT || record->type == FXT_RECORD_INITIALIZATION ||
                record->type == FXT_RECORD_THREAD || record->type == FXT_RECORD_SCHEDULING;
    if (rest) copy_words(&rewrite, (size_t)(rewrite.end - rewrite.at) / FXT_WORD_BYTES); /* numbers */
    if (rewrite.damaged) return false;
    *rewritten_out = *record;
    rewritten_out->words = (size_t)(rewrite.to - to) / FXT_WORD_BYTES;
    rewritten_out->header = with_bits(header, rewritten_out->words, FXT_HEADER_SIZE);
    rewritten_out->bytes = to;
    memcpy(to, &rewritten_out->header, sizeof header);
    return true;
}
