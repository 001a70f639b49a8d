#ifndef DURATION_PAIRS_H
#define DURATION_PAIRS_H
/* duration_pairs.h - pairs the begins and ends of durations, per thread and in order of time, as
 * Perfetto does.
 *
 * Records of one thread need not be in order in the file, because writers fill chunks side by side.
 * Edges wait in a window and are sorted before they are paired. An edge that is later than the
 * window is paired when it comes.
 */
#include "base/map.h"
#include "fxt/reader.h"

enum {
    PAIRS_WINDOW = 128 * 1024,
    PAIRS_DEPTH_MAX = 512, /* Perfetto drops deeper durations */
    PAIRS_THREADS_MAX = 256 * 1024,
};

struct duration_edge {
    int64_t ts_ns;
    uint64_t offset; /* orders edges of the same time as in the file */
    uint32_t thread; /* index of its stack */
    uint32_t category;
    uint32_t name;
    bool end;
    bool outermost; /* of a begin that is paired: not within one of its own category */
    /* For an end of category `compile`: the compiled ISEQ, or STRING_NONE for other work. */
    uint32_t iseq;
    uint32_t version;    /* 0: no code was made */
    uint64_t code_bytes; /* including trace points */
};

struct duration_pair_visitor {
    void *context;
    /* begin is NULL for an end without a begin; end is NULL for a begin that never ends. */
    void (*pair)(void *context, const struct duration_edge *begin, const struct duration_edge *end);
    void (*too_deep)(void *context, const struct duration_edge *begin);
    void (*too_many_threads)(void *context, const struct duration_edge *edge);
};

struct duration_pairs;

struct duration_pairs *duration_pairs_new(const struct duration_pair_visitor *visitor);
void duration_pairs_free(struct duration_pairs *pairs);
/* Takes an event of type FXT_EVENT_DURATION_BEGIN or _END. */
void duration_pairs_add(struct duration_pairs *pairs, struct pool *pool, const struct fxt_event *event);
/* Returns the edge of an event, as a visitor gets it, but without its thread. */
struct duration_edge duration_edge_of(struct pool *pool, const struct fxt_event *event);
/* Pairs what is left, and passes the remaining begins as never ended. */
void duration_pairs_finish(struct duration_pairs *pairs);

#endif
