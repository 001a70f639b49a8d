#ifndef SCHED_CHECK_H
#define SCHED_CHECK_H
/* sched_check.h - checks the stream `sched`: the tracks and arguments of its slices, that they do not overlap,
 * and that settings and summary agree with them.
 */
#include "analysis/stream_counts.h"

/* For stream_counts_init. */
extern const struct counted_stream sched_stream;

/* An event of the category sched. Reports faults through the reader. */
void sched_check_event(struct stream_counts *counts, struct reader *reader, const struct fxt_event *event);

#endif
