#ifndef THREAD_TABLE_H
#define THREAD_TABLE_H
/* thread_table.h - the names of processes and threads, and the number of events of each. A process is a pid, or
 * whatever number tells the caller's processes apart. */
#include "base/map.h"
#include "fxt/reader.h"

enum { THREADS_MAX = 256 * 1024 };

struct thread {
    uint32_t process;
    uint32_t tid;  /* 0: a Ruby thread that shares native threads */
    uint32_t name; /* STRING_NONE: unnamed */
    uint64_t events;
};

struct threads {
    struct map by_ids;
    struct map by_names; /* those of tid 0: pid and name */
    struct thread *list;
    uint32_t count;
    uint32_t capacity;
    struct map process_names; /* process -> string */
    uint32_t process_count;
};

/* A zeroed struct threads is empty. */
void threads_free(struct threads *threads);
/* Returns a thread; NULL if there are too many. Valid until the next call. */
struct thread *threads_get(struct threads *threads, uint32_t process, uint32_t tid);
/* Likewise, the Ruby thread with this name. */
struct thread *threads_running(struct threads *threads, uint32_t process, uint32_t name);
/* Takes the name from a kernel object record. */
void threads_name(struct threads *threads, struct pool *pool, uint32_t process, const struct fxt_object *object);
/* Returns STRING_NONE if no record names the process. */
uint32_t threads_process_name(const struct threads *threads, uint32_t process);

#endif
