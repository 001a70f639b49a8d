#ifndef SAMPLE_CHECK_H
#define SAMPLE_CHECK_H
/* sample_check.h - checks the stream `samples`: that each sample has a thread, a stack that the trace defines,
 * one known state with the same time as the sample itself, and that settings and summary agree with them.
 */
#include "analysis/stream_counts.h"
#include "topics/samples/time_samples.h"

struct sample_check {
    struct stream_counts counts;
    struct time_samples samples; /* for their names and definitions */
};

/* `check` must stay where it is. */
void sample_check_init(struct sample_check *check, struct reader *reader);
void sample_check_free(struct sample_check *check);
/* Reports faults through the reader. */
void sample_check_blob(struct sample_check *check, const struct fxt_blob *blob);

#endif
