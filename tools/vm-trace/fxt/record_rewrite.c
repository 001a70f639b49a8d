/* record_rewrite.c - see record_rewrite.h */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "fxt/packet.h"
#include "fxt/record_rewrite.h"

enum {
    PACKET_DEPTH = 5, /* Trace, TracePacket, TracePacketDefaults, StackSampleDefaults, CounterDescriptor */
    /* A message inside is written behind the longest length that it can have. */
    ROOM = FXT_RECORD_MAX_WORDS * FXT_WORD_BYTES + FXT_WORD_BYTES + PACKET_DEPTH * PROTO_VARINT_MAX,
    TEXTS_MAX = 2 + 2 * FXT_ARGS_MAX, /* of a record */
};

/* The strings that a provider has defined in the new trace. When all indexes are in use, they are defined again from
 * the first on: those from `next` on are not defined. */
struct string_table {
    struct map index_of; /* number of the pool -> index, perhaps from before */
    ARRAY_OF(uint32_t) strings; /* by index */
    uint32_t next;
};

struct record_rewriter {
    struct reader *reader;
    struct text_rewriter texts;
    struct map table_of; /* provider -> index of tables */
    ARRAY_OF(struct string_table) tables;
    uint64_t fields_left_out, definitions;
    uint8_t room[ROOM];
    uint8_t definition[ROOM];
};

/* What is read of a record, and what is written. */
struct rewrite {
    struct record_rewriter *rewriter;
    struct string_table *table;
    struct text_use use; /* of the next text */
    const uint8_t *at, *end;
    uint8_t *to;
    bool damaged;
};

struct record_rewriter *
record_rewriter_new(struct reader *reader, const struct text_rewriter *texts)
{
    struct record_rewriter *rewriter = xcalloc(1, sizeof *rewriter);
    rewriter->reader = reader;
    rewriter->texts = *texts;
    return rewriter;
}

void
record_rewriter_free(struct record_rewriter *rewriter)
{
    if (rewriter == NULL) return;
    for (uint32_t i = 0; i < rewriter->tables.count; i++) {
        map_free(&rewriter->tables.list[i].index_of);
        free(rewriter->tables.list[i].strings.list);
    }
    free(rewriter->tables.list);
    map_free(&rewriter->table_of);
    free(rewriter);
}

uint64_t
record_rewriter_fields_left_out(const struct record_rewriter *rewriter)
{
    return rewriter->fields_left_out;
}

uint64_t
record_rewriter_definitions(const struct record_rewriter *rewriter)
{
    return rewriter->definitions;
}

/* --- strings ----------------------------------------------------------------------------------------------------- */

static struct string_table *
table_of(struct record_rewriter *rewriter, uint32_t provider)
{
    struct budget *budget = reader_budget(rewriter->reader);
    uint32_t index = map_get(&rewriter->table_of, provider);
    if (index == MAP_NONE) {
        index = rewriter->tables.count;
        map_set_within(budget, &rewriter->table_of, provider, index);
        make_room_within(budget, rewriter->tables.list, rewriter->tables.count, rewriter->tables.capacity);
        rewriter->tables.list[rewriter->tables.count++] = (struct string_table){.next = 1};
    }
    return &rewriter->tables.list[index];
}

/* The reference to a string of the pool. Where it is not defined yet, it will be: see write_definitions. */
static uint64_t
reference_to(struct rewrite *rewrite, uint32_t string)
{
    struct string_table *table = rewrite->table;
    struct budget *budget = reader_budget(rewrite->rewriter->reader);
    uint32_t index = map_get(&table->index_of, string);
    if (index != MAP_NONE && index < table->next && table->strings.list[index] == string) return index;
    index = table->next++;
    while (table->strings.count <= index) {
        make_room_within(budget, table->strings.list, table->strings.count, table->strings.capacity);
        table->strings.list[table->strings.count++] = STRING_NONE;
    }
    table->strings.list[index] = string;
    map_set_within(budget, &table->index_of, string, index);
    return index;
}

