#ifndef TOPIC_H
#define TOPIC_H
/* topic.h - what traces are about. A topic has a folder, which gathers its events, checks them and makes its tables,
 * and a line in one of these lists. What it gathers is in struct report (report_data.h).
 */
#include "analysis/duration_edge.h"
#include "analysis/thread_states.h"
#include "base/interval.h"
#include "fxt/known_strings.h"
#include "fxt/reader.h"

/* X(name, what its tables have, for --help): options of `vm-trace report`, in the order in which their tables follow
 * each other. */
#define TOPICS(X) \
    X(exits, "exits and fallbacks, by place, reason and instruction") \
    X(counters, "what the counters of ZJIT's statistics count, by method and line") \
    X(compiles, "what ran without compiled code, and what the compiler did") \
    X(samples, "sampled time, by thread and state, method and line") \
    X(calls, "calls: callers, callees, threads, the slowest ones") \
    X(threads, "states of threads, who held the GVL, what they blocked in") \
    X(fibers, "what fibers waited for, and how long they kept others from running") \
    X(gc, "collections, and what allocates") \
    X(syscalls, "system calls, by name, method, thread and error") \
    X(sched, "times on CPUs, waits for them, who had them") \
    X(endpoints, "requests and jobs: times by endpoint, the slowest ones")

/* X(name): without an option; the tables of others have what these gather. */
#define TOPICS_OF_OTHERS(X) X(states) X(allocations)

#define TOPIC_NUMBER(name, purpose) TOPIC_##name,
enum topic_number { TOPICS(TOPIC_NUMBER) TOPICS_COUNT };
#undef TOPIC_NUMBER

struct report;
struct view;

/* An event, and what the report knows of it. Threads and processes are numbers of its rows. */
struct topic_event {
    const struct fxt_event *event;
    uint32_t native;  /* the thread whose track has it */
    uint32_t thread;  /* the thread that it counts for: mostly the same; `any` does not have it */
    uint32_t process; /* the piece of its process, */
    uint32_t whole;   /* and the whole */
};

enum { TOPIC_CATEGORIES_MAX = 4 };

/* What a topic does while traces are read, and then. Functions may be NULL. Where several topics take the same, they
 * get it in the order of the lists. */
struct topic {
    /* A report. */
    void (*init)(struct report *report);
    void (*free)(struct report *report);
    /* The window of --since and --until is known. Before, all times are in it. */
    void (*window)(struct report *report, struct interval window);

    /* A file. What refers to its definitions ends with it. */
    void (*file_begin)(struct report *report);
    void (*file_end)(struct report *report);

    /* An instant of the category `trace`: it holds for all of the trace, whatever the filter. */
    void (*about_trace)(struct report *report, const struct topic_event *of);
    /* An event of one of these categories (each an enum known_string): of any thread and time; of a thread that passes
     * --thread, for what counts as far as it lies in the window; and one that begins in the window, too. */
    uint32_t categories[TOPIC_CATEGORIES_MAX];
    void (*any)(struct report *report, const struct topic_event *of);
    void (*of_thread)(struct report *report, const struct topic_event *of);
    void (*wanted)(struct report *report, const struct topic_event *of);
    /* A blob of a chunk. */
    void (*blob)(struct report *report, const struct fxt_blob *blob);

    /* A duration of one of these categories, or, if `others`, of one that no topic names. wanted: it passes the filter;
     * end is NULL for one that never ends. And one in a single record, which passes the filter. */
    uint32_t durations[TOPIC_CATEGORIES_MAX];
    bool others;
    void (*pair)(struct report *report, const struct duration_edge *begin, const struct duration_edge *end,
                 bool wanted);
    void (*single)(struct report *report, const struct duration_edge *edge, uint64_t ns);
    /* A thread was in a state. */
    void (*piece)(struct report *report, const struct thread_times *times, enum thread_state state,
                  struct interval time);

    /* All files are read. */
    void (*resolve)(struct report *report);
    /* Adds all tables of its option, or a line that says why it has none. Those of endpoints need a report with
     * `endpoints`. */
    void (*tables)(const struct view *view);
};

/* Defines a function of a topic that makes one call, with what `report` has of it. */
#define TOPIC_CALL(name, call) static void name(struct report *report) { call; }

/* topic_exits, ..., with exits_tables, ... */
#define TOPIC_DECLARATION(name, ...) extern const struct topic topic_##name;
#define TOPIC_TABLES(name, purpose) void name##_tables(const struct view *view);
TOPICS(TOPIC_DECLARATION)
TOPICS(TOPIC_TABLES)
TOPICS_OF_OTHERS(TOPIC_DECLARATION)
#undef TOPIC_DECLARATION
#undef TOPIC_TABLES

/* All of them; those with options have the numbers of enum topic_number. */
enum { TOPICS_MAX = 32 };
extern const struct topic *const topics[];
extern const unsigned topics_count;

#endif
