#ifndef MAP_H
#define MAP_H
/* map.h - a hash table from 64-bit keys to 32-bit indexes: into an array of the caller's, where the values are. */
#include <stddef.h>
#include <stdint.h>

struct map {
    uint64_t *keys;
    uint32_t *values; /* MAP_NONE where the slot is free */
    size_t used;
    size_t slots; /* a power of two, or 0 */
};

#define MAP_NONE UINT32_MAX

/* A zeroed struct map is an empty one. map_free leaves it empty. */
void map_free(struct map *map);
/* The index kept for key, or MAP_NONE. */
uint32_t map_get(const struct map *map, uint64_t key);
/* Keeps an index (not MAP_NONE) for key, in place of what was there. */
void map_set(struct map *map, uint64_t key, uint32_t value);

/* Spreads the bits of a word; used wherever something is hashed. */
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
