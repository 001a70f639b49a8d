/* thread_states.c - see thread_states.h */
#include "analysis/thread_states.h"

void
thread_states_init(struct thread_states *states, const struct thread_states_visitor *visitor)
{
    *states = (struct thread_states){.visitor = *visitor, .from_ns = INT64_MIN, .to_ns = INT64_MAX};
    row_table_init(&states->threads, sizeof(struct thread_times), 1, THREAD_STATES_THREADS_MAX);
    row_table_init(&states->cpus, sizeof(struct thread_cpu), 2, THREAD_STATES_CPUS_MAX);
    row_table_init(&states->older, sizeof(struct older_part), 1, THREAD_STATES_CPUS_MAX);
}

void
thread_states_free(struct thread_states *states)
{
    row_table_free(&states->threads);
    row_table_free(&states->cpus);
    row_table_free(&states->older);
    row_list_free(&states->current_threads);
    row_list_free(&states->current_cpus);
}

uint64_t
thread_states_within(const struct thread_states *states, int64_t from_ns, int64_t to_ns)
{
    if (from_ns < states->from_ns) from_ns = states->from_ns;
    if (to_ns > states->to_ns) to_ns = states->to_ns;
    return to_ns > from_ns ? (uint64_t)to_ns - (uint64_t)from_ns : 0;
}

uint64_t
thread_life_ns(const struct thread_times *thread)
{
    uint64_t ns = 0;
    for (unsigned state = THREAD_RUNNING; state < THREAD_DEAD; state++) ns += thread->ns[state];
    return ns;
}

uint64_t
thread_states_sum(const struct thread_states *states, uint64_t ns_out[THREAD_STATE_COUNT])
{
    uint64_t life_ns = 0;
    for (unsigned state = 0; state < THREAD_STATE_COUNT; state++) ns_out[state] = 0;
    for (uint32_t i = 0; i < states->threads.count; i++) {
        const struct thread_times *times = row_table_at(&states->threads, i);
        for (unsigned state = 0; state < THREAD_STATE_COUNT; state++) ns_out[state] += times->ns[state];
        life_ns += thread_life_ns(times);
    }
    return life_ns;
}

static struct thread_times *
thread_at(const struct thread_states *states, uint32_t number)
{
    return row_table_at(&states->threads, number);
}

static struct thread_cpu *
cpu_at(const struct thread_states *states, uint32_t number)
{
    return row_table_at(&states->cpus, number);
}

static struct thread_times *
thread_of(struct thread_states *states, const struct duration_edge *edge)
{
    uint32_t known = states->threads.count;
    struct thread_times *thread = row_table_get(&states->threads, &edge->row);
    if (thread == NULL) {
        states->uncounted++;
        return NULL;
    }
    if (states->threads.count > known) {
        thread->out_ns = INT64_MAX;
        thread->woken_ns = thread->latest_ns = thread->counted_ns = INT64_MIN;
        thread->part_ns = thread->newer_ns = INT64_MAX;
        thread->waker = UINT32_MAX;
    }
    if (!thread->current) row_list_add(&states->current_threads, row_table_number(&states->threads, thread));
    thread->current = true;
    thread->thread = edge->thread; /* another one in each file */
    return thread;
}

static struct thread_cpu *
cpu_of(struct thread_states *states, const struct duration_edge *edge)
{
    const uint32_t key[2] = {edge->process, edge->cpu};
    struct thread_cpu *cpu = row_table_get(&states->cpus, key);
    if (cpu == NULL) states->uncounted++;
    else if (!cpu->begun) {
        row_list_add(&states->current_cpus, row_table_number(&states->cpus, cpu));
        cpu->begun = true;
        cpu->holder = NO_HOLDER;
        cpu->last_ns = edge->ts_ns;
        cpu->free_ns = edge->ts_ns;
        cpu->part_ns = edge->ts_ns;
    }
    return cpu;
}

