/* execution_check.c - see execution_check.h */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/event_args.h"
#include "topics/states/execution_check.h"
#include "base/escape.h"
#include "base/xalloc.h"

enum { PROCESSES_MAX = 16 * 1024, THREADS_MAX = 256 * 1024 };
enum { READ_APART_NS = 1000000 }; /* sums below this may differ by more than 1 % */

#define FAULT(reader, event, ...) reader_fault(reader, FXT_FAULT_SCHEMA, (event)->offset, __VA_ARGS__)

void
execution_check_init(struct execution_check *check)
{
    row_table_init(&check->processes, sizeof(struct execution_check_process), 1, PROCESSES_MAX);
    row_table_init(&check->threads, sizeof(struct execution_check_thread), 2, THREADS_MAX);
    ended_slices_init(&check->ended);
}

void
execution_check_chunk(struct execution_check *check)
{
    ended_slices_clear(&check->ended);
}

void
execution_check_free(struct execution_check *check)
{
    execution_check_chunk(check);
    row_table_free(&check->processes);
    row_table_free(&check->threads);
}

/* --- arguments -------------------------------------------------------------------------- */

static const char *
text_of_known(struct reader *reader, uint32_t known)
{
    return pool_string(reader_pool(reader), known).ptr;
}

/* Whether the first is more than the second, by more than what clocks that are read one after the other
 * explain. */
static bool
exceeds(uint64_t a, uint64_t b)
{
    return a > b && a - b > b / 100 && a - b > READ_APART_NS;
}

/* --- exits and sites ---------------------------------------------------------------------- */

static struct execution_check_process *
process_of(struct execution_check *check, uint32_t number)
{
    static struct execution_check_process others; /* with too many processes: not compared */
    struct execution_check_process *process = row_table_get(&check->processes, &number);
    return process != NULL ? process : &others;
}

void
execution_check_settings(struct execution_check *check, const struct fxt_event *event)
{
    event_read_uint(event, STRING_STATES_MIN_NS, &process_of(check, event->process)->min_ns);
}

void
execution_check_exit(struct execution_check *check, const struct fxt_event *event)
{
    process_of(check, event->process)->events_lost_ns += event_uint(event, STRING_LOST_NS, 0);
}

void
execution_check_site(struct execution_check *check, struct reader *reader, const struct fxt_event *event)
{
    uint64_t lost_ns = event_uint(event, STRING_LOST_NS, 0), max_ns = event_uint(event, STRING_LOST_MAX_NS, 0);
    if (max_ns > lost_ns)
        FAULT(reader, event, "site: one exit lost %" PRIu64 " ns, but all of them %" PRIu64, max_ns, lost_ns);
    struct execution_check_process *process = process_of(check, event->process);
    process->sites_lost_ns += lost_ns;
    process->has_sites_lost |= fxt_event_arg(event, STRING_LOST_NS) != NULL;
}

/* --- sums of threads and ISEQs -------------------------------------------------------------- */

void
execution_check_thread(struct execution_check *check, struct reader *reader, const struct fxt_event *event,
                       int64_t settings_ns)
{
    uint64_t ns[EXECUTION_STATES], sum = 0;
    for (unsigned i = 0; i < EXECUTION_STATES; i++) sum += ns[i] = event_uint(event, execution_state_names[i].argument, 0);
    uint64_t life_ns = event->ts_ns > settings_ns ? (uint64_t)event->ts_ns - (uint64_t)settings_ns : 0;
    if (exceeds(sum, life_ns)) {
        FAULT(reader, event, "states of thread %" PRIu32 " add up to %" PRIu64 " ns; the trace is %" PRIu64 " ns old",
              event->tid, sum, life_ns);
    }
    const uint32_t key[2] = {event->process, event->tid};
    struct execution_check_thread *thread = row_table_get(&check->threads, key);
    if (thread == NULL) return;
    bool later = event->ts_ns >= thread->ts_ns;
    for (unsigned i = 0; i < EXECUTION_STATES; i++) {
        uint64_t before = later ? thread->ns[i] : ns[i], after = later ? ns[i] : thread->ns[i];
        if (after >= before) continue;
        FAULT(reader, event, "states: %s of thread %" PRIu32 " shrinks from %" PRIu64 " to %" PRIu64,
              text_of_known(reader, execution_state_names[i].argument), event->tid, before, after);
        break;
    }
    struct execution_check_process *process = process_of(check, event->process);
    process->has_threads = true;
    process->states_offset = event->offset;
    if (!later) return;
    thread->ts_ns = event->ts_ns;
    for (unsigned i = 0; i < EXECUTION_STATES; i++) thread->ns[i] = ns[i];
}

