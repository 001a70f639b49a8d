/* read_records.c - cuts a file into records, keeps the tables that records define, and passes
 * the others to the decoders. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "fxt/known_strings.h"
#include "fxt/reader_internal.h"

struct reader *
reader_new(size_t limit_bytes)
{
    struct reader *reader = xcalloc(1, sizeof *reader);
    reader->budget.limit_bytes = limit_bytes;
    reader->pool = pool_new(&reader->budget);
    for (uint32_t id = KNOWN_STRINGS_BEGIN + 1; id < KNOWN_STRINGS_END; id++)
        pool_intern(reader->pool, known_strings[id], strlen(known_strings[id]));
    reader->providers.budget = &reader->budget;
    return reader;
}

void
reader_free(struct reader *reader)
{
    if (reader == NULL) return;
    providers_clear(&reader->providers);
    recording_free(&reader->recording);
    fxt_parts_free(&reader->parts);
    free(reader->stopped_by);
    pool_free(reader->pool);
    free(reader);
}

struct pool *
reader_pool(struct reader *reader)
{
    return reader->pool;
}

struct budget *
reader_budget(struct reader *reader)
{
    return &reader->budget;
}

struct fxt_string
reader_string(const struct reader *reader, unsigned index)
{
    return pool_string(reader->pool, provider_string(reader->current, index));
}

bool
reader_moved(const struct reader *reader)
{
    return reader->moved;
}

const struct fxt_parts *
reader_parts(const struct reader *reader)
{
    return &reader->parts;
}

void
reader_choose(struct reader *reader, char *chosen)
{
    fxt_parts_choose(&reader->parts, chosen);
}

bool
reader_stopped(const struct reader *reader)
{
    return reader->stopped;
}

void
reader_new_recording(struct reader *reader)
{
    free(reader->recording.path);
    reader->recording.path = NULL;
}

uint32_t
reader_process(struct reader *reader, uint32_t recording, uint32_t pid)
{
    return recording_process(&reader->recording, recording, pid);
}

const struct fxt_counts *
reader_counts(const struct reader *reader)
{
    return &reader->counts;
}

static void
read_metadata(struct reader *reader, struct cursor *cursor)
{
    unsigned type = (unsigned)fxt_bits(reader->header, FXT_METADATA_TYPE);
    uint32_t id = (uint32_t)fxt_bits(reader->header, FXT_PROVIDER_ID);
    switch (type) {
      case FXT_METADATA_PROVIDER_INFO: {
        size_t len = (size_t)fxt_bits(reader->header, FXT_PROVIDER_NAME_BYTES);
        const char *name;
        if (!cursor_bytes(cursor, len, &name)) {
            decode_too_short(reader, "provider's name");
            return;
        }
        decode_check_padding(reader, name, len, "provider's name");
        decode_finish(reader, cursor, "provider info");
        reader->current = providers_introduce(&reader->providers, id);
        if (reader->current == NULL) {
            reader_out_of_budget(reader);
            return;
        }
        reader->counts.chunks++;
        struct fxt_string string = {.ptr = name, .len = (uint32_t)len, .id = pool_find(reader->pool, name, len)};
        if (reader->current->recording == 0) reader->current->recording = recording_of(&reader->recording, string);
        if (reader->visitor.chunk) reader->visitor.chunk(reader->visitor.context, id, string, reader->offset);
        return;
      }
      case FXT_METADATA_PROVIDER_SECTION:
        decode_finish(reader, cursor, "provider section");
        reader->current = providers_find(&reader->providers, id);
        if (reader->current == NULL) {
            reader_fault(reader, FXT_FAULT_UNKNOWN_PROVIDER, reader->offset,
                         "provider %" PRIu32 " was never introduced; all up to the next provider record is lost", id);
        }
        return;
      case FXT_METADATA_PROVIDER_EVENT:
        reader_fault(reader, FXT_FAULT_BUFFER_FILLED, reader->offset,
                     "provider %" PRIu32 " reports that its buffer was full: events are missing", id);
        return;
      case FXT_METADATA_TRACE_INFO:
        return; /* the magic number again, as in files that were joined */
      default:
          reader_fault(reader, FXT_FAULT_UNKNOWN_METADATA, reader->offset, "metadata record of the unknown type %u",
                       type);
    }
}

