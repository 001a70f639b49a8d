/* fiber_gather.c - gathers for a report what fibers waited for. */
#include <string.h>

#include "topics/report_data.h"

static void
init(struct report *report)
{
    struct fibers *fibers = &report->fibers;
    row_table_init(&fibers->waits, sizeof(struct fiber_wait), FIBER_WAIT_KEYS, FIBER_WAITS_MAX);
    row_table_init(&fibers->runs, sizeof(struct fiber_run), FIBER_RUN_KEYS, FIBER_RUNS_MAX);
    row_table_init(&fibers->tracks, sizeof(struct fiber_track), FIBER_TRACK_KEYS, FIBER_TRACKS_MAX);
}

static void
free_all(struct report *report)
{
    struct fibers *fibers = &report->fibers;
    for (uint32_t i = 0; i < fibers->waits.count; i++) {
        struct fiber_wait *wait = row_table_at(&fibers->waits, i);
        durations_free(&wait->durations);
    }
    for (uint32_t i = 0; i < fibers->runs.count; i++) {
        struct fiber_run *run = row_table_at(&fibers->runs, i);
        durations_free(&run->durations);
    }
    row_table_free(&fibers->waits);
    row_table_free(&fibers->runs);
    row_table_free(&fibers->tracks);
}

static void
about_trace(struct report *report, const struct topic_event *of)
{
    if (of->event->name.id == STRING_SUMMARY || of->event->name.id == STRING_COUNTS)
        report->fibers.left_out += event_uint(of->event, STRING_FIBER_WAITS_LEFT_OUT, 0);
    if (event_settings_p(of->event) && fxt_event_arg(of->event, STRING_FIBERS_MIN_NS) != NULL)
        report->recorded[TOPIC_fibers] = true;
}

/* The application's frame around the method that waits, or that method's. */
static uint32_t
frame_of(struct report *report, const struct fxt_event *event)
{
    uint32_t waits = STRING_NONE;
    for (uint32_t name = STRING_FRAME_0; name <= STRING_FRAME_9; name++) {
        const struct fxt_arg *arg = fxt_event_arg(event, name);
        if (arg == NULL || arg->type != FXT_ARG_STRING) break;
        uint32_t label = pool_id(report->pool, arg->string);
        bool names = arg->string.len > event->name.len &&
                     memcmp(arg->string.ptr, event->name.ptr, event->name.len) == 0;
        if (waits != STRING_NONE && frame_of_app(&report->owners, label)) return label;
        if (waits == STRING_NONE && names) waits = label;
    }
    return waits;
}

static void
add_wait(struct report *report, const struct fxt_event *event, uint32_t name, uint32_t frame,
         const struct fiber_times *times)
{
    const uint32_t key[FIBER_WAIT_KEYS] = {name, event_text(report->pool, event, STRING_SCHEDULER), frame};
    struct fiber_wait *wait = row_table_get(&report->fibers.waits, key);
    if (wait == NULL) {
        report->fibers.uncounted++;
        return;
    }
    durations_add(&wait->durations, times->waited);
    if (times->ready == 0) return;
    wait->ready++;
    wait->ready_ns += times->ready;
    if (times->ready > wait->ready_max_ns) wait->ready_max_ns = times->ready;
}

/* A run that began at `from_ns`. */
static void
add_run(struct report *report, const struct topic_event *of, uint32_t name, uint32_t frame, int64_t from_ns,
        uint64_t ran_ns)
{
    const uint32_t key[FIBER_RUN_KEYS] = {name, frame};
    struct fiber_run *run = row_table_get(&report->fibers.runs, key);
    if (run == NULL) {
        report->fibers.uncounted++;
        return;
    }
    if (ran_ns > run->durations.longest_ns) {
        run->longest_at_ns = from_ns;
        run->longest_in = of->native;
    }
    durations_add(&run->durations, ran_ns);
}

static void
wanted(struct report *report, const struct topic_event *of)
{
    const struct fxt_event *event = of->event;
    if (event->type != FXT_EVENT_DURATION_COMPLETE || report->exits_only) return;
    const struct fiber_times times = fiber_times(event);
    uint32_t name = pool_id(report->pool, event->name), frame = frame_of(report, event);
    struct fiber_track *track = row_table_get(&report->fibers.tracks, &of->native);
    if (track != NULL) {
        track->waits++;
        track->waited_ns += times.waited;
        track->ready_ns += times.ready;
        track->ran_ns += times.ran;
        if (times.ran > track->longest_run_ns) track->longest_run_ns = times.ran;
    }
    else {
        report->fibers.uncounted++;
    }
    if (!fiber_tid_p(report_thread(report, of->native)->tid)) {
        /* A fiber that ends lets the thread's own one go on, which mostly resumed it: the wait is its run. */
        uint32_t ended = pool_intern(report->pool, FIBER_ENDED, sizeof FIBER_ENDED - 1);
        bool resumed = fxt_event_arg(event, STRING_BEGAN) != NULL || fxt_event_arg(event, STRING_WAKER) != NULL;
        if (!resumed) add_run(report, of, ended, ended, event->ts_ns, times.waited);
        return;
    }
    add_wait(report, event, name, frame, &times);
    if (times.ran > 0) add_run(report, of, name, frame, event->ts_ns - (int64_t)times.ran, times.ran);
}

const struct topic topic_fibers = {
    .init = init,
    .free = free_all,
    .about_trace = about_trace,
    .categories = {STRING_FIBER},
    .wanted = wanted,
    .tables = fibers_tables,
};
