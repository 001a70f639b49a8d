#ifndef SCHED_CHANGES_H
#define SCHED_CHANGES_H
/* sched_changes.h - what a scheduling record of the tracer says of threads.
 *
 * Only the kinds of records that the tracer writes count: legacy context switches and wake-ups.
 */
#include "analysis/duration_edge.h"
#include "fxt/reader.h"
#include "fxt/sched_threads.h"

enum { SCHED_CHANGES_MAX = 2 };

struct sched_change_of {
    enum sched_change change;
    uint32_t pid, tid;
};

/* Takes the process of a thread from a kernel object record. The numbers are pids. */
void sched_changes_name(struct sched_threads *threads, const struct fxt_object *object);
/* Returns the number of changes of the record: 0 to 2, in their order. */
unsigned sched_changes(struct sched_threads *threads, const struct fxt_sched *sched,
                       struct sched_change_of changes_out[SCHED_CHANGES_MAX]);

#endif