static void
fault(const struct thread_states *states, const struct duration_edge *edge, enum thread_fault what,
      uint32_t other, uint32_t cpu)
{
    const struct thread_states_visitor *visitor = &states->visitor;
    if (visitor->fault) visitor->fault(visitor->context, edge->offset, what, edge->row, other, cpu);
}

/* --- who holds the GVL -------------------------------------------------------------------- */

/* Charges the holder for the time up to now. */
static void
cpu_advance(struct thread_states *states, struct thread_cpu *cpu, int64_t ts_ns)
{
    if (ts_ns <= cpu->last_ns) return;
    if (cpu->holder != NO_HOLDER && cpu->waiting > 0) {
        struct thread_times *holder = thread_at(states, cpu->holder);
        uint64_t ns = thread_states_within(states, cpu->last_ns, ts_ns);
        if (cpu->hold_ns == 0) cpu->hold_at_ns = cpu->last_ns > states->from_ns ? cpu->last_ns : states->from_ns;
        cpu->hold_ns += ns;
        holder->held_ns += ns;
        if (holder->in_gc) holder->held_gc_ns += ns;
        holder->others_ns += ns * cpu->waiting;
    }
    cpu->last_ns = ts_ns;
}

/* Notes what the holder does when others begin to wait for it. */
static void
cpu_changed(struct thread_states *states, struct thread_cpu *cpu)
{
    if (cpu->holder == NO_HOLDER || cpu->waiting == 0 || cpu->hold_marker != STRING_NONE) return;
    cpu->hold_marker = states->marker(states->pairs, thread_at(states, cpu->holder)->thread);
}

static void
cpu_release(struct thread_states *states, struct thread_cpu *cpu)
{
    if (cpu->holder == NO_HOLDER) return;
    cpu_changed(states, cpu);
    struct thread_times *holder = thread_at(states, cpu->holder);
    if (cpu->hold_ns > holder->longest_hold_ns) {
        holder->longest_hold_ns = cpu->hold_ns;
        holder->longest_hold_at_ns = cpu->hold_at_ns;
        holder->longest_hold_marker = cpu->hold_marker;
    }
    cpu->holder = NO_HOLDER;
    cpu->hold_ns = 0;
    cpu->hold_marker = STRING_NONE;
}

/* --- states of a thread --------------------------------------------------------------------- */

static void
pass_piece(const struct thread_states *states, const struct thread_times *thread, enum thread_state state,
           int64_t from_ns, int64_t to_ns, uint64_t gc_ns)
{
    const struct thread_states_visitor *visitor = &states->visitor;
    if (visitor->piece && from_ns < to_ns) visitor->piece(visitor->context, thread, state, from_ns, to_ns, gc_ns);
}

/* A state ends. Returns where the part of it begins that no earlier file has. */
static int64_t
count_from(struct thread_times *thread, int64_t from_ns, int64_t to_ns)
{
    if (to_ns > thread->latest_ns) thread->latest_ns = to_ns;
    return from_ns > thread->counted_ns ? from_ns : thread->counted_ns;
}

static void
account(struct thread_states *states, struct thread_times *thread, int64_t ts_ns)
{
    if (ts_ns <= thread->since_ns) return;
    int64_t from_ns = count_from(thread, thread->since_ns, ts_ns);
    uint64_t ns = thread_states_within(states, from_ns, ts_ns);
    bool collects = thread->state == THREAD_RUNNING && thread->in_gc;
    enum thread_state state = collects ? THREAD_IN_GC : thread->state;
    thread->ns[state] += ns;
    pass_piece(states, thread, state, from_ns, ts_ns, 0);
    if (thread->state == THREAD_WAITING) {
        states->waits += ns > 0;
        if (ns > thread->longest_wait_ns) thread->longest_wait_ns = ns;
    }
    thread->since_ns = ts_ns;
}

