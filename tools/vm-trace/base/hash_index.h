#ifndef HASH_INDEX_H
#define HASH_INDEX_H
/* hash_index.h - the tool's hash table: finds entries of an array of the caller's by their hash.
 *
 * Open addressing with linear probing, at most half full. A slot holds the number of an entry + 1, or
 * 0 where it is free. The caller keeps the entries and compares their keys:
 *
 *      uint32_t *slot = hash_index_first(&index, hash);
 *      while (*slot != 0 && KEY OF ENTRY *slot - 1 IS ANOTHER) slot = hash_index_next(&index, slot);
 *
 * Then *slot is that of the entry; or 0, and the caller may put the number of a new entry + 1 there.
 * map.h (64-bit keys), row_table.h (keys of several numbers) and pool.h (strings) are made so.
 */
#include <stdbool.h>
#include <stdint.h>

struct hash_index {
    uint32_t *slots;
    uint32_t slot_count; /* a power of two, or 0 */
};

/* A zeroed index is an empty one; this leaves it empty. */
void hash_index_free(struct hash_index *index);

/* Returns the hash of an entry of the caller's, by its number. */
typedef uint64_t hash_index_hash(const void *entries, uint32_t number);

/* hash_index_reserve, where the index is too small. */
void hash_index_grow(struct hash_index *index, uint32_t count, hash_index_hash *hash_of, const void *entries);

/* Makes room for one entry more than the `count` that there are. Must be called before the slot of a
 * new entry is looked for. */
static inline void
hash_index_reserve(struct hash_index *index, uint32_t count, hash_index_hash *hash_of, const void *entries)
{
    if (count >= index->slot_count / 2) hash_index_grow(index, count, hash_of, entries);
}

/* The index must not be empty. */
static inline uint32_t *
hash_index_first(const struct hash_index *index, uint64_t hash)
{
    return &index->slots[hash & (index->slot_count - 1)];
}

static inline uint32_t *
hash_index_next(const struct hash_index *index, uint32_t *slot)
{
    return ++slot == index->slots + index->slot_count ? index->slots : slot;
}

/* Spreads the bits of a word over all bits of the result: for hashes. */
static inline uint64_t
mix64(uint64_t word)
{
    word ^= word >> 32;
    word *= UINT64_C(0x9e3779b97f4a7c15);
    word ^= word >> 29;
    word *= UINT64_C(0xbf58476d1ce4e5b9);
    return word ^ (word >> 32);
}

#endif