void
execution_check_iseq(struct reader *reader, const struct fxt_event *event)
{
    const char *name = text_of_known(reader, event->name.id);
    uint64_t ran_ns, interpreted_ns = event_uint(event, STRING_INTERPRETED_NS, 0);
    uint64_t first_ns = event_uint(event, STRING_FIRST_NS, 0), last_ns = event_uint(event, STRING_LAST_NS, UINT64_MAX);
    if (event_uint(event, STRING_CALLS, 1) == 0) FAULT(reader, event, "%s: calls is 0", name);
    /* Older traces do not have it. */
    if (event_read_uint(event, STRING_RAN_NS, &ran_ns) && exceeds(interpreted_ns, ran_ns)) {
        FAULT(reader, event, "%s: interpreted for %" PRIu64 " ns of the %" PRIu64 " that the calls ran", name,
              interpreted_ns, ran_ns);
    }
    if (first_ns > last_ns) {
        FAULT(reader, event, "%s: its first call is later than its last: %" PRIu64 ", %" PRIu64, name, first_ns,
              last_ns);
    }
}

/* --- slices ----------------------------------------------------------------------------------- */

void
execution_check_slice(struct execution_check *check, struct reader *reader, const struct fxt_event *event)
{
    if (event->type != FXT_EVENT_DURATION_COMPLETE) return;
    uint64_t ns = (uint64_t)(event->end_ns - event->ts_ns), min_ns = process_of(check, event->process)->min_ns;
    if (ns < min_ns) FAULT(reader, event, "execution slice of %" PRIu64 " ns; the shortest is %" PRIu64, ns, min_ns);
    if (ended_slices_add(&check->ended, event) == ENDED_OVERLAPS) {
        FAULT(reader, event, "execution slice begins at %" PRId64 " inside another one, and ends after it",
              event->ts_ns);
    }
}

/* --- all ---------------------------------------------------------------------------------------- */

void
execution_check_finish(struct execution_check *check, struct reader *reader, uint32_t number)
{
    struct execution_check_process *process = row_table_find(&check->processes, &number);
    uint64_t exited_ns = 0;
    if (process == NULL || !process->has_threads) return;
    for (uint32_t i = 0; i < check->threads.count; i++) {
        const struct execution_check_thread *thread = row_table_at(&check->threads, i);
        if (thread->process == number) exited_ns += thread->ns[EXECUTION_EXITED];
    }
    uint64_t sites_ns = process->sites_lost_ns;
    if (exceeds(exited_ns, sites_ns) || exceeds(sites_ns, exited_ns)) {
        reader_fault(reader, FXT_FAULT_SCHEMA, process->states_offset,
                     "threads were interpreted because of exits for %" PRIu64 " ns, but sites add up to: %" PRIu64,
                     exited_ns, sites_ns);
    }
    if (process->has_sites_lost && exceeds(process->events_lost_ns, sites_ns)) {
        reader_fault(reader, FXT_FAULT_SCHEMA, process->states_offset,
                     "recorded exits lost %" PRIu64 " ns, but all exits of the sites only %" PRIu64,
                     process->events_lost_ns, sites_ns);
    }
}
