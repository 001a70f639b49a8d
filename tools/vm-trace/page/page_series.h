#ifndef PAGE_SERIES_H
#define PAGE_SERIES_H
/* page_series.h - what `vm-trace html` sums up in a window: numbers over time, each under a key. All are in the bins of
 * one time histogram, so all sections of the page round a window to the same times.
 *
 *      zeroed -> page_series_init -> the functions below while a trace is read -> page_series_row for each key
 *      -> page_series_free
 *
 * Memory grows with the number of keys, and of their bins that are not empty.
 */
#include "topics/kernel/cpu_times.h"
#include "analysis/time_histogram.h"
#include "topics/samples/time_samples.h"
#include "base/interval.h"
#include "base/row_table.h"

/* What a number is of, and what a, b and c of its key are. */
enum series_subject {
    SERIES_ROW,           /* exits: number of the row */
    SERIES_ROW_LOST,      /* time that recorded exits lost: number of the row */
    SERIES_STACK,         /* exits: node of the profile */
    SERIES_SAMPLE,        /* sampled time: node of the profile, state */
    SERIES_COMPILING,     /* time */
    SERIES_INVALIDATION,
    SERIES_SYSCALL,       /* name */
    SERIES_SYSCALL_ERROR, /* name, errno */
    SERIES_SYSCALL_OF,    /* method, name */
    SERIES_CPU,           /* time on a CPU: process, tid */
    SERIES_MIGRATION,     /* of the times on a CPU: process, tid */
    SERIES_PREEMPTED,     /* waits: process, tid */
    SERIES_WOKEN,         /* waits: process, tid */
    SERIES_CPU_OTHER,     /* waits: process, tid, task */
    SERIES_HELD,          /* time with the GVL and without a CPU: process, tid */
};

enum series_measure {
    SERIES_SUM,     /* a count, or nanoseconds: of a slice, each bin has its share */
    SERIES_LONGEST, /* whole slices, in each bin that they touch */
    SERIES_BEGUN,   /* slices by their begins, and by their ends: both tell how many touch a window */
    SERIES_ENDED,
};

enum { SERIES_KEYS = 5, SERIES_MAX = 1024 * 1024 };

struct series_key {
    uint32_t subject, measure, a, b, c; /* measure may be left out: SERIES_SUM */
};

struct page_series {
    struct row_table keys; /* of struct series_key */
    struct time_histogram over_time;
    uint64_t uncounted; /* numbers without a key, because there are too many */
};

void page_series_init(struct page_series *series);
void page_series_free(struct page_series *series);

/* Adds to the sum of a key. */
void page_series_add(struct page_series *series, struct series_key key, int64_t ts_ns, uint64_t value);
/* Adds to the sum of a key, and compares with its longest value. */
void page_series_add_length(struct page_series *series, struct series_key key, int64_t ts_ns, uint64_t sum, uint64_t longest);
/* Adds a time to the sum of a key. */
void page_series_add_time(struct page_series *series, struct series_key key, struct interval time);
/* Adds a slice to all measures of a key. */
void page_series_add_slice(struct page_series *series, struct series_key key, struct interval slice);

/* Functions for profile.h, time_samples.h, syscall_callers.h, cpu_times.h and overlaps.h. */
void page_series_on_stack(void *series, uint32_t node, const struct fxt_event *event, uint64_t weight);
void page_series_on_sample(void *series, const struct time_sample *sample);
void page_series_on_caller(void *series, uint32_t caller, uint32_t name, struct interval syscall);
void page_series_on_cpu(void *series, const struct cpu_thread *thread, const struct cpu_slice *slice);
void page_series_on_held(void *series, const uint32_t key[OVERLAPS_KEYS], struct interval held);
/* Takes an event of the category syscall. */
void page_series_syscall(struct page_series *series, struct pool *pool, const struct fxt_event *event);

/* Returns the row of the histogram, without HISTOGRAM_MAXIMUM; ROW_NONE: the key has no numbers. */
uint32_t page_series_row(struct page_series *series, struct series_key key);

#endif
