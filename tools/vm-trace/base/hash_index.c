/* hash_index.c - see hash_index.h */
#define _DEFAULT_SOURCE /* getentropy */
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/hash_index.h"
#include "base/xalloc.h"

struct hash_seed hash_seed = HASH_NO_SEED;

void
hash_seed_init(void)
{
    struct hash_seed drawn;
    if (hash_seed.bits != 0 || getentropy(&drawn, sizeof drawn) != 0) return; /* tables may be in use: a fuzzer runs main again */
    for (unsigned i = 0; i < 2; i++) drawn.odd[i] |= 1; /* an even factor would lose bits */
    hash_seed = drawn;
}

void
hash_index_free(struct hash_index *index)
{
    free(index->slots);
    *index = (struct hash_index){0};
}

void
hash_index_grow(struct hash_index *index, uint32_t count, hash_index_hash *hash_of, const void *entries)
{
    uint32_t slot_count = index->slot_count;
    while (slot_count / 2 <= count) slot_count = (uint32_t)grown_capacity(slot_count, sizeof slot_count);
    free(index->slots);
    index->slots = xcalloc(slot_count, sizeof *index->slots);
    index->slot_count = slot_count;
    for (uint32_t number = 0; number < count; number++) {
        uint32_t *slot = hash_index_first(index, hash_of(entries, number));
        while (*slot != 0) slot = hash_index_next(index, slot);
        *slot = number + 1;
    }
}