static void
enter(struct thread_states *states, struct thread_times *thread, enum thread_state state, int64_t ts_ns)
{
    if (thread->state != THREAD_UNKNOWN && thread->state != THREAD_DEAD) account(states, thread, ts_ns);
    else thread->since_ns = ts_ns;
    if (ts_ns < thread->part_ns) thread->part_ns = ts_ns;
    thread->state = state;
}

/* The thread stops waiting: it runs, or its life ends. */
static void
stop_waiting(struct thread_states *states, struct thread_times *thread, int64_t ts_ns)
{
    if (thread->state != THREAD_WAITING) return;
    struct thread_cpu *cpu = cpu_at(states, thread->cpu);
    cpu_advance(states, cpu, ts_ns);
    if (cpu->waiting > 0) cpu->waiting--;
}

static void
start_waiting(struct thread_states *states, struct thread_times *thread, struct thread_cpu *cpu, int64_t ts_ns)
{
    if (ts_ns < cpu->last_ns) states->unattributed_ns += thread_states_within(states, ts_ns, cpu->last_ns);
    enter(states, thread, THREAD_WAITING, ts_ns);
    cpu->waiting++;
    cpu_changed(states, cpu);
}

/* The thread's first record says that it stops running: it ran since the GVL was last free. */
static void
ran_before(struct thread_states *states, struct thread_times *thread, const struct thread_cpu *cpu, int64_t ts_ns)
{
    int64_t from_ns = cpu->holder == NO_HOLDER && cpu->free_ns < ts_ns ? cpu->free_ns : ts_ns;
    thread->state = THREAD_RUNNING;
    thread->part_ns = from_ns;
    from_ns = count_from(thread, from_ns, ts_ns);
    uint64_t ns = thread_states_within(states, from_ns, ts_ns), gc_ns = thread->unknown_gc_ns;
    if (gc_ns > ns) gc_ns = ns;
    thread->ns[THREAD_IN_GC] += gc_ns;
    thread->ns[THREAD_RUNNING] += ns - gc_ns;
    pass_piece(states, thread, THREAD_RUNNING, from_ns, ts_ns, gc_ns);
    thread->since_ns = ts_ns;
}

/* A run counts if any of it lies in the window. */
static void
end_run(const struct thread_states *states, struct thread_times *thread, int64_t ts_ns)
{
    if (thread->state != THREAD_RUNNING) return;
    thread->runs += thread->in_ns < states->to_ns && ts_ns >= states->from_ns;
}

static void
runs(struct thread_states *states, struct thread_times *thread, struct thread_cpu *cpu,
     const struct duration_edge *edge)
{
    if (cpu->holder != NO_HOLDER) {
        uint32_t other = thread_at(states, cpu->holder)->row;
        if (other == edge->row) fault(states, edge, THREAD_FAULT_RUNS_TWICE, other, cpu->number);
        else if (cpu->number != THREAD_CPU_SHARED) fault(states, edge, THREAD_FAULT_TWO_RUN, other, cpu->number);
        cpu_release(states, cpu);
    }
    stop_waiting(states, thread, edge->ts_ns);
    enter(states, thread, THREAD_RUNNING, edge->ts_ns);
    thread->in_ns = edge->ts_ns;
    cpu->holder = row_table_number(&states->threads, thread);
    cpu_changed(states, cpu);
}

static void
leaves(struct thread_states *states, struct thread_times *thread, struct thread_cpu *cpu,
       const struct duration_edge *edge)
{
    end_run(states, thread, edge->ts_ns);
    if (thread->state == THREAD_UNKNOWN) ran_before(states, thread, cpu, edge->ts_ns);
    else if (thread->state != THREAD_RUNNING) fault(states, edge, THREAD_FAULT_DOES_NOT_RUN, edge->row, cpu->number);
    if (cpu->holder == row_table_number(&states->threads, thread)) cpu_release(states, cpu);
    if (cpu->holder == NO_HOLDER) cpu->free_ns = cpu->last_ns;
    stop_waiting(states, thread, edge->ts_ns);
    thread->out_ns = edge->ts_ns;
    thread->woken_ns = INT64_MIN;
    thread->out_blocked = edge->sched == SCHED_BLOCKS;
    if (edge->sched == SCHED_YIELDS) start_waiting(states, thread, cpu, edge->ts_ns);
    else enter(states, thread, edge->sched == SCHED_ENDS ? THREAD_DEAD : THREAD_BLOCKED, edge->ts_ns);
}

