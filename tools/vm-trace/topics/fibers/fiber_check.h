#ifndef FIBER_CHECK_H
#define FIBER_CHECK_H
/* fiber_check.h - checks what a trace says of waiting fibers. */
#include "analysis/stream_counts.h"

extern const struct counted_stream fiber_stream;

/* Reports faults through the reader. `event` is of category `fiber`. */
void fiber_check_event(struct stream_counts *counts, struct reader *reader, const struct fxt_event *event);

#endif
