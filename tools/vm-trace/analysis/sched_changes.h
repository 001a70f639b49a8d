#ifndef SCHED_CHANGES_H
#define SCHED_CHANGES_H
/* sched_changes.h - what a scheduling record of the tracer says of threads.
 *
 * Only the kinds of records that the tracer writes count: legacy context switches and wake-ups. A
 * wake-up names a thread without its process; threads that share native ones have the same numbers
 * in all processes. So a wake-up belongs to the process whose thread of this number the same
 * provider named or switched last, or else any provider.
 */
#include "analysis/duration_edge.h"
#include "base/map.h"
#include "fxt/reader.h"

enum { SCHED_CHANGES_MAX = 2, SCHED_THREADS_MAX = 256 * 1024 };

struct sched_change_of {
    enum sched_change change;
    uint32_t pid, tid;
};

/* A zeroed one is empty. For one file. */
struct sched_processes {
    struct map by_provider; /* provider and tid -> pid */
    struct map by_tid;      /* tid -> pid */
};

void sched_processes_free(struct sched_processes *processes);
/* Takes the process of a thread from a kernel object record. */
void sched_processes_name(struct sched_processes *processes, const struct fxt_object *object);
/* Returns the number of changes of the record: 0 to 2, in their order. */
unsigned sched_changes(struct sched_processes *processes, const struct fxt_sched *sched,
                       struct sched_change_of changes_out[SCHED_CHANGES_MAX]);

#endif
