#ifndef TOPIC_H
#define TOPIC_H
/* topic.h - what traces are about. A topic has a folder, which gathers its events, checks them and makes its tables,
 * a line in this list, and so an option of `vm-trace report`.
 */
#include "topics/report_view.h"

/* X(name, what its tables have, for --help), in the order in which their tables follow each other. */
#define TOPICS(X) \
    X(exits, "exits and fallbacks, by place, reason and instruction") \
    X(counters, "what the counters of ZJIT's statistics count, by method and line") \
    X(compiles, "what ran without compiled code, and what the compiler did") \
    X(samples, "sampled time, by thread and state, method and line") \
    X(calls, "calls: callers, callees, threads, the slowest ones") \
    X(threads, "states of threads, who held the GVL, what they blocked in") \
    X(gc, "collections, and what allocates") \
    X(syscalls, "system calls, by name, method, thread and error") \
    X(sched, "times on CPUs, waits for them, who had them") \
    X(endpoints, "requests and jobs: times by endpoint, the slowest ones")

#define TOPIC_NUMBER(name, purpose) TOPIC_##name,
enum topic { TOPICS(TOPIC_NUMBER) TOPICS_COUNT };
#undef TOPIC_NUMBER

/* Adds all tables of a topic, or a line that says why it has none: topic_exits(view), topic_calls(view), ...
 * topic_endpoints needs a report with `endpoints`. */
#define TOPIC_FUNCTION(name, purpose) void topic_##name(const struct view *view);
TOPICS(TOPIC_FUNCTION)
#undef TOPIC_FUNCTION

#endif
