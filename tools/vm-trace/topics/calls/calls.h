#ifndef CALLS_H
#define CALLS_H
/* calls.h - sums of the stream `calls`: total and own time of each method, by thread; of each pair of
 * caller and callee; and the slowest single calls.
 *
 * The total time of a method counts a call that is inside of another call of it only once, also while the fiber
 * does not run. Own times of a thread's calls add up to the time that it spent in recorded calls and ran. Only
 * what lies in the window counts.
 *
 * Memory grows with the number of different methods, callers and threads, not of calls.
 */
#include "topics/calls/call_nesting.h"

enum {
    CALL_SUMS_MAX = 1024 * 1024,
    CALL_PAIRS_MAX = 1024 * 1024,
    CALLS_SLOWEST = 1000, /* that are kept */
    CALL_OPEN_MAX = 128
};

/* The calls of one method in one thread. */
struct call_sum {
    uint32_t track; /* the key: a number of the caller's */
    uint32_t name;
    uint32_t file; /* their number, from 0 */
    struct call_totals {
        uint64_t calls;
        uint64_t total_ns;
        int64_t own_ns;
        uint64_t max_ns; /* of the slowest call */
        uint64_t left_out, left_out_ns;
    } totals;
    /* Calls that no other call of the method encloses so far. If there are many, the oldest ones become
     * stretches of time, as in call_nesting.h. */
    struct call_stretch {
        int64_t begin_ns, end_ns;
        uint64_t total_ns;
    } *outermost;
    uint32_t count, capacity;
};
enum { CALL_SUM_KEYS = 2 };

struct call_pair {
    uint32_t file;   /* the key */
    uint32_t caller; /* STRING_NONE: outside of recorded calls */
    uint32_t callee;
    uint64_t calls;
    uint64_t total_ns; /* of the callee in these calls */
    int64_t own_ns;
};
enum { CALL_PAIR_KEYS = 3 };

struct call_thread {
    uint32_t track; /* the key */
    uint64_t recorded_ns; /* in recorded calls, while the fiber ran */
    uint64_t suspended_ns; /* in recorded calls of a fiber that did not run */
};

/* A single call. */
struct slow_call {
    uint64_t ns; /* it is sorted by this: total or own time */
    uint64_t total_ns;
    int64_t own_ns;
    int64_t begin_ns;
    uint64_t left_out;
    uint32_t track, name;
    bool ended; /* it had not returned */
};

struct slowest {
    struct slow_call *heap; /* the fastest of them first */
    uint32_t count;
};

struct calls {
    struct call_nesting nesting;
    struct row_table sums;    /* of struct call_sum */
    struct row_table pairs;   /* of struct call_pair */
    struct row_table threads; /* of struct call_thread */
    struct slowest by_total, by_own;
    uint32_t file; /* the current one; the caller counts */
    uint64_t uncounted; /* calls without a row, because there are too many methods or callers */
    void *context;
    bool (*wanted)(void *context, uint32_t name); /* as one of the slowest calls */
    /* NULL, or a function of the caller: whether calls of a method do not count. What they took themselves is then
     * own time of the call around them, or of `outside`, a name, if there is none. */
    bool (*hidden)(void *context, uint32_t name);
    uint32_t outside;
};

void calls_init(struct calls *calls, void *context, bool (*wanted)(void *context, uint32_t name));
void calls_free(struct calls *calls);
/* After each file. */
void calls_file_end(struct calls *calls);
/* After all files: the slowest calls come first. */
void calls_sort_slowest(struct calls *calls);

/* The calls of a method in all threads. */
struct call_row {
    uint32_t file; /* the key; 0 if not by file */
    uint32_t name;
    struct call_totals totals;
};
enum { CALL_ROW_KEYS = 2 };

/* Rows of struct call_row; the caller frees them with row_table_free. */
struct row_table calls_group(const struct calls *calls, bool by_file);
/* Adds up; the slowest call is the slowest of both. */
void call_totals_add(struct call_totals *totals, const struct call_totals *other);
/* For people: own time cannot be below 0. */
static inline uint64_t
call_own_ns(int64_t own_ns)
{
    return own_ns > 0 ? (uint64_t)own_ns : 0;
}

#endif