/* Writes bytes and the zeros behind them. Returns the end. */
static uint8_t *
write_bytes(uint8_t *to, const char *bytes, size_t count)
{
    size_t room = fxt_words(count) * FXT_WORD_BYTES;
    memset(to, 0, room);
    if (count > 0) memcpy(to, bytes, count);
    return to + room;
}

/* The strings from an index on. */
static void
write_definitions(struct record_rewriter *rewriter, const struct string_table *table, uint32_t first, uint32_t provider)
{
    for (uint32_t index = first; index < table->next; index++) {
        struct fxt_string text = pool_string(reader_pool(rewriter->reader), table->strings.list[index]);
        struct fxt_record definition = {.type = FXT_RECORD_STRING, .provider = provider, .bytes = rewriter->definition,
                                        .words = 1 + fxt_words(text.len)};
        definition.header = fxt_string_header(index, text.len);
        memcpy(rewriter->definition, &definition.header, sizeof definition.header);
        write_bytes(rewriter->definition + FXT_WORD_BYTES, text.ptr, text.len);
        rewriter->definitions++;
        rewriter->texts.define(rewriter->texts.context, &definition);
    }
}

/* --- parts of records ---------------------------------------------------------------------------------------------- */

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
copy_words(struct rewrite *rewrite, unsigned words)
{
    for (unsigned i = 0; i < words; i++) {
        uint64_t word = read_word(rewrite);
        memcpy(rewrite->to, &word, sizeof word);
        rewrite->to += sizeof word;
        if (rewrite->damaged) return;
    }
}

/* A value as a field of a word; and a field of a word, with zeros around it. */
#define bits_of(word, field) bits_between(word, field)
static uint64_t
bits_between(uint64_t word, unsigned first, unsigned last)
{
    return fxt_bits_between(word, first, last) << first;
}

/* Takes the bytes of a text, with those behind it. */
static struct fxt_string
take_text(struct rewrite *rewrite, size_t bytes)
{
    size_t room = fxt_words(bytes) * FXT_WORD_BYTES;
    rewrite->damaged |= (size_t)(rewrite->end - rewrite->at) < room;
    if (rewrite->damaged) return (struct fxt_string){.ptr = ""};
    const char *text = (const char *)rewrite->at;
    rewrite->at += room;
    return (struct fxt_string){.ptr = text, .len = (uint32_t)bytes,
                               .id = pool_find(reader_pool(rewrite->rewriter->reader), text, bytes)};
}

static struct fxt_string
new_text(struct rewrite *rewrite, struct fxt_string text)
{
    if (text.len == 0) return text;
    const struct text_rewriter *texts = &rewrite->rewriter->texts;
    struct fxt_string result = texts->rewrite(texts->context, &rewrite->use, text);
    rewrite->damaged |= result.len > text.len;
    return result;
}

/* Takes the text of a reference. An undefined string is the empty one, but not in events: these would mean something
 * else then. */
static struct fxt_string
take_reference(struct rewrite *rewrite, uint64_t reference, bool defined)
{
    if ((reference & FXT_STRING_REF_INLINE) != 0) return take_text(rewrite, reference & FXT_STRING_REF_BYTES);
    struct fxt_string text = reader_string(rewrite->rewriter->reader, (unsigned)reference);
    rewrite->damaged |= defined && reference != 0 && text.id == STRING_NONE;
    return text;
}

/* Writes a text as it was written, inline or not. Returns the new reference. */
static uint64_t
put_reference(struct rewrite *rewrite, uint64_t reference, struct fxt_string text)
{
    text = new_text(rewrite, text);
    if (rewrite->damaged || text.len == 0) return 0;
    if ((reference & FXT_STRING_REF_INLINE) == 0) return reference_to(rewrite, text.id);
    rewrite->to = write_bytes(rewrite->to, text.ptr, text.len);
    return FXT_STRING_REF_INLINE | text.len;
}

static uint64_t
rewrite_reference(struct rewrite *rewrite, uint64_t reference, bool defined)
{
    return put_reference(rewrite, reference, take_reference(rewrite, reference, defined));
}

