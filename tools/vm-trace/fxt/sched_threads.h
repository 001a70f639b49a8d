#ifndef SCHED_THREADS_H
#define SCHED_THREADS_H
/* sched_threads.h - which thread a scheduling record means that names no process, as a wake-up: threads that share
 * native ones have the same numbers in all processes. It is the thread of this number which the same provider named or
 * switched last, or else any provider of the recording.
 */
#include "base/map.h"

enum { SCHED_THREADS_MAX = 256 * 1024 };

/* A zeroed one is empty. */
struct sched_threads {
    struct budget *budget;  /* NULL: it keeps SCHED_THREADS_MAX threads */
    struct map by_provider; /* hashes, since tids count with all their 64 bits -> the caller's numbers */
    struct map by_tid;
};

void sched_threads_free(struct sched_threads *threads);
/* The provider names or switches a thread. */
void sched_threads_note(struct sched_threads *threads, uint32_t recording, uint32_t provider, uint64_t tid,
                        uint32_t number);
/* Returns the number of the thread, or MAP_NONE. */
uint32_t sched_threads_find(const struct sched_threads *threads, uint32_t recording, uint32_t provider, uint64_t tid);

#endif
