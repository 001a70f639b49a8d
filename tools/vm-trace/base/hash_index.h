#ifndef HASH_INDEX_H
#define HASH_INDEX_H
/* hash_index.h - the tool's hash table: finds entries of a caller's array by their hash.
 *
 * Open addressing with linear probing, at most half full. A slot holds the number of an entry + 1,
 * or 0 if it is free. The caller owns the entries and compares their keys:
 *
 *      uint32_t *slot = hash_index_first(&index, hash);
 *      while (*slot != 0 && KEY OF ENTRY *slot - 1 DIFFERS) slot = hash_index_next(&index, slot);
 *
 * Then *slot either belongs to the entry, or is 0, and the caller may store the number of a new
 * entry + 1 in it. map.h (64-bit keys), row_table.h (keys of several numbers) and pool.h (strings)
 * use it.
 *
 * Hashes are made with hash_mix, which differs from run to run: nobody can make a trace whose keys all get the same
 * slot. So nothing that is printed may depend on a hash, or on the order of the slots.
 */
#include <stdbool.h>
#include <stdint.h>

struct hash_index {
    uint32_t *slots;
    uint32_t slot_count; /* a power of two, or 0 */
};

/* A zeroed index is empty. Leaves the index empty. */
void hash_index_free(struct hash_index *index);

/* Returns the hash of the entry with this number. */
typedef uint64_t hash_index_hash(const void *entries, uint32_t number);

/* The slow path of hash_index_reserve. */
void hash_index_grow(struct hash_index *index, uint32_t count, hash_index_hash *hash_of, const void *entries);

/* Makes room for one more entry than `count`. Call it before looking for the slot of a new
 * entry. */
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

struct hash_seed {
    uint64_t bits;
    uint64_t odd[2];
};

/* Of this run. Tests that leave out hash_seed_init have HASH_NO_SEED. */
extern struct hash_seed hash_seed;
#define HASH_NO_SEED {0, {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9)}}

/* Draws the seed. Call it before there is any table. If the system has no random numbers, the seed stays. */
void hash_seed_init(void);

/* Mixes all bits of a word. */
static inline uint64_t
hash_mix_with(const struct hash_seed *seed, uint64_t word)
{
    word ^= seed->bits;
    word ^= word >> 32;
    word *= seed->odd[0];
    word ^= word >> 29;
    word *= seed->odd[1];
    return word ^ (word >> 32);
}

/* For keys of tables. */
static inline uint64_t
hash_mix(uint64_t word)
{
    return hash_mix_with(&hash_seed, word);
}

/* The same in every run: for what is printed, or compared with what another run has printed. */
static inline uint64_t
mix64(uint64_t word)
{
    static const struct hash_seed none = HASH_NO_SEED;
    return hash_mix_with(&none, word);
}

#endif
