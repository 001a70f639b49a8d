/* record_copy.c - see record_copy.h */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "fxt/record_copy.h"

/* Limit for pending definitions, far above what a chunk holds. In an odd file that reaches it,
 * the definitions of a provider are written even if nothing needs them. */
enum { PENDING_MAX = 64 * 1024 * 1024 };

struct source {
    uint32_t id; /* in the new trace */
    uint8_t *pending;
    size_t len;
    size_t capacity;
};

struct record_copy {
    FILE *out;
    bool keep_ids;
    struct map source_of; /* provider of the current file -> source */
    struct source **sources;
    uint32_t count;
    uint32_t capacity;
    size_t pending; /* bytes, of all sources */
    const struct source *current; /* whose records come next in the new trace; NULL before the first */
};

static void
write_word(struct record_copy *copy, uint64_t word)
{
    fwrite(&word, sizeof word, 1, copy->out);
}

struct record_copy *
record_copy_new(FILE *out, bool keep_ids)
{
    struct record_copy *copy = xcalloc(1, sizeof *copy);
    copy->out = out;
    copy->keep_ids = keep_ids;
    write_word(copy, FXT_MAGIC_RECORD);
    return copy;
}

void
record_copy_free(struct record_copy *copy)
{
    for (uint32_t i = 0; i < copy->count; i++) {
        free(copy->sources[i]->pending);
        free(copy->sources[i]);
    }
    free(copy->sources);
    map_free(&copy->source_of);
    free(copy);
}

void
record_copy_next_file(struct record_copy *copy)
{
    map_free(&copy->source_of);
}

static void
add_pending(struct record_copy *copy, struct source *source, const void *bytes, size_t len)
{
    if (source->capacity - source->len < len) {
        source->capacity = 2 * (source->len + len);
        source->pending = xrealloc(source->pending, source->capacity, 1);
    }
    memcpy(source->pending + source->len, bytes, len);
    source->len += len;
    copy->pending += len;
}

static void
drop_pending(struct record_copy *copy, struct source *source)
{
    copy->pending -= source->len;
    source->len = 0;
}

static uint64_t
provider_header(enum fxt_metadata_type type, size_t words, uint32_t id)
{
    return fxt_header(FXT_RECORD_METADATA, words) | fxt_field(type, FXT_METADATA_TYPE) | fxt_field(id, FXT_PROVIDER_ID);
}

/* The source of a provider, created when first seen. A file with one provider need not introduce
 * it; in a joined file it must be introduced. */
static struct source *
source_of(struct record_copy *copy, uint32_t provider)
{
    uint32_t index = map_get(&copy->source_of, provider);
    if (index != MAP_NONE) return copy->sources[index];
    make_room(copy->sources, copy->count, copy->capacity);
    struct source *source = xcalloc(1, sizeof *source);
    map_set(&copy->source_of, provider, copy->count);
    copy->sources[copy->count++] = source;
    source->id = copy->keep_ids ? provider : copy->count;
    if (!copy->keep_ids) {
        uint64_t info = provider_header(FXT_METADATA_PROVIDER_INFO, 1, source->id);
        add_pending(copy, source, &info, sizeof info);
    }
    return source;
}

bool
record_is_definition(const struct fxt_record *record)
{
    switch (record->type) {
      case FXT_RECORD_METADATA: return fxt_bits(record->header, FXT_METADATA_TYPE) != FXT_METADATA_PROVIDER_EVENT;
      case FXT_RECORD_INITIALIZATION:
      case FXT_RECORD_STRING:
      case FXT_RECORD_THREAD: return true;
      default: return false;
    }
}

/* Makes the source the current one, and writes its pending definitions. */
static void
write_pending(struct record_copy *copy, struct source *source)
{
    uint64_t header = 0;
    if (source->len > 0) memcpy(&header, source->pending, sizeof header);
    bool introduced = source->len > 0 && fxt_bits(header, FXT_HEADER_TYPE) == FXT_RECORD_METADATA;
    bool first = copy->current == NULL && copy->keep_ids && source->id == 0; /* provider 0 exists from the start */
    if (copy->current != source && !introduced && !first) {
        write_word(copy, provider_header(FXT_METADATA_PROVIDER_SECTION, 1, source->id));
    }
    if (source->len > 0) fwrite(source->pending, 1, source->len, copy->out);
    drop_pending(copy, source);
    copy->current = source;
}

void
record_copy_define(struct record_copy *copy, const struct fxt_record *record)
{
    if (fxt_padding_p(record->header)) return;
    bool metadata = record->type == FXT_RECORD_METADATA;
    if (metadata && fxt_bits(record->header, FXT_METADATA_TYPE) != FXT_METADATA_PROVIDER_INFO) return; /* not copied */
    struct source *source = source_of(copy, record->provider);
    size_t bytes = record->words * FXT_WORD_BYTES;
    if (metadata) {
        if (bytes - FXT_WORD_BYTES < fxt_bits(record->header, FXT_PROVIDER_NAME_BYTES)) return; /* it was rejected */
        uint64_t header = fxt_with_field(record->header, source->id, FXT_PROVIDER_ID);
        drop_pending(copy, source); /* an introduction empties the tables */
        add_pending(copy, source, &header, sizeof header);
        add_pending(copy, source, record->bytes + sizeof header, bytes - sizeof header);
        return;
    }
    if (copy->pending + bytes > PENDING_MAX) write_pending(copy, source);
    add_pending(copy, source, record->bytes, bytes);
}

void
record_copy_write(struct record_copy *copy, const struct fxt_record *record)
{
    struct source *source = source_of(copy, record->provider);
    write_pending(copy, source);
    uint64_t header = record->header;
    if (record->type == FXT_RECORD_METADATA) { /* it names a provider of its file, not always the current one */
        const struct source *named = source_of(copy, (uint32_t)fxt_bits(header, FXT_PROVIDER_ID));
        header = fxt_with_field(header, named->id, FXT_PROVIDER_ID);
    }
    write_word(copy, header);
    fwrite(record->bytes + sizeof header, 1, record->words * FXT_WORD_BYTES - sizeof header, copy->out);
}