static void
rewrite_argument(struct rewrite *rewrite, bool defined)
{
    uint8_t *start = rewrite->to;
    const uint8_t *from = rewrite->at;
    uint64_t header = read_word(rewrite), type = fxt_bits(header, FXT_ARG_TYPE);
    size_t words = fxt_bits(header, FXT_ARG_SIZE);
    rewrite->damaged |= words == 0 || (size_t)(rewrite->end - from) < words * FXT_WORD_BYTES;
    if (rewrite->damaged) return;
    rewrite->to += FXT_WORD_BYTES;
    uint64_t reference = fxt_bits(header, FXT_ARG_NAME), clean = type;
    rewrite->use.kind = TEXT_ARGUMENT;
    rewrite->use.argument = take_reference(rewrite, reference, defined);
    clean |= fxt_field(put_reference(rewrite, reference, rewrite->use.argument), FXT_ARG_NAME);
    rewrite->use.kind = TEXT_VALUE;
    switch (type) {
      case FXT_ARG_NULL: break;
      case FXT_ARG_INT32:
      case FXT_ARG_UINT32: clean |= bits_of(header, FXT_ARG_VALUE_32); break;
      case FXT_ARG_BOOL: clean |= fxt_field(fxt_bits(header, FXT_ARG_VALUE_32) != 0, FXT_ARG_VALUE_32); break;
      case FXT_ARG_STRING:
        reference = rewrite_reference(rewrite, fxt_bits(header, FXT_ARG_VALUE_STRING), defined);
        clean |= fxt_field(reference, FXT_ARG_VALUE_STRING);
        break;
      case FXT_ARG_INT64:
      case FXT_ARG_UINT64:
      case FXT_ARG_DOUBLE:
      case FXT_ARG_POINTER:
      case FXT_ARG_KOID: copy_words(rewrite, 1); break;
      default: rewrite->damaged = true; break;
    }
    const uint8_t *end = from + words * FXT_WORD_BYTES;
    rewrite->damaged |= rewrite->at > end;
    if (rewrite->damaged) return;
    rewrite->at = end;
    clean |= fxt_field((size_t)(rewrite->to - start) / FXT_WORD_BYTES, FXT_ARG_SIZE);
    memcpy(start, &clean, sizeof clean);
}

static void
rewrite_arguments(struct rewrite *rewrite, uint64_t count, bool defined)
{
    for (uint64_t i = 0; i < count && !rewrite->damaged; i++) rewrite_argument(rewrite, defined);
}

/* --- records. Each returns the new header, without the type and the size. -------------------------------------------- */

static uint64_t
rewrite_metadata(struct rewrite *rewrite, uint64_t header)
{
    uint64_t clean = bits_of(header, FXT_METADATA_TYPE) | bits_of(header, FXT_PROVIDER_ID);
    if (header == FXT_MAGIC_RECORD) return header;
    if (fxt_bits(header, FXT_METADATA_TYPE) != FXT_METADATA_PROVIDER_INFO) return clean;
    rewrite->use.kind = TEXT_PROVIDER;
    struct fxt_string name = new_text(rewrite, take_text(rewrite, fxt_bits(header, FXT_PROVIDER_NAME_BYTES)));
    if (rewrite->damaged) return clean;
    rewrite->to = write_bytes(rewrite->to, name.ptr, name.len);
    rewrite->table->next = 1; /* an introduction empties the tables */
    return clean | fxt_field(name.len, FXT_PROVIDER_NAME_BYTES);
}

static uint64_t
rewrite_event(struct rewrite *rewrite, uint64_t header)
{
    uint64_t type = fxt_bits(header, FXT_EVENT_TYPE), category = fxt_bits(header, FXT_EVENT_CATEGORY);
    uint64_t clean = bits_of(header, FXT_EVENT_TYPE) | bits_of(header, FXT_EVENT_ARGS) |
                     bits_of(header, FXT_EVENT_THREAD);
    rewrite->damaged |= type > FXT_EVENT_FLOW_END;
    copy_words(rewrite, 1);                                            /* the time */
    if (fxt_bits(header, FXT_EVENT_THREAD) == 0) copy_words(rewrite, 2); /* process and thread */
    rewrite->use.kind = TEXT_CATEGORY;
    rewrite->use.category = take_reference(rewrite, category, true);
    clean |= fxt_field(put_reference(rewrite, category, rewrite->use.category), FXT_EVENT_CATEGORY);
    rewrite->use.kind = TEXT_EVENT;
    clean |= fxt_field(rewrite_reference(rewrite, fxt_bits(header, FXT_EVENT_NAME), true), FXT_EVENT_NAME);
    rewrite_arguments(rewrite, fxt_bits(header, FXT_EVENT_ARGS), true);
    bool number = type != FXT_EVENT_INSTANT && type != FXT_EVENT_DURATION_BEGIN && type != FXT_EVENT_DURATION_END;
    copy_words(rewrite, number); /* its end, or its id */
    return clean;
}