static void
read_initialization(struct reader *reader, struct cursor *cursor)
{
    uint64_t ticks_per_second;
    if (!cursor_u64(cursor, &ticks_per_second)) {
        decode_too_short(reader, "ticks per second");
        return;
    }
    decode_finish(reader, cursor, "initialization");
    reader->current->ticks_per_second = ticks_per_second;
    reader->current->initialized = true;
    if (ticks_per_second == 0) {
        reader_fault(reader, FXT_FAULT_BAD_TICK_RATE, reader->offset, "0 ticks per second");
    }
}

static void
check_utf8(struct reader *reader, unsigned index, const char *ptr, size_t len)
{
    uint32_t codepoint;
    for (size_t at = 0; at < len;) {
        unsigned taken = utf8_decode(ptr + at, len - at, &codepoint);
        if (taken == 0) {
            reader_fault(reader, FXT_FAULT_NOT_UTF8, reader->offset, "string %u is not UTF-8 at its byte %zu", index,
                         at);
            return;
        }
        at += taken;
    }
}

static void
read_string(struct reader *reader, struct cursor *cursor)
{
    uint64_t header = reader->header;
    unsigned index = (unsigned)fxt_bits(header, FXT_STRING_INDEX);
    if (index == 0) {
        reader->counts.padding_records++;
        reader->counts.padding_bytes += cursor->words * FXT_WORD_BYTES;
        return;
    }
    if (fxt_bits(header, FXT_STRING_RESERVED_1) != 0 || fxt_bits(header, FXT_STRING_RESERVED_2) != 0) {
        reader_fault(reader, FXT_FAULT_RESERVED_BITS, reader->offset, "reserved bits of the string record are set");
    }
    size_t len = (size_t)fxt_bits(header, FXT_STRING_BYTES);
    const char *ptr;
    if (!cursor_bytes(cursor, len, &ptr)) {
        decode_too_short(reader, "string");
        return;
    }
    decode_check_padding(reader, ptr, len, "string");
    decode_finish(reader, cursor, "string");
    uint32_t known = pool_size(reader->pool);
    uint32_t id = pool_intern(reader->pool, ptr, len);
    if (!provider_set_string(&reader->providers, reader->current, index, id)) {
        reader_out_of_budget(reader);
        return;
    }
    if (id >= known) check_utf8(reader, index, ptr, len); /* once per string */
}

static void
read_thread(struct reader *reader, struct cursor *cursor)
{
    unsigned index = (unsigned)fxt_bits(reader->header, FXT_THREAD_INDEX);
    uint64_t pid, tid;
    if (index == 0) {
        reader_fault(reader, FXT_FAULT_BAD_INDEX, reader->offset, "thread record for index 0, which cannot be defined");
        return;
    }
    if (!cursor_u64(cursor, &pid) || !cursor_u64(cursor, &tid)) {
        decode_too_short(reader, "thread's ids");
        return;
    }
    decode_finish(reader, cursor, "thread");
    if (!provider_set_thread(&reader->providers, reader->current, index, pid, tid)) reader_out_of_budget(reader);
}

static void
read_record(struct reader *reader, const uint8_t *bytes, size_t words)
{
    struct cursor cursor = {.record = bytes, .words = words, .at = 1};
    unsigned type = (unsigned)fxt_bits(reader->header, FXT_HEADER_TYPE);
    reader->counts.records++;
    if (type != FXT_RECORD_METADATA && reader->current == NULL) {
        reader_fault(reader, FXT_FAULT_NO_PROVIDER, reader->offset, "the record belongs to no provider; dropped");
        return;
    }
    switch (type) {
      case FXT_RECORD_METADATA: read_metadata(reader, &cursor); break;
      case FXT_RECORD_INITIALIZATION: read_initialization(reader, &cursor); break;
      case FXT_RECORD_STRING: read_string(reader, &cursor); break;
      case FXT_RECORD_THREAD: read_thread(reader, &cursor); break;
      case FXT_RECORD_EVENT: decode_event(reader, &cursor); break;
      case FXT_RECORD_BLOB: decode_blob(reader, &cursor); break;
      case FXT_RECORD_KERNEL_OBJECT: decode_kernel_object(reader, &cursor); break;
      case FXT_RECORD_SCHEDULING: decode_sched(reader, &cursor); break;
      case FXT_RECORD_USERSPACE_OBJECT:
      case FXT_RECORD_LOG:
        break; /* known, but neither Perfetto nor the tool uses them */
      default: /* also large records: Perfetto reads their size field like that of any other record */
          reader_fault(reader, FXT_FAULT_UNKNOWN_RECORD, reader->offset, "record of the unknown type %u is skipped",
                       type);
    }
    if (reader->visitor.record == NULL || reader->current == NULL) return;
    struct fxt_record record = {.type = (enum fxt_record_type)type, .header = reader->header, .offset = reader->offset,
                                .bytes = bytes, .words = words, .provider = reader->current->id};
    reader->visitor.record(reader->visitor.context, &record);
}

