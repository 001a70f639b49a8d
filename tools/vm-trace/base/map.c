/* map.c - see map.h */
#include <stdlib.h>

#include "base/map.h"
#include "base/xalloc.h"

void
map_free(struct map *map)
{
    free(map->keys);
    free(map->values);
    hash_index_free(&map->index);
    *map = (struct map){0};
}

static uint64_t
hash_of(const void *map, uint32_t number)
{
    return hash_mix(((const struct map *)map)->keys[number]);
}

void
map_set(struct map *map, uint64_t key, uint32_t value)
{
    hash_index_reserve(&map->index, map->used, hash_of, map);
    uint32_t *slot = map_slot(map, key);
    if (*slot == 0) {
        if (map->used == map->capacity) {
            map->capacity = (uint32_t)grown_capacity(map->capacity, sizeof map->capacity);
            map->keys = xrealloc(map->keys, map->capacity, sizeof *map->keys);
            map->values = xrealloc(map->values, map->capacity, sizeof *map->values);
        }
        map->keys[map->used] = key;
        *slot = ++map->used;
    }
    map->values[*slot - 1] = value;
}

size_t
map_bytes(const struct map *map)
{
    return map->capacity * (sizeof *map->keys + sizeof *map->values) +
           map->index.slot_count * sizeof *map->index.slots;
}

void
map_set_within(struct budget *budget, struct map *map, uint64_t key, uint32_t value)
{
    size_t before = map_bytes(map);
    map_set(map, key, value);
    budget_charge(budget, map_bytes(map) - before);
}
