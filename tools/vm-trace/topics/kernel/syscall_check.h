#ifndef SYSCALL_CHECK_H
#define SYSCALL_CHECK_H
/* syscall_check.h - checks the stream `syscalls`: how system calls end, the types of their arguments, that
 * those of one thread do not overlap, and that settings and summary agree with them.
 */
#include "analysis/stream_counts.h"

/* For stream_counts_init. */
extern const struct counted_stream syscall_stream;

/* An event of the category syscall. Reports faults through the reader. */
void syscall_check_event(struct stream_counts *counts, struct reader *reader, const struct fxt_event *event);

#endif