void
thread_states_sched(struct thread_states *states, const struct duration_edge *edge)
{
    struct thread_times *thread = thread_of(states, edge);
    struct thread_cpu *cpu = cpu_of(states, edge);
    if (thread == NULL || cpu == NULL) return;
    if (thread->state != THREAD_UNKNOWN && edge->ts_ns < thread->since_ns && edge->sched != SCHED_WOKEN) {
        states->too_late++;
        return;
    }
    thread->process = edge->process;
    bool waits = thread->state == THREAD_WAITING;
    if (!waits) thread->cpu = row_table_number(&states->cpus, cpu);
    cpu_advance(states, cpu, edge->ts_ns);
    switch (edge->sched) {
      case SCHED_NONE: return;
      case SCHED_RUNS: runs(states, thread, cpu, edge); break;
      case SCHED_WOKEN:
        if (waits || thread->state == THREAD_RUNNING) return; /* it does not sleep */
        thread->woken_ns = edge->ts_ns;
        thread->waker = edge->waker;
        start_waiting(states, thread, cpu, edge->ts_ns);
        thread->waker = UINT32_MAX;
        return;
      case SCHED_YIELDS:
      case SCHED_BLOCKS:
      case SCHED_ENDS: leaves(states, thread, cpu, edge); break;
    }
    if (thread->state != THREAD_WAITING) thread->cpu = row_table_number(&states->cpus, cpu);
}

void
thread_states_gc(struct thread_states *states, const struct duration_edge *edge, bool begins)
{
    struct thread_times *thread = thread_of(states, edge);
    if (thread == NULL || thread->in_gc == begins) return;
    if (thread->state == THREAD_UNKNOWN) {
        if (!begins) thread->unknown_gc_ns += thread_states_within(states, thread->since_ns, edge->ts_ns);
        thread->since_ns = edge->ts_ns;
    }
    else if (thread->state == THREAD_RUNNING) {
        cpu_advance(states, cpu_at(states, thread->cpu), edge->ts_ns);
        account(states, thread, edge->ts_ns);
    }
    thread->in_gc = begins;
}

/* Where what is open of a process ends, in the part of the file that is being read. */
static int64_t
last_ns_of(struct thread_states *states, uint32_t process)
{
    const struct older_part *older = states->older.count > 0 ? row_table_find(&states->older, &process) : NULL;
    return older != NULL ? older->end_ns : states->visitor.last_ns(states->visitor.context, process);
}

int64_t
thread_states_end_ns(struct thread_states *states, uint32_t row, uint32_t process)
{
    const struct thread_times *thread = row_table_find(&states->threads, &row);
    bool older = states->older.count > 0 && row_table_find(&states->older, &process) != NULL;
    if (older && thread != NULL && thread->newer_ns != INT64_MAX) return thread->newer_ns;
    if (older && thread != NULL) return states->visitor.last_ns(states->visitor.context, process);
    if (!states->stopped) return last_ns_of(states, process);
    int64_t seen_ns = states->visitor.seen_ns(states->visitor.context, row), ractor_ns = INT64_MIN;
    if (thread != NULL && thread->state != THREAD_UNKNOWN) ractor_ns = cpu_at(states, thread->cpu)->last_ns;
    return seen_ns > ractor_ns ? seen_ns : ractor_ns;
}

static int64_t
end_of(struct thread_states *states, const struct thread_times *thread)
{
    return thread_states_end_ns(states, thread->row, thread->process);
}

