/* record_copy.c - see record_copy.h */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "fxt/record_copy.h"

/* Definitions that wait for a record: far more than a chunk holds, so only odd files get there. Those of one provider are
 * written then, needed or not. */
enum { WAITING_MAX = 64 * 1024 * 1024 };

struct source {
    uint32_t id; /* in the new trace */
    uint8_t *waiting;
    size_t len;
    size_t capacity;
};

struct splice {
    FILE *out;
    bool keep_ids;
    struct map source_of; /* provider of the current file -> source */
    struct source **sources;
    uint32_t count;
    uint32_t capacity;
    size_t waiting; /* bytes, of all sources */
    const struct source *current; /* whose records come next in the new trace; NULL at first */
};

static void
write_word(struct splice *splice, uint64_t word)
{
    fwrite(&word, sizeof word, 1, splice->out);
}

struct splice *
splice_new(FILE *out, bool keep_ids)
{
    struct splice *splice = xcalloc(1, sizeof *splice);
    splice->out = out;
    splice->keep_ids = keep_ids;
    write_word(splice, FXT_MAGIC_RECORD);
    return splice;
}

void
splice_free(struct splice *splice)
{
    for (uint32_t i = 0; i < splice->count; i++) {
        free(splice->sources[i]->waiting);
        free(splice->sources[i]);
    }
    free(splice->sources);
    map_free(&splice->source_of);
    free(splice);
}

void
splice_file(struct splice *splice)
{
    map_free(&splice->source_of);
}

static void
add_waiting(struct splice *splice, struct source *source, const void *bytes, size_t len)
{
    if (source->capacity - source->len < len) {
        source->capacity = 2 * (source->len + len);
        source->waiting = xrealloc(source->waiting, source->capacity, 1);
    }
    memcpy(source->waiting + source->len, bytes, len);
    source->len += len;
    splice->waiting += len;
}

static void
forget_waiting(struct splice *splice, struct source *source)
{
    splice->waiting -= source->len;
    source->len = 0;
}

static uint64_t
provider_header(enum fxt_metadata_type type, size_t words, uint32_t id)
{
    return FXT_RECORD_METADATA | (uint64_t)words << 4 | (uint64_t)type << 16 | (uint64_t)id << 20;
}

/* The source of a provider, made when it is seen first. That can be without an introduction: a file of one provider need not
 * introduce it. Beside others it must be. */
static struct source *
source_of(struct splice *splice, uint32_t provider)
{
    uint32_t index = map_get(&splice->source_of, provider);
    if (index != MAP_NONE) return splice->sources[index];
    make_room(splice->sources, splice->count, splice->capacity);
    struct source *source = xcalloc(1, sizeof *source);
    map_set(&splice->source_of, provider, splice->count);
    splice->sources[splice->count++] = source;
    source->id = splice->keep_ids ? provider : splice->count;
    if (!splice->keep_ids) {
        uint64_t info = provider_header(FXT_METADATA_PROVIDER_INFO, 1, source->id);
        add_waiting(splice, source, &info, sizeof info);
    }
    return source;
}

/* A metadata record for the source, whatever its id was. */
static uint64_t
renamed(uint64_t header, uint32_t id)
{
    const uint64_t all_ones = UINT32_MAX;
    return (header & ~(all_ones << 20)) | (uint64_t)id << 20;
}

bool
splice_is_definition(const struct fxt_record *record)
{
    switch (record->type) {
      case FXT_RECORD_METADATA: return fxt_bits(record->header, FXT_METADATA_TYPE) != FXT_METADATA_PROVIDER_EVENT;
      case FXT_RECORD_INITIALIZATION:
      case FXT_RECORD_STRING:
      case FXT_RECORD_THREAD: return true;
      default: return false;
    }
}

/* Makes the source the one whose records come next, its definitions written. */
static void
write_waiting(struct splice *splice, struct source *source)
{
    uint64_t header = 0;
    if (source->len > 0) memcpy(&header, source->waiting, sizeof header);
    bool introduced = source->len > 0 && fxt_bits(header, FXT_HEADER_TYPE) == FXT_RECORD_METADATA;
    bool first = splice->current == NULL && splice->keep_ids && source->id == 0; /* a provider 0 is there from the start */
    if (splice->current != source && !introduced && !first) {
        write_word(splice, provider_header(FXT_METADATA_PROVIDER_SECTION, 1, source->id));
    }
    if (source->len > 0) fwrite(source->waiting, 1, source->len, splice->out);
    forget_waiting(splice, source);
    splice->current = source;
}

void
splice_define(struct splice *splice, const struct fxt_record *record)
{
    if (fxt_padding_p(record->header)) return;
    bool metadata = record->type == FXT_RECORD_METADATA;
    if (metadata && fxt_bits(record->header, FXT_METADATA_TYPE) != FXT_METADATA_PROVIDER_INFO) return; /* is written anew */
    struct source *source = source_of(splice, record->provider);
    size_t bytes = record->words * FXT_WORD_BYTES;
    if (metadata) {
        if (bytes - FXT_WORD_BYTES < fxt_bits(record->header, FXT_PROVIDER_NAME_BYTES)) return; /* too short: it was not taken */
        uint64_t header = renamed(record->header, source->id);
        forget_waiting(splice, source); /* introduced again, its tables are empty */
        add_waiting(splice, source, &header, sizeof header);
        add_waiting(splice, source, record->bytes + sizeof header, bytes - sizeof header);
        return;
    }
    if (splice->waiting + bytes > WAITING_MAX) write_waiting(splice, source);
    add_waiting(splice, source, record->bytes, bytes);
}

void
splice_keep(struct splice *splice, const struct fxt_record *record)
{
    struct source *source = source_of(splice, record->provider);
    write_waiting(splice, source);
    uint64_t header = record->header;
    if (record->type == FXT_RECORD_METADATA) { /* names a provider of its file, not always the current one */
        header = renamed(header, source_of(splice, (uint32_t)fxt_bits(header, FXT_PROVIDER_ID))->id);
    }
    write_word(splice, header);
    fwrite(record->bytes + sizeof header, 1, record->words * FXT_WORD_BYTES - sizeof header, splice->out);
}
