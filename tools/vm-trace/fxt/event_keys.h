#ifndef EVENT_KEYS_H
#define EVENT_KEYS_H
/* event_keys.h - keys of a struct map for what events belong to: a thread, a flow, an async
 * event. */
#include "base/hash_index.h"
#include "fxt/reader.h"

static inline uint64_t
thread_key(uint32_t process, uint32_t tid)
{
    return (uint64_t)process << 32 | tid;
}

/* The id of a flow belongs to its process. The key is a hash, so flows with equal keys count as
 * one. */
static inline uint64_t
flow_key(uint32_t process, uint64_t id)
{
    return hash_mix(hash_mix(id) + process);
}

/* Async events of a recording belong together by category, name and id, whatever their threads. A hash, too. */
static inline uint64_t
async_key(struct pool *pool, const struct fxt_event *event)
{
    uint64_t names = (uint64_t)pool_id(pool, event->category) << 32 | pool_id(pool, event->name);
    return hash_mix(hash_mix(event->id) + names) ^ hash_mix(event->recording);
}

#endif
