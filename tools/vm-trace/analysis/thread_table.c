/* thread_table.c - see thread_table.h */
#include <stdlib.h>

#include "analysis/thread_table.h"
#include "base/xalloc.h"
#include "fxt/event_keys.h"

void
threads_free(struct threads *threads)
{
    map_free(&threads->by_ids);
    map_free(&threads->by_names);
    map_free(&threads->process_names);
    free(threads->list);
    *threads = (struct threads){0};
}

static struct thread *
get(struct threads *threads, struct map *index_of, uint64_t key, const struct thread *fresh)
{
    uint32_t index = map_get(index_of, key);
    if (index != MAP_NONE) return &threads->list[index];
    if (threads->count == THREADS_MAX) return NULL;
    make_room(threads->list, threads->count, threads->capacity);
    map_set(index_of, key, threads->count);
    threads->list[threads->count] = *fresh;
    return &threads->list[threads->count++];
}

struct thread *
threads_get(struct threads *threads, uint32_t process, uint32_t tid)
{
    return get(threads, &threads->by_ids, thread_key(process, tid), &(struct thread){.process = process, .tid = tid});
}

struct thread *
threads_running(struct threads *threads, uint32_t process, uint32_t name)
{
    return get(threads, &threads->by_names, (uint64_t)process << 32 | name, &(struct thread){.process = process, .name = name});
}

void
threads_name(struct threads *threads, struct pool *pool, uint32_t process, const struct fxt_object *object)
{
    uint32_t name = pool_id(pool, object->name);
    if (object->type == FXT_OBJECT_PROCESS) {
        if (threads->process_count == THREADS_MAX && map_get(&threads->process_names, process) == MAP_NONE) return;
        map_set(&threads->process_names, process, name);
        threads->process_count = (uint32_t)threads->process_names.used;
        return;
    }
    struct thread *thread = threads_get(threads, process, object->tid);
    if (thread != NULL) thread->name = name;
}

uint32_t
threads_process_name(const struct threads *threads, uint32_t process)
{
    uint32_t name = map_get(&threads->process_names, process);
    return name == MAP_NONE ? STRING_NONE : name;
}
