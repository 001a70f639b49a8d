/* map.c - see map.h. Open addressing, linear probing, at most two thirds full. */
#include <stdlib.h>

#include "base/map.h"
#include "base/xalloc.h"

void
map_free(struct map *map)
{
    free(map->keys);
    free(map->values);
    *map = (struct map){0};
}

static size_t
slot_of(const struct map *map, uint64_t key)
{
    size_t slot = mix64(key) & (map->slots - 1);
    while (map->values[slot] != MAP_NONE && map->keys[slot] != key) {
        slot = (slot + 1) & (map->slots - 1);
    }
    return slot;
}

uint32_t
map_get(const struct map *map, uint64_t key)
{
    return map->slots == 0 ? MAP_NONE : map->values[slot_of(map, key)];
}

static void
grow(struct map *map)
{
    struct map bigger = {.slots = map->slots ? map->slots * 2 : 16, .used = map->used};
    bigger.keys = xcalloc(bigger.slots, sizeof *bigger.keys);
    bigger.values = xcalloc(bigger.slots, sizeof *bigger.values);
    for (size_t i = 0; i < bigger.slots; i++) bigger.values[i] = MAP_NONE;
    for (size_t i = 0; i < map->slots; i++) {
        if (map->values[i] == MAP_NONE) continue;
        size_t slot = slot_of(&bigger, map->keys[i]);
        bigger.keys[slot] = map->keys[i];
        bigger.values[slot] = map->values[i];
    }
    map_free(map);
    *map = bigger;
}

void
map_set(struct map *map, uint64_t key, uint32_t value)
{
    if (map->used * 3 >= map->slots * 2) grow(map);
    size_t slot = slot_of(map, key);
    if (map->values[slot] == MAP_NONE) map->used++;
    map->keys[slot] = key;
    map->values[slot] = value;
}