static uint64_t
rewrite_object(struct rewrite *rewrite, uint64_t header)
{
    copy_words(rewrite, 1); /* the id */
    rewrite->use.kind =
        fxt_bits(header, FXT_KERNEL_OBJECT_TYPE) == FXT_OBJECT_PROCESS ? TEXT_PROCESS : TEXT_OBJECT;
    uint64_t name = rewrite_reference(rewrite, fxt_bits(header, FXT_KERNEL_OBJECT_NAME), true);
    rewrite_arguments(rewrite, fxt_bits(header, FXT_KERNEL_OBJECT_ARGS), false);
    return bits_of(header, FXT_KERNEL_OBJECT_TYPE) | fxt_field(name, FXT_KERNEL_OBJECT_NAME) |
           bits_of(header, FXT_KERNEL_OBJECT_ARGS);
}

static uint64_t
rewrite_scheduling(struct rewrite *rewrite, uint64_t header)
{
    uint64_t type = fxt_bits(header, FXT_SCHED_TYPE), clean = bits_of(header, FXT_SCHED_TYPE);
    copy_words(rewrite, 1); /* the time */
    switch (type) {
      case FXT_SCHED_LEGACY_SWITCH: /* a thread without an index has two ids */
        if (fxt_bits(header, FXT_SCHED_LEGACY_OUT_THREAD) == 0) copy_words(rewrite, 2);
        if (fxt_bits(header, FXT_SCHED_LEGACY_IN_THREAD) == 0) copy_words(rewrite, 2);
        return clean | bits_of(header, FXT_SCHED_LEGACY_CPU) | bits_of(header, FXT_SCHED_LEGACY_OUT_STATE) |
               bits_of(header, FXT_SCHED_LEGACY_OUT_THREAD) | bits_of(header, FXT_SCHED_LEGACY_IN_THREAD) |
               bits_of(header, FXT_SCHED_LEGACY_OUT_PRIORITY) | bits_of(header, FXT_SCHED_LEGACY_IN_PRIORITY);
      case FXT_SCHED_SWITCH: clean |= bits_of(header, FXT_SCHED_OUT_STATE); break;
      case FXT_SCHED_WAKEUP: break;
      default: rewrite->damaged = true; return clean;
    }
    copy_words(rewrite, type == FXT_SCHED_SWITCH ? 2 : 1); /* the threads */
    rewrite_arguments(rewrite, fxt_bits(header, FXT_SCHED_ARGS), true);
    return clean | bits_of(header, FXT_SCHED_ARGS) | bits_of(header, FXT_SCHED_CPU);
}

/* --- Perfetto's packets ------------------------------------------------------------------------------------------ */

/* The fields of messages that are copied: numbers, texts, and messages with such fields. sample_packets.c has their
 * names. */
struct message_field {
    uint32_t number;
    enum { FIELD_NUMBER = 1, FIELD_NUMBERS, FIELD_TEXT, FIELD_MESSAGE } content; /* FIELD_NUMBERS: packed */
    enum text_kind kind;
    const struct message_field *inside;
};

#define NUMBER(number) {(number), FIELD_NUMBER, TEXT_SAMPLE, NULL}
#define NUMBERS(number) {(number), FIELD_NUMBERS, TEXT_SAMPLE, NULL}
#define TEXT(number, kind) {(number), FIELD_TEXT, (kind), NULL}
#define MESSAGE(number, fields) {(number), FIELD_MESSAGE, TEXT_SAMPLE, (fields)}
#define LAST {0, FIELD_NUMBER, TEXT_SAMPLE, NULL}

