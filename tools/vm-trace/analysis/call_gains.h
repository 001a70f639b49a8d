#ifndef CALL_GAINS_H
#define CALL_GAINS_H
/* call_gains.h - how long calls of each ISEQ take with and without compiled code, and an estimate of
 * the time that would be saved if all calls took as long as the compiled ones.
 *
 * The time of a call includes its callees. Calls before the first compilation are left out: no exit
 * made them slow, and they do other work (the first call of a program's main loop takes as long as
 * all of its work).
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
    /* If calls vary as much as their mean, the standard error of the mean of so many calls is a third
     * of it (1/sqrt(10)). With fewer calls, a gain could be chance. */
    CALL_GAIN_TIMED_LEAST = 10,
};

/* Strings are numbers of the pool. */
struct call_gain {
    uint32_t process; /* the key; a number of the caller's */
    uint32_t iseq;
    struct call_times {
        uint64_t calls; /* counted; some kinds are timed only one in 16 */
        uint64_t timed;
        uint64_t ran_ns; /* of the timed calls, scaled to all counted ones */
    } of[CALL_KINDS];
};

/* Adds an event trace/calls or trace/interpreted to a table of struct call_gain. Returns false if the
 * table is full. */
bool call_gains_add(struct row_table *gains, struct pool *pool, uint32_t process, const struct fxt_event *event);
/* Whether enough calls were timed for a mean. */
bool call_times_enough(const struct call_times *times);
/* The mean of a call; 0 without any. */
uint64_t call_times_mean_ns(const struct call_times *times);
/* The sum of the kinds of slow calls (exited, interpreted) that count for the gain. */
struct call_times call_gain_slow(const struct call_gain *gain);
/* The time that would be saved if the slow calls took as long as the compiled ones. 0: nothing, or
 * too few calls were timed. */
uint64_t call_gain_ns(const struct call_gain *gain);
/* Sorts: the largest gain first. */
void call_gains_sort(struct row_table *gains, struct pool *pool);

#endif
