#ifndef MAP_H
#define MAP_H
/* map.h - a hash table from 64-bit keys to 32-bit numbers, usually indexes into a caller's
 * array. Entries cannot be removed. */
#include <stddef.h>
#include <stdint.h>

#include "base/hash_index.h"
#include "base/xalloc.h"

struct map {
    uint64_t *keys;
    uint32_t *values;
    uint32_t used;
    uint32_t capacity; /* of keys and values */
    struct hash_index index;
};

#define MAP_NONE UINT32_MAX

/* A zeroed struct map is an empty one. map_free leaves it empty. */
void map_free(struct map *map);
/* Stores a number (not MAP_NONE) for the key, and replaces an earlier one. */
void map_set(struct map *map, uint64_t key, uint32_t value);
/* The bytes that the map has allocated. */
size_t map_bytes(const struct map *map);
/* map_set that charges the growth of the map to the budget. */
void map_set_within(struct budget *budget, struct map *map, uint64_t key, uint32_t value);

/* For map_get and map.c only: the slot of a key. */
static inline uint32_t *
map_slot(const struct map *map, uint64_t key)
{
    uint32_t *slot = hash_index_first(&map->index, hash_mix(key));
    while (*slot != 0 && map->keys[*slot - 1] != key) slot = hash_index_next(&map->index, slot);
    return slot;
}

/* Returns the number stored for the key, or MAP_NONE. Inline because it runs several times per
 * event. */
static inline uint32_t
map_get(const struct map *map, uint64_t key)
{
    if (map->used == 0) return MAP_NONE;
    uint32_t number = *map_slot(map, key);
    return number == 0 ? MAP_NONE : map->values[number - 1];
}

#endif
