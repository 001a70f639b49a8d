/* ring_chunks.c - see ring_chunks.h */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "vm_trace/schema/fxt.h"
#include "fxt/ring_chunks.h"

enum { RING_CHUNK_BYTES = INPUT_WINDOW_BYTES, RING_TRIES = 1000 };

struct ring_chunks {
    uint64_t settled_end; /* the end of the settled chunk; 0: none */
    struct seen_chunk {
        uint64_t offset;
        uint64_t size;
        uint64_t hash;
    } *seen;
    uint32_t count;
    uint32_t capacity;
    uint8_t again[RING_CHUNK_BYTES];
};

struct ring_chunks *
ring_chunks_new(void)
{
    return xcalloc(1, sizeof(struct ring_chunks));
}

void
ring_chunks_free(struct ring_chunks *ring)
{
    if (ring != NULL) free(ring->seen);
    free(ring);
}

bool
ring_chunks_settled(struct ring_chunks *ring, uint64_t offset)
{
    bool settled = ring->settled_end != 0;
    if (offset >= ring->settled_end) ring->settled_end = 0;
    return settled;
}

static uint64_t
word_at(const uint8_t *bytes, size_t at)
{
    uint64_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

/* Whether everything is padding, from the record that contains byte `at` on. */
static bool
padding_from(const uint8_t *bytes, size_t size, size_t at)
{
    for (size_t from = 0; from + FXT_WORD_BYTES <= size;) {
        uint64_t header = word_at(bytes, from);
        size_t record = (size_t)fxt_bits(header, FXT_HEADER_SIZE) * FXT_WORD_BYTES;
        if (record == 0 || record > size - from) return false;
        from += record;
        if (from > at && !fxt_padding_p(header)) return false;
    }
    return true;
}

static uint64_t
hash_of(const uint8_t *bytes, size_t size)
{
    uint64_t hash = size;
    for (size_t at = 0; at + FXT_WORD_BYTES <= size; at += FXT_WORD_BYTES) hash = mix64(hash ^ word_at(bytes, at));
    return hash;
}

void
ring_chunks_settle(struct ring_chunks *ring, struct input *input)
{
    if (ring->settled_end != 0) return;
    if (input_look_again(input, ring->again, FXT_WORD_BYTES) == 0) return;
    size_t there = input_need(input, RING_CHUNK_BYTES);
    if (there > RING_CHUNK_BYTES) there = RING_CHUNK_BYTES;
    for (int i = 0; i < RING_TRIES; i++) {
        size_t size = input_look_again(input, ring->again, there);
        if (size == 0) return;
        const uint8_t *bytes = input_bytes(input);
        size_t same = 0;
        while (same + FXT_WORD_BYTES <= size && word_at(bytes, same) == word_at(ring->again, same))
            same += FXT_WORD_BYTES;
        if (same + FXT_WORD_BYTES > size || padding_from(bytes, there, same)) break;
        input_replace(input, ring->again, size);
    }
    ring->settled_end = input->offset + there;
    make_room(ring->seen, ring->count, ring->capacity);
    ring->seen[ring->count++] = (struct seen_chunk){input->offset, there, hash_of(input_bytes(input), there)};
}

bool
ring_chunks_moved(struct ring_chunks *ring, const struct input *input)
{
    for (uint32_t i = 0; i < ring->count; i++) {
        struct input at = *input;
        at.offset = ring->seen[i].offset;
        size_t size = input_look_again(&at, ring->again, ring->seen[i].size);
        if (hash_of(ring->again, size) != ring->seen[i].hash) return true;
    }
    return false;
}
