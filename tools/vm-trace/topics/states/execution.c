/* execution.c - see execution.h */
#include "analysis/event_args.h"
#include "topics/states/execution.h"

const struct execution_state_name execution_state_names[EXECUTION_STATES] = {
    [EXECUTION_COMPILED] = {STRING_COMPILED, "compiled code"},
    [EXECUTION_EXITED] = {STRING_EXITED, "interpreted because of exits"},
    [EXECUTION_UNCOMPILED] = {STRING_UNCOMPILED, "interpreted: not compiled yet"},
    [EXECUTION_UNCOMPILABLE] = {STRING_UNCOMPILABLE, "interpreted: cannot be compiled"},
    [EXECUTION_REPROFILED] = {STRING_REPROFILED, "interpreted: profiled again"},
    [EXECUTION_FALLBACK] = {STRING_FALLBACK, "fallback calls"},
    [EXECUTION_C_FUNCTION] = {STRING_C_FUNCTION, "C functions"},
    [EXECUTION_COMPILING] = {STRING_COMPILING, "compiling"},
    [EXECUTION_GC] = {STRING_GC, "garbage collection"},
    [EXECUTION_WAITING] = {STRING_WAITING, "waiting for the GVL"},
    [EXECUTION_NO_CPU] = {STRING_NO_CPU, "waiting for a CPU"},
    [EXECUTION_BLOCKED] = {STRING_BLOCKED, "blocked"},
    [EXECUTION_UNSEEN] = {STRING_UNSEEN, "before the trace saw the thread"},
};

void
execution_init(struct execution *execution)
{
    *execution = (struct execution){0};
    row_table_init(&execution->threads, sizeof(struct execution_thread), 1, EXECUTION_THREADS_MAX);
    row_table_init(&execution->iseqs, sizeof(struct execution_iseq), 3, EXECUTION_ISEQS_MAX);
}

void
execution_free(struct execution *execution)
{
    row_table_free(&execution->threads);
    row_list_free(&execution->current);
    row_table_free(&execution->iseqs);
}

void
execution_states_of(const struct fxt_event *event, uint64_t ns_out[EXECUTION_STATES])
{
    for (unsigned i = 0; i < EXECUTION_STATES; i++)
        ns_out[i] = event_uint(event, execution_state_names[i].argument, 0);
}

void
execution_add_thread(struct execution *execution, uint32_t thread, const struct fxt_event *event)
{
    struct execution_thread *states = row_table_get(&execution->threads, &thread);
    if (states == NULL) {
        execution->uncounted++;
        return;
    }
    if (states->any && event->ts_ns < states->ts_ns) return; /* chunks are in any order */
    if (!states->any) row_list_add(&execution->current, row_table_number(&execution->threads, states));
    states->any = true;
    states->ts_ns = event->ts_ns;
    execution_states_of(event, states->file_ns);
    states->file_changes = event_uint(event, STRING_CHANGES, 0);
}

void
execution_file_end(struct execution *execution)
{
    for (uint32_t i = 0; i < execution->current.count; i++) {
        struct execution_thread *thread = row_table_at(&execution->threads, execution->current.rows[i]);
        for (unsigned state = 0; state < EXECUTION_STATES; state++) thread->ns[state] += thread->file_ns[state];
        thread->changes += thread->file_changes;
        thread->any = false;
    }
    execution->current.count = 0;
}

void
execution_add_iseq(struct execution *execution, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    const uint32_t key[] = {process, event_text(pool, event, STRING_ISEQ), event_text(pool, event, STRING_WHY)};
    struct execution_iseq *iseq = row_table_get(&execution->iseqs, key);
    if (iseq == NULL) {
        execution->uncounted++;
        return;
    }
    int64_t first_ns = (int64_t)event_uint(event, STRING_FIRST_NS, 0);
    int64_t last_ns = (int64_t)event_uint(event, STRING_LAST_NS, 0);
    if (iseq->calls == 0 || first_ns < iseq->first_ns) iseq->first_ns = first_ns;
    if (iseq->calls == 0 || last_ns > iseq->last_ns) iseq->last_ns = last_ns;
    iseq->calls += event_uint(event, STRING_CALLS, 0);
    iseq->interpreted_ns += event_uint(event, STRING_INTERPRETED_NS, 0);
}

static uint64_t
sum_of(const uint64_t *ns, unsigned count)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) sum += ns[i];
    return sum;
}

void
execution_sum(const struct execution *execution, uint64_t ns_out[EXECUTION_STATES])
{
    memset(ns_out, 0, EXECUTION_STATES * sizeof *ns_out);
    for (uint32_t i = 0; i < execution->threads.count; i++) {
        const struct execution_thread *thread = row_table_at(&execution->threads, i);
        for (unsigned state = 0; state < EXECUTION_STATES; state++) ns_out[state] += thread->ns[state];
    }
}

uint64_t
execution_running_ns(const uint64_t ns[EXECUTION_STATES])
{
    return sum_of(ns, EXECUTION_RUNNING_STATES);
}

uint64_t
execution_life_ns(const uint64_t ns[EXECUTION_STATES])
{
    return sum_of(ns, EXECUTION_UNSEEN);
}
