#ifndef CALL_GAINS_H
#define CALL_GAINS_H
/* call_gains.h - how long calls of each ISEQ take with compiled code and without it, and what it would save if the
 * latter took as long as the former: an estimate.
 *
 * Times are of calls with all that they call. Calls before the first compilation are left out: no exit made them
 * slow, and they are other calls than the later ones (the first calls of a program's loop take as long as all of
 * its work).
 */
#include <stdbool.h>

#include "base/row_table.h"
#include "fxt/reader.h"

enum call_kind {
    CALLS_COMPILED,    /* began in compiled code, and stayed there */
    CALLS_EXITED,      /* began in compiled code, which exited */
    CALLS_INTERPRETED, /* without compiled code: it was invalidated, or given up */
    CALL_KINDS
};

enum {
    CALL_GAIN_KEYS = 2,
    /* Where calls vary as much as their mean, as many times have a mean within a third of the true one, most often
     * (1/sqrt(10)). With fewer a gain would be chance. */
    CALL_GAIN_TIMED_LEAST = 10,
};

/* Strings are numbers of the pool. */
struct call_gain {
    uint32_t process; /* the key; a number of the caller's */
    uint32_t iseq;
    struct call_times {
        uint64_t calls; /* counted; of some only one in 16 was timed */
        uint64_t timed;
        uint64_t ran_ns; /* of the timed ones, for as many as were counted */
    } of[CALL_KINDS];
};

/* Adds an event trace/calls or trace/interpreted to a table of struct call_gain. Returns false if the table is
 * full. */
bool call_gains_add(struct row_table *gains, struct pool *pool, uint32_t process, const struct fxt_event *event);
/* Whether so many calls were timed that their mean says something. */
bool call_times_enough(const struct call_times *times);
/* The mean of a call; 0 without any. */
uint64_t call_times_mean_ns(const struct call_times *times);
/* Of calls that exited or were interpreted: the sum of those kinds that count for the gain. */
struct call_times call_gain_slow(const struct call_gain *gain);
/* How much less time the slow calls would have taken, had they taken as long as the compiled ones. 0: nothing, or
 * too few calls were timed. */
uint64_t call_gain_ns(const struct call_gain *gain);
/* Sorts: the largest gain first. */
void call_gains_sort(struct row_table *gains, struct pool *pool);

#endif