static const struct message_field name_fields[] = {NUMBER(1), TEXT(2, TEXT_FUNCTION), LAST};
static const struct message_field path_fields[] = {NUMBER(1), TEXT(2, TEXT_PATH), LAST};
static const struct message_field frame_fields[] = {NUMBER(1), NUMBER(2), NUMBER(3), NUMBER(4), NUMBER(5), NUMBER(6),
                                                    NUMBER(7), TEXT(8, TEXT_SAMPLE), LAST};
static const struct message_field stack_fields[] = {NUMBER(1), NUMBER(2), LAST};
static const struct message_field mapping_fields[] = {NUMBER(1), NUMBER(3), NUMBER(4), NUMBER(5), NUMBER(6), NUMBER(7),
                                                      NUMBER(8), LAST};
static const struct message_field task_fields[] = {NUMBER(1), NUMBER(2), NUMBER(3), NUMBER(4), LAST};
static const struct message_field counter_fields[] = {NUMBER(1), TEXT(2, TEXT_SAMPLE), NUMBER(3), TEXT(4, TEXT_SAMPLE),
                                                      LAST};
static const struct message_field context_fields[] = {NUMBER(1), TEXT(2, TEXT_OBJECT), TEXT(3, TEXT_SAMPLE), NUMBER(4),
                                                      LAST};
static const struct message_field interned_fields[] = {
    MESSAGE(5, name_fields),     MESSAGE(6, frame_fields),   MESSAGE(7, stack_fields), MESSAGE(17, path_fields),
    MESSAGE(18, path_fields),    MESSAGE(19, mapping_fields), MESSAGE(48, task_fields), MESSAGE(50, counter_fields),
    MESSAGE(51, context_fields), LAST};
static const struct message_field sample_defaults_fields[] = {TEXT(1, TEXT_SAMPLE), MESSAGE(2, counter_fields),
                                                              MESSAGE(3, counter_fields), LAST};
static const struct message_field defaults_fields[] = {MESSAGE(100, sample_defaults_fields), LAST};
static const struct message_field sample_fields[] = {MESSAGE(1, task_fields), NUMBER(2), NUMBER(6), NUMBER(11),
                                                     NUMBERS(13), NUMBERS(14), LAST};
static const struct message_field packet_fields[] = {
    NUMBER(PACKET_TIMESTAMP), NUMBER(PACKET_SEQUENCE), NUMBER(PACKET_SEQUENCE_FLAGS),
    MESSAGE(PACKET_INTERNED_DATA, interned_fields), MESSAGE(PACKET_DEFAULTS, defaults_fields),
    MESSAGE(PACKET_STACK_SAMPLE, sample_fields), LAST};
static const struct message_field trace_fields[] = {MESSAGE(TRACE_PACKET, packet_fields), LAST};

static bool
only_numbers(struct proto numbers)
{
    uint64_t number;
    while (numbers.at < numbers.end && proto_varint(&numbers, &number)) continue;
    return !numbers.damaged;
}

/* Returns the end of the new message; it is not longer than the old one. */
static uint8_t *
rewrite_message(struct rewrite *rewrite, struct proto message, const struct message_field *fields, uint8_t *to)
{
    for (struct proto_field field;;) {
        const uint8_t *from = message.at;
        if (!proto_next(&message, &field)) break;
        const struct message_field *known = fields;
        while (known->number != 0 && known->number != field.number) known++;
        bool number = known->content == FIELD_NUMBER;
        if (known->number == 0 || field.type != (number ? PROTO_VARINT : PROTO_BYTES) ||
            (known->content == FIELD_NUMBERS && !only_numbers(field.message))) {
            rewrite->rewriter->fields_left_out++;
            continue;
        }
        if (number || known->content == FIELD_NUMBERS) {
            memcpy(to, from, (size_t)(message.at - from));
            to += message.at - from;
            continue;
        }
        uint8_t *start = proto_put_tag(to, field.number, PROTO_BYTES), *end = start + PROTO_VARINT_MAX;
        if (known->content == FIELD_MESSAGE) {
            end = rewrite_message(rewrite, field.message, known->inside, end);
        }
        else {
            const char *bytes = (const char *)field.message.at;
            size_t len = (size_t)(field.message.end - field.message.at);
            rewrite->use.kind = known->kind;
            struct fxt_string text = {.ptr = bytes, .len = (uint32_t)len,
                                      .id = pool_find(reader_pool(rewrite->rewriter->reader), bytes, len)};
            text = new_text(rewrite, text);
            if (rewrite->damaged) return to;
            memcpy(end, text.ptr, text.len);
            end += text.len;
        }
        size_t bytes = (size_t)(end - start) - PROTO_VARINT_MAX;
        uint8_t *content = proto_put_varint(start, bytes);
        memmove(content, start + PROTO_VARINT_MAX, bytes);
        to = content + bytes;
    }
    rewrite->damaged |= message.damaged;
    return to;
}

