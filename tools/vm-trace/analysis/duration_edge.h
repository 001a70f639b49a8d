#ifndef DURATION_EDGE_H
#define DURATION_EDGE_H
/* duration_edge.h - the begin or the end of a duration, or a change of a thread's scheduling state. */
#include <stdbool.h>
#include <stdint.h>

/* What a scheduling record says of one thread. */
enum sched_change {
    SCHED_NONE,    /* the edge is that of a duration */
    SCHED_RUNS,    /* it holds the GVL */
    SCHED_WOKEN,   /* it could run from now on, and waits for the GVL */
    SCHED_YIELDS,  /* it gave up the GVL, and waits for it */
    SCHED_BLOCKS,  /* it gave up the GVL, and does not want it */
    SCHED_ENDS,    /* it gave up the GVL for good */
};

struct duration_edge {
    int64_t ts_ns;
    uint64_t offset; /* orders edges of the same time as in the file */
    uint32_t thread; /* index of its stack */
    uint32_t row;    /* the caller's number of the thread */
    uint32_t category;
    uint32_t name;
    bool end;
    bool outermost; /* of a begin that is paired: not within one of its own category */
    bool wanted;    /* as the caller passed it */
    enum sched_change sched;
    union {
        /* An end of category `compile`: the compiled ISEQ, or STRING_NONE for other work. */
        struct {
            uint32_t iseq;
            uint32_t version;    /* 0: no code was made */
            uint64_t code_bytes; /* including trace points */
        };
        /* Category `blocked`. STRING_NONE: not given. */
        struct {
            uint32_t class_name;
            uint32_t stack; /* the caller's, see duration_pair_visitor */
        };
        /* Category `gc`. UINT64_MAX: not given. */
        struct {
            uint32_t reason;
            uint32_t major_by;
            bool began; /* at the begin of a cut that began within it: the event is part of a pause */
            uint64_t number; /* of the collection; at the end of `sweep`: of freed slots */
        };
        /* Category `marker`. STRING_NONE: not given. */
        struct {
            uint32_t endpoint;
            uint32_t id; /* of the request or job */
            bool failed; /* an error, or a status from 500 on */
        };
        /* A change of scheduling. */
        struct {
            uint32_t process; /* the caller's number */
            uint32_t cpu;
            uint32_t waker; /* SCHED_WOKEN: the thread that woke it; only the caller uses it */
        };
    };
};

#endif