/* Reports why the input ended early. Returns false if it did not. */
static bool
report_short_read(struct reader *reader, const struct input *input)
{
    if (input->error != 0) {
        const char *why = input->error == ENOTSUP ? "it is compressed by zstd, and this tool was built without libzstd" :
                                                    strerror(input->error);
        reader_fault(reader, FXT_FAULT_READ_FAILED, input->offset, "cannot read further: %s", why);
    }
    else if (input->decompressor.fault != NULL) {
        reader_fault(reader, FXT_FAULT_DAMAGED_GZIP, input->offset, "the compressed data are damaged: %s",
                     input->decompressor.fault);
    }
    return input->error != 0 || input->decompressor.fault != NULL;
}

/* Reads the first record, which every Fuchsia trace begins with. */
static void
read_magic(struct reader *reader, struct input *input)
{
    uint64_t word;
    size_t there = input_need(input, sizeof word);
    if (there < sizeof word && report_short_read(reader, input)) return;
    if (there == 0) {
        reader_fault(reader, FXT_FAULT_NOT_A_TRACE, 0, "the file is empty");
        return;
    }
    if (there >= sizeof word) {
        memcpy(&word, input_bytes(input), sizeof word);
        if (word == FXT_MAGIC_RECORD) return;
    }
    reader_fault(reader, FXT_FAULT_NOT_A_TRACE, 0,
                 "not a Fuchsia trace: it does not begin with the magic number record");
}

/* --- records ---------------------------------------------------------------------------------------- */

/* A run of padding records.
 *
 * In a file that is being written, records replace padding from its start on, and may extend across
 * the boundaries of padding records. So what was read after a run of padding begins with a record
 * only if the first word of the run was still padding after that read. That word is read again
 * then; if it has changed, the whole run is read again.
 */
struct run {
    bool open;
    uint64_t offset;
    uint64_t header;
    uint64_t fills; /* the input's number of reads when the first word was checked; 0: not yet */
    struct fxt_counts counts; /* before the run */
};

/* Returns true if the run has changed; it is then read again. */
static bool
run_changed(struct reader *reader, struct input *input, struct run *run)
{
    if (!run->open || run->fills == input->fills) return false;
    run->fills = input->fills;
    if (!input_reread(input, run->offset, run->header)) return false;
    reader->counts = run->counts;
    run->open = false;
    return true;
}

/* Whether a chunk of a file that keeps its newest events may begin here: with its provider, or, while
 * the writer has it empty, with padding. Chunks and their padding begin at a page. */
static bool
chunk_may_begin(const struct reader *reader)
{
    enum { PAGE_BYTES = 4096 };
    return fxt_provider_info_p(reader->header) ||
           (fxt_padding_p(reader->header) && reader->offset % PAGE_BYTES == 0);
}

