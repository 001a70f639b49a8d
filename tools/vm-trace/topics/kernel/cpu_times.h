#ifndef CPU_TIMES_H
#define CPU_TIMES_H
/* cpu_times.h - sums of the stream `sched`: how long each native thread had a CPU or waited for one, and who
 * had it meanwhile; and how long the thread held the GVL without a CPU.
 *
 *      cpu_times_init -> cpu_times_event for each slice, cpu_times_held for each time with the GVL
 *      -> cpu_times_file_end after each file -> the rows -> cpu_times_free
 *
 * What lies in the window counts. Memory grows with the number of threads and of other tasks. Times with the
 * GVL and slices of CPUs wait until the file has caught up with both: see overlaps.h.
 */
#include "topics/kernel/overlaps.h"
#include "base/row_list.h"
#include "fxt/reader.h"

enum { CPU_THREADS_MAX = 256 * 1024, CPU_OTHERS_MAX = 256 * 1024, NO_CPU = UINT32_MAX };

struct cpu_thread {
    uint32_t process; /* the key: a number of the caller's */
    uint32_t tid;     /* of the native thread */
    uint32_t track;   /* the caller's number of its track */
    uint32_t cpu;     /* the last one; NO_CPU: not known */
    int64_t known_ns; /* up to which it is known when it had a CPU; INT64_MIN: it is not */
    uint64_t cpu_ns, preempted_ns, woken_ns, longest_wait_ns;
    uint64_t runs, waits, migrations;
};
enum { CPU_THREAD_KEYS = 2 };

/* A task that had the CPU while a thread waited for it. */
struct cpu_other {
    uint32_t process; /* the key, as above */
    uint32_t tid;
    uint32_t other;
    uint64_t waits, total_ns;
};
enum { CPU_OTHER_KEYS = 3 };

/* A time on a CPU, or a wait for one. */
struct cpu_slice {
    struct interval time;
    bool waits;
    bool migrated;  /* it runs on another CPU than before */
    uint32_t why;   /* of a wait */
    uint32_t other; /* the task that had the CPU meanwhile, or STRING_NONE */
};

struct cpu_times {
    struct interval window; /* set by cpu_times_set_window */
    struct row_list current; /* rows of threads that the current file has */
    struct row_table threads; /* of struct cpu_thread */
    struct row_table others;  /* of struct cpu_other */
    struct overlaps held;     /* times with the GVL, and times without a CPU */
    uint64_t uncounted;       /* slices of too many threads, or waits for too many tasks */
    /* NULL, or a function of the caller: gets each slice that counts. */
    void *context;
    void (*slice)(void *context, const struct cpu_thread *thread, const struct cpu_slice *slice);
};

void cpu_times_init(struct cpu_times *times);
void cpu_times_free(struct cpu_times *times);
void cpu_times_set_window(struct cpu_times *times, struct interval window);
/* Takes an event of the category sched. `held`: times with the GVL are recorded, too. */
void cpu_times_event(struct cpu_times *times, struct pool *pool, uint32_t process, uint32_t track, bool held,
                     const struct fxt_event *event);
/* A thread held the GVL. */
void cpu_times_held(struct cpu_times *times, uint32_t process, uint32_t tid, struct interval interval);
void cpu_times_file_end(struct cpu_times *times);
/* After the last file: threads that waited longest, and tasks for which they did, come first. */
void cpu_times_sort(struct cpu_times *times, struct pool *pool);
/* Returns the thread that waited. */
const struct cpu_thread *cpu_other_thread(struct cpu_times *times, const struct cpu_other *other);
/* Returns how long it held the GVL without a CPU, or NULL if that is not recorded. */
const uint64_t *cpu_times_held_ns(struct cpu_times *times, const struct cpu_thread *thread);

static inline uint64_t
cpu_wait_ns(const struct cpu_thread *thread)
{
    return thread->preempted_ns + thread->woken_ns;
}

#endif
