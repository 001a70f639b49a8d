/* thread_gather.c - gathers for a report what threads blocked in, and where their time slices ended. */
#include "topics/report_data.h"
#include "topics/threads/blocked_stacks.h"

static void
init(struct report *report)
{
    row_table_init(&report->preempted, sizeof(struct report_preempted), REPORT_PREEMPTED_KEYS, REPORT_PREEMPTED_MAX);
    row_table_init(&report->blocked, sizeof(struct report_blocked), REPORT_BLOCKED_KEYS, REPORT_BLOCKED_MAX);
}

static void
free_all(struct report *report)
{
    for (uint32_t row = 0; row < report->blocked.count; row++) {
        struct report_blocked *blocked = row_table_at(&report->blocked, row);
        durations_free(&blocked->durations);
    }
    row_table_free(&report->blocked);
    row_table_free(&report->preempted);
}

/* Counts what a thread blocked in up to where it was woken, and only what lies in the wanted time:
 * so it adds up to the blocked time of its thread. */
static void
pair(struct report *report, const struct duration_edge *begin, const struct duration_edge *end, bool wanted)
{
    (void)wanted; /* by its begin */
    uint32_t process = report_thread(report, begin->row)->process;
    int64_t last_ns = thread_states_end_ns(&report->states, begin->row, process);
    struct interval time = thread_states_blocked(&report->states, begin, end, last_ns);
    uint64_t ns = thread_states_within(&report->states, time.from_ns, time.to_ns);
    if (!begin->wanted || !begin->outermost || (ns == 0 && !report_time_wanted(report, begin->ts_ns))) return;
    if (report->blocked_stacks != NULL) blocked_stack_add(report, begin, end, time, ns);
    uint32_t class_name = begin->class_name;
    if (class_name == STRING_NONE && end != NULL && end->category == STRING_BLOCKED) class_name = end->class_name;
    const uint32_t key[REPORT_BLOCKED_KEYS] = {begin->row, begin->name, class_name};
    struct report_blocked *blocked = row_table_get(&report->blocked, key);
    if (blocked != NULL) durations_add(&blocked->durations, ns);
    else report->uncounted++;
}


static void
wanted(struct report *report, const struct topic_event *of)
{
    if (of->event->type != FXT_EVENT_INSTANT || report->exits_only) return;
    const uint32_t key[REPORT_PREEMPTED_KEYS] = {of->native, report_own_frame(report, of->event)};
    struct report_preempted *preempted = row_table_get(&report->preempted, key);
    if (preempted != NULL) preempted->count++;
    else report->uncounted++;
}

const struct topic topic_threads = {
    .init = init,
    .free = free_all,
    .categories = {STRING_PREEMPTED},
    .wanted = wanted,
    .durations = {STRING_BLOCKED},
    .pair = pair,
    .tables = threads_tables,
};