struct interval
thread_states_blocked(struct thread_states *states, const struct duration_edge *begin,
                      const struct duration_edge *end, int64_t last_ns)
{
    int64_t from_ns = begin->ts_ns, to_ns = end != NULL ? end->ts_ns : last_ns;
    const struct thread_times *thread = row_table_find(&states->threads, &begin->row);
    if (thread == NULL || thread->out_ns == INT64_MAX) {
        fault(states, begin, THREAD_FAULT_NEVER_BLOCKED, begin->row, 0);
        return (struct interval){from_ns, to_ns};
    }
    if (end == NULL && states->stopped) to_ns = end_of(states, thread);
    if (from_ns < thread->counted_ns) from_ns = thread->counted_ns;
    bool ran = thread->state == THREAD_RUNNING && thread->in_ns < to_ns;
    if (!thread->out_blocked || thread->out_ns > begin->ts_ns || ran)
        fault(states, begin, THREAD_FAULT_NOT_BLOCKED, begin->row, 0);
    else if (thread->woken_ns >= begin->ts_ns && thread->woken_ns < to_ns) to_ns = thread->woken_ns;
    return (struct interval){from_ns, to_ns};
}

static void
end_cpu(struct thread_states *states, struct thread_cpu *cpu)
{
    if (!cpu->begun) return;
    if (cpu->newer_ns != 0) cpu_advance(states, cpu, cpu->newer_ns);
    else if (!states->stopped) cpu_advance(states, cpu, last_ns_of(states, cpu->process));
    else if (cpu->holder != NO_HOLDER) cpu_advance(states, cpu, end_of(states, thread_at(states, cpu->holder)));
    cpu_release(states, cpu);
    cpu->waiting = 0;
    cpu->begun = false;
}

/* Ends the states of a thread. What comes next begins anew. */
static void
end_thread(struct thread_states *states, struct thread_times *thread)
{
    if (thread->state != THREAD_UNKNOWN && thread->state != THREAD_DEAD) {
        int64_t last_ns = end_of(states, thread);
        end_run(states, thread, last_ns);
        account(states, thread, last_ns);
    }
    thread->state = THREAD_UNKNOWN;
    thread->in_gc = false;
    thread->out_ns = INT64_MAX;
    thread->woken_ns = INT64_MIN;
    thread->unknown_gc_ns = 0;
}

void
thread_states_begin_older(struct thread_states *states, uint32_t process, int64_t newer_ns)
{
    for (uint32_t i = 0; i < states->current_cpus.count; i++) {
        struct thread_cpu *cpu = cpu_at(states, states->current_cpus.rows[i]);
        if (cpu->process != process) continue;
        end_cpu(states, cpu);
        cpu->newer_ns = cpu->part_ns;
    }
    for (uint32_t i = 0; i < states->current_threads.count; i++) {
        struct thread_times *thread = thread_at(states, states->current_threads.rows[i]);
        if (thread->process != process) continue;
        if (thread->state != THREAD_UNKNOWN) end_thread(states, thread);
        thread->newer_ns = thread->part_ns;
    }
    struct older_part *older = row_table_get(&states->older, &process);
    if (older != NULL) older->end_ns = newer_ns;
}

void
thread_states_file_end(struct thread_states *states)
{
    for (uint32_t i = 0; i < states->current_cpus.count; i++) {
        struct thread_cpu *cpu = cpu_at(states, states->current_cpus.rows[i]);
        end_cpu(states, cpu);
        cpu->newer_ns = 0;
    }
    for (uint32_t i = 0; i < states->current_threads.count; i++) {
        struct thread_times *thread = thread_at(states, states->current_threads.rows[i]);
        end_thread(states, thread);
        thread->counted_ns = thread->latest_ns;
        thread->part_ns = thread->newer_ns = INT64_MAX;
        thread->current = false;
    }
    states->current_cpus.count = states->current_threads.count = 0;
    row_table_free(&states->older);
}
