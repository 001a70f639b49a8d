/* state_check.c - see state_check.h */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/sched_changes.h"
#include "analysis/state_check.h"
#include "analysis/thread_states.h"
#include "base/xalloc.h"
#include "fxt/event_keys.h"
#include "fxt/known_strings.h"

struct checked_thread {
    uint32_t pid, tid;
};

struct state_check {
    struct reader *reader;
    const struct schema_check *schema;
    struct thread_states states;
    struct sched_processes processes;
    struct map row_of_thread;
    struct checked_thread *threads;
    uint32_t thread_count, thread_capacity;
};

static int64_t
no_time(void *context, uint32_t process)
{
    (void)context, (void)process;
    return INT64_MIN; /* no sum is asked for */
}

static void
on_fault(void *context, uint64_t offset, enum thread_fault fault, uint32_t row, uint32_t other, uint32_t cpu)
{
    struct state_check *check = context;
    const struct checked_thread *thread = &check->threads[row];
    if (!schema_check_covers(check->schema, thread->pid) || schema_check_gaps(check->schema)) return;
    struct reader *reader = check->reader;
    switch (fault) {
      case THREAD_FAULT_TWO_RUN:
        reader_fault(reader, FXT_FAULT_SCHEMA, offset,
                     "thread %" PRIu32 " runs on CPU %" PRIu32 ", but thread %" PRIu32 " still does", thread->tid, cpu,
                     check->threads[other].tid);
        return;
      case THREAD_FAULT_RUNS_TWICE:
        reader_fault(reader, FXT_FAULT_SCHEMA, offset,
                     "thread %" PRIu32 " begins to run on CPU %" PRIu32 ", but it runs already", thread->tid, cpu);
        return;
      case THREAD_FAULT_DOES_NOT_RUN:
        reader_fault(reader, FXT_FAULT_SCHEMA, offset,
                     "thread %" PRIu32 " stops running on CPU %" PRIu32 ", but it does not run", thread->tid, cpu);
        return;
      case THREAD_FAULT_NEVER_BLOCKED:
        if (schema_check_begins_late(check->schema, thread->pid)) return;
        /* fall through */
      case THREAD_FAULT_NOT_BLOCKED:
        reader_fault(reader, FXT_FAULT_SCHEMA, offset,
                     "thread %" PRIu32 " is in a blocked duration, but its state is not blocked", thread->tid);
        return;
    }
}

struct state_check *
state_check_new(struct reader *reader, const struct schema_check *schema)
{
    struct state_check *check = xcalloc(1, sizeof *check);
    check->reader = reader;
    check->schema = schema;
    const struct thread_states_visitor visitor = {.context = check, .last_ns = no_time, .fault = on_fault};
    thread_states_init(&check->states, &visitor);
    return check;
}

void
state_check_free(struct state_check *check)
{
    if (check == NULL) return;
    thread_states_free(&check->states);
    sched_processes_free(&check->processes);
    map_free(&check->row_of_thread);
    free(check->threads);
    free(check);
}

void
state_check_object(struct state_check *check, const struct fxt_object *object)
{
    if (object->type == FXT_OBJECT_THREAD) sched_processes_name(&check->processes, object);
}

uint32_t
state_check_row(struct state_check *check, uint32_t pid, uint32_t tid)
{
    uint32_t row = map_get(&check->row_of_thread, thread_key(pid, tid));
    if (row != MAP_NONE) return row;
    if (check->thread_count == THREAD_STATES_THREADS_MAX) return THREAD_STATES_THREADS_MAX - 1;
    make_room(check->threads, check->thread_count, check->thread_capacity);
    map_set(&check->row_of_thread, thread_key(pid, tid), check->thread_count);
    check->threads[check->thread_count] = (struct checked_thread){pid, tid};
    return check->thread_count++;
}

void
state_check_sched(struct state_check *check, struct duration_pairs *pairs, const struct fxt_sched *sched)
{
    struct sched_change_of changes[SCHED_CHANGES_MAX];
    unsigned count = sched_changes(&check->processes, sched, changes);
    for (unsigned i = 0; i < count; i++) {
        struct duration_edge edge = {
            .ts_ns = sched->ts_ns,
            .offset = sched->offset,
            .row = state_check_row(check, changes[i].pid, changes[i].tid),
            .sched = changes[i].change,
        };
        edge.process = changes[i].pid;
        edge.cpu = sched->cpu;
        duration_pairs_add_sched(pairs, &edge);
    }
}

void
state_check_edge(struct state_check *check, const struct duration_edge *edge)
{
    thread_states_sched(&check->states, edge);
}

void
state_check_pair(struct state_check *check, const struct duration_edge *begin, const struct duration_edge *end)
{
    if (begin->category == STRING_BLOCKED) thread_states_blocked(&check->states, begin, end, INT64_MAX);
}
