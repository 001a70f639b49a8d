#ifndef DURATION_PAIRS_H
#define DURATION_PAIRS_H
/* duration_pairs.h - brings the records of a file's threads into order of time. It pairs the begins and ends of
 * durations, per thread, as Perfetto does, and passes scheduling and garbage collections on to the state machine
 * (thread_states.h).
 *
 *      duration_pairs_new -> _object, _chunk, _keeps_newest, _add and _sched in the order of the file
 *      -> duration_pairs_file_end -> duration_pairs_free
 *
 * Records of one thread need not be in order in the file, because writers fill chunks side by side.
 * Edges wait in a window and are sorted before they are paired. An edge that is later than the
 * window is paired when it comes. The oldest records of a file that keeps its newest events come behind
 * the newest: they are a part of their own.
 */
#include "analysis/sched_changes.h"
#include "analysis/thread_states.h"

enum {
    PAIRS_WINDOW = 256 * 1024,
    PAIRS_DEPTH_MAX = 512, /* Perfetto drops deeper durations */
    PAIRS_THREADS_MAX = 256 * 1024,
};

/* Functions may be NULL, except `pair` and `change`. */
struct duration_pair_visitor {
    void *context;
    /* begin is NULL for an end without a begin; end is NULL for a begin that never ends. */
    void (*pair)(void *context, const struct duration_edge *begin, const struct duration_edge *end);
    void (*too_deep)(void *context, const struct duration_edge *begin);
    void (*too_many_threads)(void *context, const struct duration_edge *edge);
    void (*begun)(void *context, const struct duration_edge *begin);
    /* Takes what a scheduling record says of a thread: sets row, process and waker of its edge. Returns whether it
     * counts. */
    bool (*change)(void *context, const struct fxt_sched *sched, const struct sched_change_of *change,
                   struct duration_edge *edge);
    /* Returns what to keep of the backtrace of an edge of category `blocked`: its `stack`. */
    uint32_t (*stack)(void *context, const struct fxt_event *event, uint32_t row, bool end);
};

struct duration_pairs;

/* The states must live as long. */
struct duration_pairs *duration_pairs_new(const struct duration_pair_visitor *visitor, struct thread_states *states);
void duration_pairs_free(struct duration_pairs *pairs);
/* Takes the process of a thread, for wake-ups. */
void duration_pairs_object(struct duration_pairs *pairs, const struct fxt_object *object);
/* The next records are in the chunk at this offset of the file. */
void duration_pairs_chunk(struct duration_pairs *pairs, uint64_t offset);
/* The file may begin with the newer part of the process: event_older_behind of its settings. */
void duration_pairs_keeps_newest(struct duration_pairs *pairs, uint32_t process);
/* Takes an event of type FXT_EVENT_DURATION_BEGIN, _END or _COMPLETE; `process`, `row` and `wanted` are the
 * caller's. The row is a thread: edges of one are paired. */
void duration_pairs_add(struct duration_pairs *pairs, struct pool *pool, const struct fxt_event *event,
                        uint32_t process, uint32_t row, bool wanted);
/* Takes a scheduling record. Returns whether it says anything of a thread. */
bool duration_pairs_sched(struct duration_pairs *pairs, const struct fxt_sched *sched);
/* Returns the edge of an event, as a visitor gets it, but without its thread. */
struct duration_edge duration_edge_of(struct pool *pool, const struct fxt_event *event);
/* Pairs what is left, passes the remaining begins as never ended, and ends all states. stopped: the file was not read to
 * its end. */
void duration_pairs_file_end(struct duration_pairs *pairs, bool stopped);

#endif
