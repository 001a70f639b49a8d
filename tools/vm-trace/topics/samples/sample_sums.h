#ifndef SAMPLE_SUMS_H
#define SAMPLE_SUMS_H
/* sample_sums.h - what samples of time add up to: by method or by line, and by thread. */
#include "topics/samples/time_samples.h"
#include "base/row_table.h"

enum { SAMPLE_ROWS_MAX = 256 * 1024 };

/* Time by state. */
struct sample_times {
    uint64_t ns[TIME_SAMPLE_STATES];
    uint64_t records;
};

/* A method or a line. */
struct sample_row {
    uint32_t text; /* the key: a label */
    struct sample_times own; /* it was the innermost one */
    uint64_t total_ns[2]; /* it was anywhere in the stack, once: while the thread ran; while it waited */
};

/* By native thread, or Ruby thread without one. */
struct sample_thread {
    uint32_t thread; /* the key: the caller's number */
    struct sample_times times;
};

static inline void
sample_times_add(struct sample_times *times, enum time_sample_state state, uint64_t ns, uint64_t records)
{
    times->ns[state] += ns;
    times->records += records;
}

/* Of the states in which a thread waits, or else of the others. */
uint64_t sample_times_ns(const struct sample_times *times, bool waits);
/* Likewise of rows of struct sample_thread. */
uint64_t sample_threads_ns(const struct row_table *threads, bool waits);

/* Rows of struct sample_row, of all stacks of the profile, which must have states (with_reasons) and no
 * threads. `lines`: by line, else by method. The caller frees them. */
struct row_table sample_sums(const struct time_samples *samples, bool lines);
/* Sorts them by the time in which threads waited, or else ran, the longest first: by own time, or by total
 * time. */
void sample_sums_sort(struct row_table *rows, const struct pool *pool, bool waits, bool total);

/* The 95 % confidence interval of a part of the time of all samples, waits included, to either side: `period_ns`
 * apart, samples hit the part with the probability of its share. A part of nothing has none. */
double sample_error_ns(uint64_t part_ns, uint64_t whole_ns, uint64_t period_ns);

#endif
