#ifndef ALLOCATION_CHECK_H
#define ALLOCATION_CHECK_H
/* allocation_check.h - checks that each sampled object is allocated once, and is freed or found alive at
 * most once.
 *
 * An object may be freed earlier in the file than it is allocated, because writers fill chunks side by
 * side: so what was never allocated is known only at the end.
 */
#include <stdbool.h>

#include "base/row_table.h"
#include "fxt/reader.h"

enum { ALLOCATION_CHECK_MAX = 4 * 1024 * 1024 };

struct allocation_check {
    struct row_table samples; /* see allocation_check.c */
    uint64_t unchecked;       /* events beyond ALLOCATION_CHECK_MAX */
};

void allocation_check_init(struct allocation_check *check);
void allocation_check_free(struct allocation_check *check);
/* An object was sampled. Reports faults through the reader. */
void allocation_check_sample(struct allocation_check *check, struct reader *reader, const struct fxt_event *event,
                             uint64_t sample, bool untracked);
/* The object of a sample was freed, or is alive at the end. `described`: the trace may lack its allocation. */
void allocation_check_fate(struct allocation_check *check, struct reader *reader, const struct fxt_event *event,
                           uint64_t sample, bool described);
/* Reports events of samples that were never allocated. Leaves out processes whose first events may be
 * missing. */
void allocation_check_finish(const struct allocation_check *check, struct reader *reader,
                             bool (*whole)(const void *context, uint32_t process), const void *context);

#endif
