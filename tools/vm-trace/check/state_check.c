/* state_check.c - see state_check.h */
#include <inttypes.h>

#include "check/state_check.h"
#include "fxt/known_strings.h"

struct checked_thread {
    uint32_t process, tid; /* the key */
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
    const struct checked_thread *thread = row_table_at(&check->threads, row), *runs;
    if (!schema_check_covers(check->schema, thread->process) || schema_check_gaps(check->schema)) return;
    struct reader *reader = check->reader;
    switch (fault) {
      case THREAD_FAULT_TWO_RUN:
        runs = row_table_at(&check->threads, other);
        reader_fault(reader, FXT_FAULT_SCHEMA, offset,
                     "thread %" PRIu32 " runs on CPU %" PRIu32 ", but thread %" PRIu32 " still does", thread->tid, cpu,
                     runs->tid);
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
        if (schema_check_begins_late(check->schema, thread->process)) return;
        /* fall through */
      case THREAD_FAULT_NOT_BLOCKED:
        reader_fault(reader, FXT_FAULT_SCHEMA, offset,
                     "thread %" PRIu32 " is in a blocked duration, but its state is not blocked", thread->tid);
        return;
    }
}

void
state_check_init(struct state_check *check, struct reader *reader, const struct schema_check *schema)
{
    *check = (struct state_check){.reader = reader, .schema = schema};
    row_table_init(&check->threads, sizeof(struct checked_thread), 2, THREAD_STATES_THREADS_MAX);
    const struct thread_states_visitor visitor = {.context = check, .last_ns = no_time, .fault = on_fault};
    thread_states_init(&check->states, &visitor);
}

void
state_check_free(struct state_check *check)
{
    thread_states_free(&check->states);
    row_table_free(&check->threads);
}

uint32_t
state_check_row(struct state_check *check, uint32_t process, uint32_t tid)
{
    const uint32_t key[2] = {process, tid};
    const struct checked_thread *thread = row_table_get(&check->threads, key);
    return thread == NULL ? THREAD_STATES_THREADS_MAX - 1 : row_table_number(&check->threads, thread);
}

void
state_check_pair(struct state_check *check, const struct duration_edge *begin, const struct duration_edge *end)
{
    if (begin->category == STRING_BLOCKED) thread_states_blocked(&check->states, begin, end, INT64_MAX);
}
