/* endpoint_gather.c - gathers for a report the spans of requests, and the durations of markers and of what no other
 * topic names. */
#include <string.h>

#include "topics/markers/endpoint_costs.h"
#include "topics/report_data.h"

TOPIC_CALL(init, named_durations_init(&report->durations))
TOPIC_CALL(free_all, named_durations_free(&report->durations))

static bool
fiber_track(const struct report *report, const struct report_thread *track, struct fxt_string *thread_name_out)
{
    static const char fiber[] = " fiber ";
    struct fxt_string name = pool_string(report->pool, track->name);
    if (!fiber_tid_p(track->tid) || track->name == STRING_NONE) return false;
    for (uint32_t at = name.len; at-- > 0;) {
        if (at + strlen(fiber) > name.len || memcmp(name.ptr + at, fiber, strlen(fiber)) != 0) continue;
        *thread_name_out = (struct fxt_string){.ptr = name.ptr, .len = at};
        return true;
    }
    return false;
}

/* The thread of that name in a process; 0 if there is none, or more than one, or too many to look at for each fiber. */
static uint32_t
tid_of_name(const struct report *report, uint32_t process, struct fxt_string name)
{
    enum { THREADS_LOOKED_AT = 10 * 1000 };
    uint32_t tid = 0;
    if (report->threads.count > THREADS_LOOKED_AT) return 0;
    for (uint32_t i = 0; i < report->threads.count; i++) {
        const struct report_thread *thread = report_thread(report, i);
        if (thread->process != process || thread->name == STRING_NONE || thread->runs != STRING_NONE) continue;
        if (!fxt_string_equal(pool_string(report->pool, thread->name), name)) continue;
        if (tid != 0) return 0;
        tid = thread->tid;
    }
    return tid;
}

static void
add_endpoint(struct report *report, const struct duration_edge *begin, const struct duration_edge *end)
{
    uint32_t endpoint = end != NULL && end->category == STRING_MARKER && end->endpoint != STRING_NONE ? end->endpoint
                                                                                                     : begin->endpoint;
    if (!begin->outermost && endpoint == STRING_NONE) return;
    if (end == NULL) {
        report->endpoints->unended++;
        return;
    }
    const struct report_thread *thread = report_thread(report, begin->row);
    struct endpoint_thread_key key = endpoint_key(report, thread);
    struct fxt_string of_name;
    bool fiber = fiber_track(report, thread, &of_name);
    const struct endpoint_found found = {
        .fiber = fiber,
        .of_tid = fiber && endpoints_fiber_new_p(report->endpoints, key.words)
                      ? tid_of_name(report, thread->process, of_name) : 0,
        .endpoint = endpoint != STRING_NONE ? endpoint : begin->name,
        .id = begin->id != STRING_NONE || end->category != STRING_MARKER ? begin->id : end->id,
        .thread_name = thread->name,
        .file = report->file_count - 1,
        .failed = end->category == STRING_MARKER && end->failed,
        .marked = endpoint != STRING_NONE,
        .time = {begin->ts_ns, end->ts_ns},
    };
    endpoints_span(report->endpoints, key.words, &found);
}

static void
single(struct report *report, const struct duration_edge *edge, uint64_t ns)
{
    report->uncounted += !named_durations_add(&report->durations, edge->category, edge->name, ns);
}

static void
pair(struct report *report, const struct duration_edge *begin, const struct duration_edge *end, bool wanted)
{
    if (!wanted) return;
    if (begin->category == STRING_MARKER && report->endpoints != NULL && !report->endpoints->complete)
        add_endpoint(report, begin, end);
    if (end != NULL) single(report, begin, (uint64_t)(end->ts_ns - begin->ts_ns));
}

/* What a thread does while a request is open is a part of its time. */
static void
piece(struct report *report, const struct thread_times *times, enum thread_state state, struct interval time)
{
    static const struct {
        bool shown;
        enum endpoint_cost cost;
    } costs[THREAD_STATE_COUNT] = {
        [THREAD_RUNNING] = {true, ENDPOINT_RAN},
        [THREAD_IN_GC] = {true, ENDPOINT_RAN},
        [THREAD_WAITING] = {true, ENDPOINT_WAITED},
        [THREAD_BLOCKED] = {true, ENDPOINT_BLOCKED},
    };
    if (costs[state].shown) endpoint_cost_add_time(report, times->row, time, costs[state].cost);
}

const struct topic topic_endpoints = {
    .init = init,
    .free = free_all,
    .durations = {STRING_MARKER},
    .others = true,
    .pair = pair,
    .single = single,
    .piece = piece,
    .tables = endpoints_tables,
};