static void
read_records(struct reader *reader, struct input *input)
{
    uint64_t reported = 0;
    struct run run = {.open = false};
    while (!reader->stopped) {
        if (reader->again && input->offset > reader->last_offset) {
            reader->stopped = true;
            break;
        }
        reader->offset = input->offset;
        if (input->file_taken != reported && reader->visitor.progress) {
            reported = input->file_taken;
            reader->visitor.progress(reader->visitor.fault_context, reported, input->file_size);
        }
        size_t there = input_need(input, FXT_WORD_BYTES);
        if (there == 0) {
            report_short_read(reader, input);
            break;
        }
        if (reader->ring != NULL && ring_chunks_settled(reader->ring, input->offset)) {
            run.open = false; /* the window holds the chunk as it was at one moment */
        }
        if (run_changed(reader, input, &run)) continue;
        if (there < FXT_WORD_BYTES) {
            if (report_short_read(reader, input)) break;
            reader_fault(reader, FXT_FAULT_TRUNCATED, reader->offset,
                         "the file is truncated: it ends after %zu bytes of a record's first word", there);
            break;
        }
        memcpy(&reader->header, input_bytes(input), FXT_WORD_BYTES);
        if (reader->ring != NULL && chunk_may_begin(reader)) {
            ring_chunks_settle(reader->ring, input);
            memcpy(&reader->header, input_bytes(input), FXT_WORD_BYTES);
        }
        size_t words = (size_t)fxt_bits(reader->header, FXT_HEADER_SIZE);
        size_t bytes = words * FXT_WORD_BYTES;
        if (words == 0) {
            reader_fault(reader, FXT_FAULT_SIZE_ZERO, reader->offset,
                         "record of size 0; nothing after it can be read (Perfetto refuses such a file)");
            break;
        }
        there = input_need(input, bytes);
        if (there < bytes) {
            if (report_short_read(reader, input)) break;
            reader_fault(reader, FXT_FAULT_TRUNCATED, reader->offset,
                         "the file is truncated: it ends after %zu bytes of a record of %zu", there, bytes);
            break;
        }
        bool padding = fxt_padding_p(reader->header);
        if (padding && !run.open) run = (struct run){true, reader->offset, reader->header, 0, reader->counts};
        if (!padding) run.open = false;
        read_record(reader, input_bytes(input), words);
        if (reader->budget.exceeded) reader_out_of_budget(reader);
        input_take(input, bytes);
    }
    reader->counts.bytes = input->offset;
    reader->moved = reader->ring != NULL && ring_chunks_moved(reader->ring, input);
    ring_chunks_free(reader->ring);
    reader->ring = NULL;
}

/* Keeps what was read of the file, if that is not all. */
static void
note_part(struct reader *reader, const struct input *input, const char *path)
{
    const uint64_t damaged = reader_damage(reader);
    if (!reader->stopped && damaged == 0) return;
    const struct fxt_part part = {
        .offset = reader->offset, .damaged = damaged, .file_bytes = input->file_size,
        .read_bytes = input->compressed != NULL ? input->file_taken - input->compressed_bytes : reader->offset,
        .ns = reader->first_ns <= reader->last_ns ? reader->last_ns - reader->first_ns : 0};
    fxt_parts_add(&reader->parts, path, &part, reader->stopped ? reader->stopped_by : NULL);
}

int
reader_read(struct reader *reader, const char *path, const struct fxt_visitor *visitor)
{
    struct input input;
    int error = input_open(&input, path);
    reader->stopped = reader->moved = false;
    if (error != 0) {
        char *why = xformat("cannot be opened: %s", strerror(error));
        fxt_parts_add(&reader->parts, path, &(struct fxt_part){.file_bytes = INPUT_SIZE_UNKNOWN}, why);
        free(why);
        return error;
    }
    if (reader->again) reader->recording.last = reader->recording.number, reader->recording.traced = false;
    else recording_next(&reader->recording, path);
    reader->visitor = *visitor;
    reader->counts = (struct fxt_counts){0};
    free(reader->stopped_by);
    reader->stopped_by = NULL;
    reader->offset = 0;
    reader->first_ns = INT64_MAX;
    reader->last_ns = INT64_MIN;
    reader->packet_left = 0;
    providers_clear(&reader->providers);
    /* Perfetto knows provider 0 from the start: a file with one provider need not introduce it. */
    reader->current = providers_introduce(&reader->providers, 0);
    if (reader->current == NULL) reader_out_of_budget(reader);

    read_magic(reader, &input);
    if (!reader->stopped) read_records(reader, &input);
    if (!reader->again) note_part(reader, &input, path);
    input_close(&input);
    return 0;
}

int
reader_read_again(struct reader *reader, const char *path, const struct fxt_visitor *visitor)
{
    struct budget *budget = &reader->budget;
    size_t limit_bytes = budget->limit_bytes;
    reader->again = true;
    reader->last_offset = reader->stopped ? reader->offset : UINT64_MAX;
    budget->limit_bytes = SIZE_MAX; /* only what was named before is named */
    budget->exceeded = false;
    int error = reader_read(reader, path, visitor);
    budget->limit_bytes = limit_bytes;
    reader->again = false;
    return error;
}

bool
fxt_arg_uint(const struct fxt_arg *arg, uint64_t *value_out)
{
    if (arg == NULL) return false;
    switch (arg->type) {
      case FXT_ARG_INT32:
      case FXT_ARG_INT64:
        if (arg->i64 < 0) return false;
        *value_out = (uint64_t)arg->i64;
        return true;
      case FXT_ARG_UINT32:
      case FXT_ARG_UINT64:
        *value_out = arg->u64;
        return true;
      default:
        return false;
    }
}
