#ifndef EXECUTION_H
#define EXECUTION_H
/* execution.h - the sums of the stream `states`: where the time of each Ruby thread went, and which
 * ISEQs ran without compiled code.
 *
 * A thread is in one state at a time. Its sums are cumulative: only the last event counts.
 */
#include <stdbool.h>

#include "base/row_list.h"
#include "base/row_table.h"
#include "fxt/known_strings.h"
#include "fxt/reader.h"

enum execution_state {
    EXECUTION_COMPILED,
    EXECUTION_EXITED,       /* interpreted because of an exit */
    EXECUTION_UNCOMPILED,   /* interpreted: not compiled yet */
    EXECUTION_UNCOMPILABLE, /* interpreted: it could not be compiled, or was given up */
    EXECUTION_REPROFILED,   /* interpreted: its version was invalidated */
    EXECUTION_FALLBACK,
    EXECUTION_C_FUNCTION,
    EXECUTION_COMPILING,
    EXECUTION_GC,
    EXECUTION_WAITING, /* for the GVL */
    EXECUTION_NO_CPU,  /* with the GVL; older traces do not tell it from the state that it was in */
    EXECUTION_BLOCKED,
    EXECUTION_UNSEEN, /* before the trace saw the thread */
    EXECUTION_STATES
};
enum { EXECUTION_RUNNING_STATES = EXECUTION_WAITING }; /* those below: the thread runs */

/* The argument of a state, and its meaning in words for people. */
struct execution_state_name {
    uint32_t argument; /* an enum known_string */
    const char *meaning;
};
extern const struct execution_state_name execution_state_names[EXECUTION_STATES];

enum { EXECUTION_THREADS_MAX = 256 * 1024, EXECUTION_ISEQS_MAX = 256 * 1024 };

struct execution_thread {
    uint32_t thread; /* the key: a number of the caller's */
    bool any;        /* the current file has an event: */
    int64_t ts_ns;   /* its time, and what it says */
    uint64_t file_ns[EXECUTION_STATES];
    uint64_t file_changes;
    uint64_t ns[EXECUTION_STATES]; /* sums of the files that have ended */
    uint64_t changes;
};

/* An ISEQ that ran without compiled code. Strings are numbers of the pool. */
struct execution_iseq {
    uint32_t process; /* the key, with the next two; a number of the caller's */
    uint32_t iseq;
    uint32_t why;
    uint64_t calls;
    uint64_t interpreted_ns;
    int64_t first_ns, last_ns; /* begins of the first and the last of these calls */
};

struct execution {
    struct row_table threads; /* of struct execution_thread */
    struct row_list current;  /* those of the current file */
    struct row_table iseqs;   /* of struct execution_iseq */
    uint64_t uncounted;       /* events beyond the limits */
};

void execution_init(struct execution *execution);
void execution_free(struct execution *execution);
/* An event trace/states. */
void execution_add_thread(struct execution *execution, uint32_t thread, const struct fxt_event *event);
/* The threads' next events are those of another file. */
void execution_file_end(struct execution *execution);
/* An event trace/interpreted. */
void execution_add_iseq(struct execution *execution, struct pool *pool, uint32_t process,
                        const struct fxt_event *event);
/* The sums of an event's states. */
void execution_states_of(const struct fxt_event *event, uint64_t ns_out[EXECUTION_STATES]);

/* Sums of all threads. */
void execution_sum(const struct execution *execution, uint64_t ns_out[EXECUTION_STATES]);
/* The time in which a thread ran, and its whole life as far as the trace saw it. */
uint64_t execution_running_ns(const uint64_t ns[EXECUTION_STATES]);
uint64_t execution_life_ns(const uint64_t ns[EXECUTION_STATES]);

#endif
