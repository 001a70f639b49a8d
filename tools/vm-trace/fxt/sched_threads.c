/* sched_threads.c - see sched_threads.h */
#include "fxt/sched_threads.h"

void
sched_threads_free(struct sched_threads *threads)
{
    map_free(&threads->by_provider);
    map_free(&threads->by_tid);
}

static uint64_t
key_of(uint64_t tid, uint32_t recording, uint32_t provider)
{
    return hash_mix(tid) ^ ((uint64_t)recording << 32 | provider);
}

static void
set(const struct sched_threads *threads, struct map *map, uint64_t key, uint32_t number)
{
    if (map_get(map, key) == number) return;
    if (threads->budget != NULL) map_set_within(threads->budget, map, key, number);
    else if (map->used < SCHED_THREADS_MAX) map_set(map, key, number);
}

void
sched_threads_note(struct sched_threads *threads, uint32_t recording, uint32_t provider, uint64_t tid,
                   uint32_t number)
{
    if (number == MAP_NONE) return;
    set(threads, &threads->by_provider, key_of(tid, recording, provider), number);
    set(threads, &threads->by_tid, key_of(tid, recording, 0), number);
}

uint32_t
sched_threads_find(const struct sched_threads *threads, uint32_t recording, uint32_t provider, uint64_t tid)
{
    uint32_t number = map_get(&threads->by_provider, key_of(tid, recording, provider));
    return number != MAP_NONE ? number : map_get(&threads->by_tid, key_of(tid, recording, 0));
}
