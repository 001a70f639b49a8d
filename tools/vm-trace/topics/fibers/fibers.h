#ifndef FIBERS_H
#define FIBERS_H
/* fibers.h - what fibers waited for, and how long they kept their threads, as the stream `fibers` records it: sums of
 * its events, in rows whose number is bounded.
 */
#include <stdbool.h>
#include <stdint.h>

#include "analysis/durations.h"
#include "analysis/event_args.h"
#include "base/row_table.h"
#include "fxt/known_strings.h"

/* Tracks of fibers have these numbers; a thread's own fiber is on the track of the thread (doc/internals/events.md). */
static inline bool
fiber_tid_p(uint32_t tid)
{
    return tid >= UINT32_C(3) << 29 && tid < UINT32_C(7) << 28;
}

/* A wait and the run before it, in ns. */
struct fiber_times {
    uint64_t ran;    /* 0: unknown, or the event is the end of a wait that a cut divided */
    uint64_t waited;
    uint64_t ready;  /* the last part of the wait */
};

/* The times of a complete event of the category `fiber`. Impossible values of a broken trace are left out. */
static inline struct fiber_times
fiber_times(const struct fxt_event *event)
{
    bool began = fxt_event_arg(event, STRING_BEGAN) != NULL;
    struct fiber_times times = {
        .ran = began ? 0 : event_uint(event, STRING_RAN_NS, 0),
        .waited = event->end_ns > event->ts_ns ? (uint64_t)event->end_ns - (uint64_t)event->ts_ns : 0,
        .ready = event_uint(event, STRING_READY_NS, 0),
    };
    if (times.ran > (uint64_t)INT64_MAX / 2) times.ran = 0;
    if (times.ready > times.waited) times.ready = times.waited; /* of a part of the wait */
    return times;
}

enum { FIBER_WAITS_MAX = 16 * 1024, FIBER_RUNS_MAX = 16 * 1024, FIBER_TRACKS_MAX = 64 * 1024 };

/* What fibers waited for in one place. Names are strings of the pool. */
struct fiber_wait {
    uint32_t name;      /* the key: the method that waits; */
    uint32_t scheduler; /* the method of the fiber scheduler that it called, or STRING_NONE; */
    uint32_t frame;     /* and the application's frame */
    struct durations durations;
    uint64_t ready;     /* waits of which is known when they could have ended, */
    uint64_t ready_ns;  /* how long all of these lasted after that, */
    uint64_t ready_max_ns;
};
enum { FIBER_WAIT_KEYS = 3 };

/* Runs that ended in one place: until then no other fiber of the thread could run. FIBER_ENDED: where a fiber ended,
 * by the wait of the thread's own fiber meanwhile, in which others may have run before. */
#define FIBER_ENDED "(ended)"
struct fiber_run {
    uint32_t name;     /* the key: where the fiber began to wait, as above */
    uint32_t frame;
    struct durations durations;
    int64_t longest_at_ns; /* when the longest one began */
    uint32_t longest_in;   /* number of the track of its fiber */
};
enum { FIBER_RUN_KEYS = 2 };

/* A fiber, or those after it that took over its track; or a thread's own fiber. */
struct fiber_track {
    uint32_t thread;   /* the key: number of the track */
    uint64_t waits, waited_ns, ready_ns, ran_ns, longest_run_ns;
};
enum { FIBER_TRACK_KEYS = 1 };

struct fibers {
    struct row_table waits;  /* of struct fiber_wait: without those of threads' own fibers, which let others run */
    struct row_table runs;   /* of struct fiber_run */
    struct row_table tracks; /* of struct fiber_track */
    uint64_t left_out;       /* short waits after short runs, in the summaries */
    uint64_t uncounted;      /* events without a row, because there are too many places */
};

#endif
