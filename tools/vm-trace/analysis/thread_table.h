#ifndef THREAD_TABLE_H
#define THREAD_TABLE_H
/* thread_table.h - names of processes and threads, and how much was seen of each. */
#include "base/map.h"
#include "fxt/reader.h"

enum { THREADS_MAX = 256 * 1024 };

struct thread {
    uint32_t pid;
    uint32_t tid;  /* 0: a Ruby thread that shares native ones with others */
    uint32_t name; /* STRING_NONE where no record names it */
    uint64_t events;
};

struct threads {
    struct map by_ids;
    struct map by_names; /* those of tid 0: pid and name */
    struct thread *list;
    uint32_t count;
    uint32_t capacity;
    struct map process_names; /* pid -> string */
    uint32_t process_count;
};

/* A zeroed struct threads is an empty one. */
void threads_free(struct threads *threads);
/* NULL when there are too many threads. Good until the next call. */
struct thread *threads_get(struct threads *threads, uint32_t pid, uint32_t tid);
/* Likewise, the Ruby thread of that name. */
struct thread *threads_running(struct threads *threads, uint32_t pid, uint32_t name);
/* Takes a name from a kernel object record. */
void threads_name(struct threads *threads, struct pool *pool, const struct fxt_object *object);
/* STRING_NONE where no record names it. */
uint32_t threads_process_name(const struct threads *threads, uint32_t pid);

#endif
