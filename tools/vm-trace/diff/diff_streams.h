#ifndef DIFF_STREAMS_H
#define DIFF_STREAMS_H
/* diff_streams.h - compares what runs recorded beside exits: where the time of threads and fibers went, what they
 * blocked in, times on CPUs, system calls, own time of calls, sampled time, garbage collections, allocated
 * bytes, bytes of objects that are alive at the end, counters of compiled code.
 *
 * Verdicts are those of diff.h. A stream is compared if all files have it: otherwise everything would
 * be new or gone. Times are in ns. Allocated bytes and sampled times are estimates with a margin.
 */
#include "diff/diff.h"

enum diff_stream {
    DIFF_EXECUTION, DIFF_STATES, DIFF_BLOCKED, DIFF_CPUS, DIFF_SYSCALLS, DIFF_CALLS, DIFF_SAMPLES, DIFF_GC,
    DIFF_CLASSES, DIFF_ALIVE, DIFF_COUNTERS, DIFF_FIBERS, DIFF_STREAMS
};

/* Sums that --fail-over can name. */
enum diff_sum {
    DIFF_LOST, DIFF_WAITING, DIFF_BLOCKED_TIME, DIFF_RUNNING, DIFF_OWN_TIME, DIFF_GC_TIME, DIFF_COLLECTIONS,
    DIFF_ALLOCATED, DIFF_SUMS
};
extern const char *const diff_sum_names[DIFF_SUMS];
/* The unit of a sum: "ns", "bytes", or "count". */
const char *diff_sum_unit(enum diff_sum sum);

struct diff_adder;

/* What a table has and how it looks. */
struct diff_stream_kind {
    const char *id, *title;
    const char *counts[SIDES]; /* titles; NULL: there are no counts */
    const char *names[3];      /* ids of the names in the key, see struct diff_stream_table; NULL: no more */
    const char *stream;        /* as the settings name it */
    bool amounts;              /* sums are bytes or counts, not ns */
    void (*add)(struct diff_adder *adder); /* adds what each run has */
};
extern const struct diff_stream_kind diff_stream_kinds[DIFF_STREAMS];

struct diff_stream_table {
    bool recorded;  /* in all files */
    uint32_t lacks; /* number of files that do not have it, if any has */
    /* The key of a row consists of up to three names of the pool: state; thread and state; method
     * and class; thread and state; system call; method; method and state; kind, reason and what made it
     * major; class; method and class; counter and method; state. They are in `reason`, `method` and `insn`. */
    struct diff_table sums, counts;
    struct diff_row all; /* the sum of all rows */
};

struct diff_streams {
    struct diff_stream_table tables[DIFF_STREAMS];
    bool summed[DIFF_SUMS]; /* compared */
    struct diff_row sums[DIFF_SUMS];
    double *unseen;         /* of allocations, see struct diff_table */
    double *unseen_samples; /* likewise, of samples of time */
};

void diff_streams_init(struct diff_streams *streams, struct diff *diff);
void diff_streams_free(struct diff_streams *streams);
/* The row of the counts that belongs to a row of the sums. */
const struct diff_row *diff_stream_count(struct diff_stream_table *table, const struct diff_row *row);

#endif
