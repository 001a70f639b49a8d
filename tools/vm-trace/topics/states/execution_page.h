#ifndef EXECUTION_PAGE_H
#define EXECUTION_PAGE_H
/* execution_page.h - what `vm-trace html` shows of the stream `states`: sums of the threads' states, ISEQs that ran
 * without compiled code, and the longest slices.
 *
 *      zeroed -> page_execution_init -> page_execution_event for each event of the stream
 *      -> page_execution_finish -> the tables -> page_execution_free
 */
#include "topics/states/execution.h"
#include "analysis/label_owners.h"

enum {
    PAGE_SLICES_MAX = 20000, /* the longest are kept */
};

struct page_execution_track {
    uint32_t process, tid; /* the key: the caller's number */
};

struct page_slice {
    int64_t from_ns, to_ns;
    uint32_t track; /* a number of `tracks` */
    uint32_t name;  /* compiled, interpreted, compiling; exited: interpreted because of an exit */
    uint32_t why;   /* the reason of an exit, or why it was interpreted, or STRING_NONE */
    uint32_t place; /* a frame or an ISEQ, or STRING_NONE */
};

struct page_execution {
    struct execution sums;   /* threads have the numbers of `tracks`; all processes are one */
    struct row_table tracks; /* of struct page_execution_track, also of the threads themselves */
    struct page_slice *slices; /* once finished: by track, then by time, outer ones first */
    uint32_t slice_count, slice_capacity;
    uint64_t left_out; /* slices, because there are too many */
    struct label_owners owners; /* of the ISEQs that events name */
};

void page_execution_init(struct page_execution *execution);
void page_execution_free(struct page_execution *execution);
/* Takes the sums of a thread or of an ISEQ, or a slice; ignores other events. Returns whether the event was one of
 * these and has times. */
bool page_execution_event(struct page_execution *execution, struct pool *pool, uint32_t process,
                          const struct fxt_event *event);
void page_execution_finish(struct page_execution *execution);

#endif