static uint64_t
rewrite_blob(struct rewrite *rewrite, uint64_t header)
{
    rewrite->use.kind = TEXT_BLOB;
    uint64_t clean = bits_of(header, FXT_BLOB_TYPE);
    clean |= fxt_field(rewrite_reference(rewrite, fxt_bits(header, FXT_BLOB_NAME), false), FXT_BLOB_NAME);
    size_t bytes = fxt_bits(header, FXT_BLOB_BYTES);
    rewrite->damaged |= fxt_bits(header, FXT_BLOB_TYPE) != FXT_BLOB_OF_PERFETTO ||
                        (size_t)(rewrite->end - rewrite->at) < bytes;
    if (rewrite->damaged) return clean;
    uint8_t *end = rewrite_message(rewrite, proto_of(rewrite->at, bytes), trace_fields, rewrite->to);
    bytes = (size_t)(end - rewrite->to);
    memset(end, 0, fxt_words(bytes) * FXT_WORD_BYTES - bytes);
    rewrite->to += fxt_words(bytes) * FXT_WORD_BYTES;
    return clean | fxt_field(bytes, FXT_BLOB_BYTES);
}

bool
record_rewrite(struct record_rewriter *rewriter, const struct fxt_record *record, struct fxt_record *rewritten_out)
{
    struct string_table *table = table_of(rewriter, record->provider);
    struct rewrite rewrite = {.rewriter = rewriter, .table = table, .at = record->bytes + FXT_WORD_BYTES,
                              .end = record->bytes + record->words * FXT_WORD_BYTES,
                              .to = rewriter->room + FXT_WORD_BYTES};
    if (table->next > FXT_STRING_INDEXES - TEXTS_MAX) table->next = 1;
    uint32_t first = table->next;
    uint64_t header = record->header, clean = 0;
    switch (record->type) {
      case FXT_RECORD_METADATA:
        clean = rewrite_metadata(&rewrite, header);
        first = table->next;
        break;
      case FXT_RECORD_INITIALIZATION: copy_words(&rewrite, 1); break;
      case FXT_RECORD_THREAD:
        clean = bits_of(header, FXT_THREAD_INDEX);
        copy_words(&rewrite, 2); /* process and thread */
        break;
      case FXT_RECORD_EVENT: clean = rewrite_event(&rewrite, header); break;
      case FXT_RECORD_BLOB: clean = rewrite_blob(&rewrite, header); break;
      case FXT_RECORD_KERNEL_OBJECT: clean = rewrite_object(&rewrite, header); break;
      case FXT_RECORD_SCHEDULING: clean = rewrite_scheduling(&rewrite, header); break;
      default: rewrite.damaged = true; break;
    }
    if (rewrite.damaged) {
        table->next = first; /* what was to be defined for this record */
        return false;
    }
    write_definitions(rewriter, table, first, record->provider);
    *rewritten_out = *record;
    rewritten_out->words = (size_t)(rewrite.to - rewriter->room) / FXT_WORD_BYTES;
    rewritten_out->header = bits_of(header, FXT_HEADER_TYPE) | fxt_field(rewritten_out->words, FXT_HEADER_SIZE) | clean;
    rewritten_out->bytes = rewriter->room;
    memcpy(rewriter->room, &rewritten_out->header, sizeof rewritten_out->header);
    return true;
}
