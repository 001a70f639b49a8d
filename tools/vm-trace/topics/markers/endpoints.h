#ifndef ENDPOINTS_H
#define ENDPOINTS_H
/* endpoints.h - what requests and jobs took, by the code that answered them: spans of markers that have an argument
 * `endpoint`, as those of the gem vm_trace, or that lie in no other span; the latter by their names.
 *
 *      endpoints_init -> all spans: endpoints_span -> endpoints_spans_end
 *      -> all of the files again: endpoints_add for what happened -> the rows -> endpoints_free
 *
 * A span is known at its end, and what happened in it may come later or earlier in the file, so files are read twice.
 * Memory has 32 bytes for each span. Threads are known by what the files say of them.
 *
 * A fiber has a track of its own, with its spans, exits and allocations. What its thread does (states, collections) is
 * on the thread's track: it counts for the spans of all of its fibers, whichever ran, for all of them wait for it.
 */
#include "analysis/durations.h"
#include "base/interval.h"
#include "base/pool.h"
#include "base/row_table.h"

enum { ENDPOINTS_MAX = 64 * 1024, ENDPOINT_THREADS_MAX = 256 * 1024, ENDPOINT_SPANS_MAX = 8 * 1024 * 1024 };

/* Sums of what happened on the thread of a span while it was open. */
enum endpoint_cost {
    ENDPOINT_RAN,
    ENDPOINT_GC, /* of the time in which it ran */
    ENDPOINT_WAITED, /* for the GVL */
    ENDPOINT_BLOCKED,
    ENDPOINT_EXITS,
    ENDPOINT_LOST,
    ENDPOINT_ALLOCATED,
    ENDPOINT_SAMPLED, /* time in which it ran, by samples of the thread or fiber itself */
    ENDPOINT_COSTS
};

struct endpoint_span {
    struct interval time;
    uint32_t endpoint; /* number of its row */
    uint32_t parent;   /* number + 1 in its thread's list; 0: none */
    uint32_t id;       /* of the request or job, or STRING_NONE */
    uint32_t file : 30, marked : 1, outer : 1; /* it has the argument `endpoint`; it is inside of no other such span */
};

/* A thread or fiber, whatever its number elsewhere. */
struct endpoint_thread {
    uint32_t recording, pid, tid; /* the key */
    uint32_t name;
    uint32_t first_fiber, next_fiber; /* of the thread, with spans: number + 1 of the first, of the next one; 0: none */
    enum { FIBER_NEW, FIBER_LINKED, FIBER_THREADLESS } link; /* a fiber: its thread has it, or is not known */
    struct endpoint_span *spans; /* by begin */
    uint32_t count, capacity;
};
enum { ENDPOINT_THREAD_KEYS = 3 };

struct endpoint {
    uint32_t name; /* the key */
    uint64_t failed;
    struct durations durations;
    uint64_t costs[ENDPOINT_COSTS];
    struct {
        bool known;
        uint32_t thread, span; /* numbers */
        uint64_t costs[ENDPOINT_COSTS];
    } slowest;
};

/* What of an endpoint's costs came from the code of one gem (frame_owner.h): exits, lost time, bytes, sampled time. */
struct endpoint_gem {
    uint32_t endpoint; /* the key: number of its row; what adds the costs knows the name of the */
    uint32_t owner;    /* second part */
    uint64_t costs[ENDPOINT_COSTS];
};
enum { ENDPOINT_GEM_KEYS = 2, ENDPOINT_GEMS_MAX = 256 * 1024 };

struct endpoints {
    const struct pool *pool;  /* of all strings here: the first reading's */
    struct row_table rows;    /* of struct endpoint */
    struct row_table threads; /* of struct endpoint_thread */
    struct row_table gems;    /* of struct endpoint_gem; its owners are strings of the second reading's pool */
    uint32_t spans;
    uint64_t of_fibers;   /* spans */
    uint64_t threadless;  /* of these: their thread is not known, so its states do not count */
    uint64_t unended;
    uint64_t uncounted; /* spans: too many, or too many of something */
    uint32_t marked;    /* spans with the argument */
    struct {
        uint32_t spans;
        uint64_t ns, costs[ENDPOINT_COSTS];
    } outer; /* spans of threads that have the argument, and are inside of no other one: nothing counts twice */
    bool complete;      /* all spans are known */
    bool recorded[ENDPOINT_COSTS]; /* the files have such events, on whatever thread */
};

struct endpoint_found {
    uint32_t endpoint; /* name */
    uint32_t id;
    uint32_t thread_name;
    bool fiber;
    uint32_t of_tid;      /* of a fiber's first span: its thread's; 0: not known */
    uint32_t file;
    bool failed;
    bool marked; /* it has the argument `endpoint` */
    struct interval time;
};

void endpoints_init(struct endpoints *endpoints, const struct pool *pool);
void endpoints_free(struct endpoints *endpoints);
/* Takes a span. */
void endpoints_span(struct endpoints *endpoints, const uint32_t thread[ENDPOINT_THREAD_KEYS],
                    const struct endpoint_found *found);
/* Whether a fiber had no span so far. */
bool endpoints_fiber_new_p(struct endpoints *endpoints, const uint32_t fiber[ENDPOINT_THREAD_KEYS]);
/* All spans were taken. */
void endpoints_spans_end(struct endpoints *endpoints);
/* Adds an amount that belongs to a moment. owner: of the gem whose code it was; STRING_NONE: not by gem. */
void endpoints_add(struct endpoints *endpoints, const uint32_t thread[ENDPOINT_THREAD_KEYS], int64_t at_ns,
                   enum endpoint_cost cost, uint64_t amount, uint32_t owner);
/* Adds a stretch of time of a thread: to each span of it and of its fibers the part that lies in it. */
void endpoints_add_time(struct endpoints *endpoints, const uint32_t thread[ENDPOINT_THREAD_KEYS],
                        struct interval time, enum endpoint_cost cost);

static inline uint64_t
endpoint_span_ns(const struct endpoint_span *span)
{
    return (uint64_t)span->time.to_ns - (uint64_t)span->time.from_ns;
}

static inline const struct endpoint_span *
endpoint_slowest(const struct endpoints *endpoints, const struct endpoint *endpoint)
{
    const struct endpoint_thread *thread = row_table_at(&endpoints->threads, endpoint->slowest.thread);
    return &thread->spans[endpoint->slowest.span];
}

#endif
