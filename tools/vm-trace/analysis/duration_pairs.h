#ifndef DURATION_PAIRS_H
#define DURATION_PAIRS_H
/* duration_pairs.h - pairs begins and ends of durations, thread by thread, in order of time as Perfetto does.
 *
 * Records of one thread need not lie in order in the file: writers fill chunks side by side. Edges are kept in a window and
 * sorted before they are paired; one that comes later than that is paired as it comes.
 */
#include "base/map.h"
#include "fxt/reader.h"

enum {
    PAIRS_WINDOW = 128 * 1024,
    PAIRS_DEPTH_MAX = 512, /* Perfetto drops what is nested deeper */
    PAIRS_THREADS_MAX = 256 * 1024,
};

struct duration_edge {
    int64_t ts_ns;
    uint64_t offset; /* breaks ties: the file's order */
    uint32_t thread; /* index of its stack */
    uint32_t category;
    uint32_t name;
    bool end;
    bool outermost; /* set for a begin when it is paired: within none of its own category */
    /* Of an end in category `compile`: the ISEQ that was compiled, STRING_NONE where it was other work. */
    uint32_t iseq;
    uint32_t version;    /* 0: nothing was made */
    uint64_t code_bytes; /* with the code that traces */
};

struct duration_pair_visitor {
    void *context;
    /* NULL for begin: an end without a begin. NULL for end: a begin that is never ended. */
    void (*pair)(void *context, const struct duration_edge *begin, const struct duration_edge *end);
    void (*too_deep)(void *context, const struct duration_edge *begin);
    void (*too_many_threads)(void *context, const struct duration_edge *edge);
};

struct duration_pairs;

struct duration_pairs *duration_pairs_new(const struct duration_pair_visitor *visitor);
void duration_pairs_free(struct duration_pairs *pairs);
/* An event of type FXT_EVENT_DURATION_BEGIN or _END. */
void duration_pairs_add(struct duration_pairs *pairs, struct pool *pool, const struct fxt_event *event);
/* The edge of an event, as a visitor gets it. Its thread is not set. */
struct duration_edge duration_edge_of(struct pool *pool, const struct fxt_event *event);
/* Pairs what is left; the begins that remain are reported as never ended. */
void duration_pairs_finish(struct duration_pairs *pairs);

#endif
