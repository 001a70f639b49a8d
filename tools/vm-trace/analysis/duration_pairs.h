#ifndef DURATION_PAIRS_H
#define DURATION_PAIRS_H
/* duration_pairs.h - pairs the begins and ends of durations, per thread and in order of time, as
 * Perfetto does. Changes of a thread's scheduling state pass through it, too, and come out in order
 * of time between them.
 *
 * Records of one thread need not be in order in the file, because writers fill chunks side by side.
 * Edges wait in a window and are sorted before they are paired. An edge that is later than the
 * window is paired when it comes.
 */
#include "base/map.h"
#include "fxt/reader.h"

enum {
    PAIRS_WINDOW = 256 * 1024,
    PAIRS_DEPTH_MAX = 512, /* Perfetto drops deeper durations */
    PAIRS_THREADS_MAX = 256 * 1024,
};

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

/* Functions may be NULL, except `pair`. */
struct duration_pair_visitor {
    void *context;
    /* begin is NULL for an end without a begin; end is NULL for a begin that never ends. */
    void (*pair)(void *context, const struct duration_edge *begin, const struct duration_edge *end);
    void (*too_deep)(void *context, const struct duration_edge *begin);
    void (*too_many_threads)(void *context, const struct duration_edge *edge);
    void (*begun)(void *context, const struct duration_edge *begin);
    void (*sched)(void *context, const struct duration_edge *edge);
    /* Returns what to keep of the backtrace of an edge of category `blocked`: its `stack`. */
    uint32_t (*stack)(void *context, const struct fxt_event *event, uint32_t row, bool end);
};

struct duration_pairs;

struct duration_pairs *duration_pairs_new(const struct duration_pair_visitor *visitor);
void duration_pairs_free(struct duration_pairs *pairs);
/* Takes an event of type FXT_EVENT_DURATION_BEGIN, _END or _COMPLETE; `row` and `wanted` are the
 * caller's. The row is a thread: edges of one are paired. */
void duration_pairs_add(struct duration_pairs *pairs, struct pool *pool, const struct fxt_event *event, uint32_t row,
                        bool wanted);
/* Takes a change of scheduling, whose edge is complete but for `thread`. */
void duration_pairs_add_sched(struct duration_pairs *pairs, const struct duration_edge *edge);
/* Returns the name of the thread's innermost open duration of this category, as far as edges were
 * passed to the visitor; STRING_NONE if none is open. */
uint32_t duration_pairs_innermost(const struct duration_pairs *pairs, uint32_t thread, uint32_t category);
/* Returns the edge of an event, as a visitor gets it, but without its thread. */
struct duration_edge duration_edge_of(struct pool *pool, const struct fxt_event *event);
/* Does what duration_pairs_finish does for records before this offset of the file; those from there on
 * are much older, and begin again. */
void duration_pairs_begin_older(struct duration_pairs *pairs, uint64_t offset);
/* Pairs what is left, and passes the remaining begins as never ended. */
void duration_pairs_finish(struct duration_pairs *pairs);

#endif
