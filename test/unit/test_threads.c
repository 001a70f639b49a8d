/*
 * States of threads: what the hooks write.
 */
#include "harness.h"
#include "traced.h"
#include "vm_trace/session/session.h"
#include "vm_trace/streams/threads/thread_records.h"
#include "vm_trace/streams/threads/threads.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What rb_thread_t reserves. */
struct memory {
    _Alignas(8) char bytes[RB_VM_TRACE_THREAD_BYTES];
};

static struct rb_vm_trace_thread *
thread_of(struct memory *memory)
{
    return (struct rb_vm_trace_thread *)memory;
}

static struct memory main_memory, worker_memory;
static struct rb_execution_context_struct worker = { &main_ractor, 1002, "worker", 2, NULL, 0, 0 };
static const struct fake_method pop = { "Thread::Queue", "pop" };

static void
start_with(const char *option)
{
    static struct rb_iseq_struct loop;
    loop = fake_iseq("loop", "app.rb");
    assert_true(rb_vm_trace_parse_vm_option(option));
    start_traced(.exit_rate = 1);
    assert_int_equal(rb_vm_trace_threads_on, 1);
    fake_push(&worker, &loop, 7);
    fake_push_cfunc(&worker, &pop);
}

static void
start_threads(void)
{
    start_with("vm-trace=threads");
}

static struct trace *
finish(void)
{
    fake_free_stack(&worker);
    return finish_traced();
}

static void
suspend(struct rb_execution_context_struct *ec, struct memory *memory, enum rb_vm_trace_suspension why)
{
    rb_vm_trace_thread_suspending(ec, thread_of(memory), why);
    rb_vm_trace_thread_suspended(ec, thread_of(memory), why);
}

static void
block(struct rb_execution_context_struct *ec, struct memory *memory)
{
    fake_current(ec);
    suspend(ec, memory, RB_VM_TRACE_BLOCKED);
}

static void
assert_switch(const struct trace *trace, size_t at, uint64_t outgoing, unsigned state, uint64_t incoming)
{
    assert_true(at < trace->scheduling_count);
    const struct trace_scheduling *scheduling = &trace->schedulings[at];
    assert_false(scheduling->wakeup);
    assert_int_equal(scheduling->outgoing, outgoing);
    assert_int_equal(scheduling->incoming, incoming);
    if (outgoing) assert_int_equal(scheduling->state, state);
    assert_int_equal(scheduling->cpu, 0);
}

static void
assert_wakeup(const struct trace *trace, size_t at, uint64_t woken, uint64_t waker)
{
    assert_true(at < trace->scheduling_count);
    assert_true(trace->schedulings[at].wakeup);
    assert_int_equal(trace->schedulings[at].outgoing, woken);
    assert_int_equal(trace->schedulings[at].incoming, waker);
}

static void
a_thread_that_blocks_and_is_woken(void **state)
{
    (void)state;
    start_threads();
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    rb_vm_trace_thread_blocks_in(thread_of(&worker_memory), NULL, 5);
    block(&worker, &worker_memory);
    fake_current(&main_thread);
    rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 4);
    assert_switch(trace, 0, 0, 0, 1002);
    assert_switch(trace, 1, 1002, 3, 0);
    assert_wakeup(trace, 2, 1002, 1001);
    assert_switch(trace, 3, 0, 0, 1002);
    for (size_t i = 1; i < 4; i++) assert_true(trace->schedulings[i].ns > trace->schedulings[i - 1].ns);

    const struct trace_event *begin = trace_event(trace, "blocked", NULL, 0), *end = trace_event(trace, "blocked", NULL, 1);
    assert_string_equal(begin->name, "Thread::Queue#pop");
    assert_int_equal(begin->type, EVENT_BEGIN);
    assert_int_equal(begin->tid, 1002);
    assert_int_equal(begin->argument_count, 2);
    assert_string_equal(trace_text(begin, "0"), "Thread::Queue#pop (app.rb:7)");
    assert_int_equal(trace_number(begin, "fd"), 5);
    assert_int_equal(end->type, EVENT_END);
    assert_true(begin->ns == trace->schedulings[1].ns && end->ns == trace->schedulings[2].ns);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "suspensions"), 1);
    trace_free(trace);
}

/* Another CPU's clock may be ahead. */
static void
a_thread_runs_no_later_for_the_clock_of_its_waker(void **state)
{
    (void)state;
    enum { AHEAD = 1 << 30 };
    start_threads();
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    block(&worker, &worker_memory);
    fake_current(&main_thread);
    rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
    thread_of(&worker_memory)->ready_stamp += AHEAD;
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    uint64_t now_ns = clock_now_ns(&main_ractor.vm_trace->clock);
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 4);
    assert_wakeup(trace, 2, 1002, 1001);
    assert_switch(trace, 3, 0, 0, 1002);
    for (size_t i = 1; i < 4; i++) assert_true(trace->schedulings[i].ns > trace->schedulings[i - 1].ns);
    assert_true(trace->schedulings[3].ns <= now_ns);
    trace_free(trace);
}

static void
a_thread_whose_time_slice_ends_still_wants_to_run(void **state)
{
    (void)state;
    start_threads();
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    suspend(&worker, &worker_memory, RB_VM_TRACE_PREEMPTED);
    rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    suspend(&worker, &worker_memory, RB_VM_TRACE_DEAD);
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 4);
    assert_switch(trace, 1, 1002, 1, 0);
    assert_switch(trace, 2, 0, 0, 1002);
    assert_switch(trace, 3, 1002, 5, 0);
    assert_int_equal(trace->open_spans, 0);
    trace_free(trace);
}

/* What it was in when its time slice ended, if it had one for long enough. */
static void
a_preempted_thread_says_where_it_was(void **state)
{
    (void)state;
    start_with("vm-trace=threads:min=200ms");
    bool stopped = CLOCK_HAS_TICKS;
    if (stopped) stop_clock(); /* however long the system keeps this process waiting */
    fake_current(&worker);
    rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    for (int i = 0; i < 2; i++) {
        if (i == 1 && stopped) pass(210000000);
        else if (i == 1) usleep(210000);
        suspend(&worker, &worker_memory, RB_VM_TRACE_PREEMPTED);
        rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
        rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    }
    struct trace *trace = finish();
    const struct trace_event *event = trace_event(trace, "preempted", NULL, 0);
    assert_string_equal(event->name, "Thread::Queue#pop");
    assert_int_equal(event->type, EVENT_INSTANT);
    assert_string_equal(trace_text(event, "1"), "loop (app.rb:7)");
    assert_int_equal(trace_count(trace, "preempted", NULL), 1);
    trace_free(trace);
}

/* It ran when the trace began, so it held the GVL from then on. */
static void
a_thread_that_ran_before_is_seen_from_the_beginning(void **state)
{
    (void)state;
    start_threads();
    block(&worker, &worker_memory);
    fake_current(NULL); /* a thread without Ruby wakes it */
    rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    uint64_t begin_ns = rb_vm_trace_capture.begin_ns;
    struct trace *trace = finish();
    assert_switch(trace, 0, 0, 0, 1002);
    assert_true(trace->schedulings[0].ns == begin_ns);
    assert_switch(trace, 1, 1002, 3, 0);
    assert_wakeup(trace, 2, 1002, 0);
    trace_free(trace);
}

/* Its switch from the GVL is in no trace, so its end is in none. */
static void
a_thread_that_blocked_before_the_trace_has_no_end_of_it(void **state)
{
    (void)state;
    start_threads();
    fake_current(&main_thread);
    rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 2);
    assert_wakeup(trace, 0, 1002, 1001);
    assert_switch(trace, 1, 0, 0, 1002);
    assert_int_equal(trace->open_spans, 0);
    trace_free(trace);
}

/* Both records of a suspension, or none: they are in one chunk. */
static void
suspensions_over_many_chunks_are_whole(void **state)
{
    (void)state;
    rb_vm_trace_writer_run_chunks = 1;
    enum { TIMES = 30000 };
    start_threads();
    for (int i = 0; i < TIMES; i++) {
        block(&worker, &worker_memory);
        rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
        rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    }
    struct trace *trace = finish();
    assert_in_range(trace->chunk_count, 3, 5);
    assert_int_equal(trace->scheduling_count, 1 + 3 * TIMES);
    assert_int_equal(trace->open_spans, 0);
    for (size_t i = 0; i < TIMES; i++) assert_switch(trace, 1 + 3 * i, 1002, 3, 0);
    trace_free(trace);
}

/* What is written again and again has what is its own: thread, method, descriptor, waker. */
static void
repeated_suspensions_keep_what_differs(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    size_t names = 0;
    unsetenv("VM_TRACE"); /* its check says that two threads of a ractor run at once: here they do */
    start_threads();
    fake_push_cfunc(&main_thread, &(struct fake_method){ "IO", "read" });
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    for (int i = 0; i < ROUNDS; i++) {
        bool of_main = i % 2;
        struct rb_execution_context_struct *ec = of_main ? &main_thread : &worker;
        struct memory *memory = of_main ? &main_memory : &worker_memory;
        int fd = i / 4 % 3 - 1;
        rb_vm_trace_thread_blocks_in(thread_of(memory), NULL, fd);
        block(ec, memory);
        if (i == 11) assert_int_equal(fake_host.thread_names, names + 1);
        fake_current(i % 3 == 0 ? NULL : i % 3 == 1 ? &worker : &main_thread);
        rb_vm_trace_thread_ready(ec, thread_of(memory));
        fake_current(ec);
        rb_vm_trace_thread_resumed(ec, thread_of(memory));
        if (i != 10) continue;
        /* Their names are written again, though 11 is as 9 was. */
        rb_vm_trace_thread_renamed();
        names = fake_host.thread_names;
    }
    fake_pop(&main_thread, 1);
    struct trace *trace = finish();
    for (int i = 0; i < ROUNDS; i++) {
        bool of_main = i % 2;
        uint64_t tid = of_main ? 1001 : 1002;
        const struct trace_event *begin = trace_event(trace, "blocked", NULL, (size_t)i * 2);
        const struct trace_event *end = trace_event(trace, "blocked", NULL, (size_t)i * 2 + 1);
        assert_int_equal(begin->type, EVENT_BEGIN);
        assert_int_equal(begin->tid, tid);
        assert_string_equal(begin->name, of_main ? "IO#read" : "Thread::Queue#pop");
        int fd = i / 4 % 3 - 1;
        assert_int_equal(begin->argument_count, fd < 0 ? 1 : 2);
        if (fd >= 0) assert_int_equal(trace_number(begin, "fd"), fd);
        assert_int_equal(end->type, EVENT_END);
        assert_int_equal(end->tid, tid);
        assert_string_equal(end->name, begin->name);

        /* The first suspension of each begins with a switch to it: it ran before. */
        size_t at = i == 0 ? 1 : 2 + (size_t)i * 3;
        assert_switch(trace, at, tid, 3, 0);
        assert_true(trace->schedulings[at].ns == begin->ns);
        uint64_t waker = i % 3 == 0 ? 0 : i % 3 == 1 ? 1002 : 1001;
        assert_wakeup(trace, at + 1, tid, waker == tid ? 0 : waker);
        assert_true(trace->schedulings[at + 1].ns == end->ns);
        assert_switch(trace, at + 2, 0, 0, tid);
        assert_true(trace->schedulings[at + 2].ns > end->ns);
    }
    trace_free(trace);
}

/* Then it ran from the moment on that it was runnable: the clock is not read again. */
static void
a_thread_that_finds_the_gvl_free_runs_at_once(void **state)
{
    (void)state;
    enum { ROUNDS = 30 };
    start_threads();
    fake_host.gvl_free = true;
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    for (int i = 0; i < ROUNDS; i++) {
        block(&worker, &worker_memory);
        usleep(200);
        rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
        usleep(200);
        rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    }
    fake_host.gvl_free = false;
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 1 + 3 * ROUNDS);
    size_t at_once = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        const struct trace_scheduling *switched = &trace->schedulings[1 + 3 * i];
        assert_true(switched[1].ns >= switched->ns + 200000);
        assert_true(switched[2].ns > switched[1].ns);
        at_once += switched[2].ns == switched[1].ns + 1;
    }
    if (rb_vm_trace_clock_ticks_p()) assert_true(at_once > 0);
    trace_free(trace);
}

static void
each_ractor_is_a_cpu_and_numbers_are_used_again(void **state)
{
    (void)state;
    start_threads();
    for (int i = 0; i < 3; i++) {
        struct rb_ractor_struct ractor = { { 0 }, NULL, NULL };
        struct rb_execution_context_struct other = { &ractor, 2000 + (uint32_t)i, "other", 3, NULL, 0, 0 };
        struct memory memory = { { 0 } };
        fake_ractor_add(&ractor);
        ractor.vm_trace = rb_vm_trace_ractor_new();
        fake_current(&other);
        rb_vm_trace_thread_resumed(&other, thread_of(&memory));
        if (i < 2) {
            rb_vm_trace_ractor_free(ractor.vm_trace);
            ractor.vm_trace = NULL;
        }
        else {
            block(&main_thread, &main_memory);
            fake_current(&other);
            suspend(&other, &memory, RB_VM_TRACE_DEAD);
        }
        if (i == 2) rb_vm_trace_ractor_free(ractor.vm_trace);
        ractor.vm_trace = NULL;
        fake_ractor_remove(&ractor);
        fake_current(&main_thread);
    }
    struct trace *trace = finish();
    for (size_t i = 0; i < trace->scheduling_count; i++) {
        const struct trace_scheduling *scheduling = &trace->schedulings[i];
        bool of_main = scheduling->outgoing == 1001 || scheduling->incoming == 1001;
        assert_int_equal(scheduling->cpu, of_main ? 0 : 1);
    }
    trace_free(trace);
}

/*
 * Each record of a thread of its own ractor. One that has run since the trace began says so when it
 * blocks, and another ractor may have ended before that.
 */
static void
a_number_is_used_again_only_after_its_last_record(void **state)
{
    (void)state;
    enum { ENDS = 2000, RUNS_ON, BEGINS, RACTORS = 3 };
    static const uint32_t cpus[RACTORS] = { 1, 2, 1 };
    struct rb_ractor_struct ractors[RACTORS] = { { { 0 }, NULL, NULL } };
    struct rb_execution_context_struct contexts[RACTORS];
    struct memory memories[RACTORS] = { { { 0 } } };
    start_threads();
    for (uint32_t i = 0; i < RACTORS; i++) {
        contexts[i] = (struct rb_execution_context_struct){ &ractors[i], ENDS + i, "other", 3, NULL, 0, 0 };
        fake_ractor_add(&ractors[i]);
        if (ENDS + i != BEGINS) ractors[i].vm_trace = rb_vm_trace_ractor_new();
    }
    for (uint32_t i = 0; i < RACTORS; i++) {
        fake_current(&main_thread);
        if (!ractors[i].vm_trace) {
            ractors[i].vm_trace = rb_vm_trace_ractor_new();
            rb_vm_trace_thread_ready(&contexts[i], thread_of(&memories[i]));
        }
        fake_current(&contexts[i]);
        rb_vm_trace_thread_resumed(&contexts[i], thread_of(&memories[i]));
        suspend(&contexts[i], &memories[i], ENDS + i == RUNS_ON ? RB_VM_TRACE_BLOCKED : RB_VM_TRACE_DEAD);
        if (ENDS + i == RUNS_ON) continue;
        rb_vm_trace_ractor_free(ractors[i].vm_trace);
        ractors[i].vm_trace = NULL;
        fake_ractor_remove(&ractors[i]);
    }
    fake_ractor_remove(&ractors[RUNS_ON - ENDS]);
    rb_vm_trace_ractor_free(ractors[RUNS_ON - ENDS].vm_trace);
    fake_current(&main_thread);
    struct trace *trace = finish();
    uint32_t seen = 0;
    for (size_t i = 0; i < trace->scheduling_count; i++) {
        const struct trace_scheduling *scheduling = &trace->schedulings[i];
        if (scheduling->wakeup || !scheduling->incoming) continue;
        assert_in_range(scheduling->incoming, ENDS, BEGINS);
        assert_int_equal(scheduling->cpu, cpus[scheduling->incoming - ENDS]);
        seen |= 1u << (scheduling->incoming - ENDS);
    }
    assert_int_equal(seen, (1 << RACTORS) - 1);
    trace_free(trace);
}

/* A barrier that the main thread makes while the worker runs, or is about to block. */
static void
stop_worker(void)
{
    fake_current(&worker);
    rb_vm_trace_barrier_joined(&worker, thread_of(&worker_memory));
    fake_current(&main_thread);
    rb_vm_trace_barrier_complete(thread_of(&worker_memory));
    usleep(2000); /* long enough for callers, if it were another block */
    fake_current(&worker);
    rb_vm_trace_barrier_left(&worker, thread_of(&worker_memory));
}

static void
a_thread_stops_for_the_barrier_of_another(void **state)
{
    (void)state;
    start_threads();
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    stop_worker();
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 4);
    assert_switch(trace, 0, 0, 0, 1002);
    assert_switch(trace, 1, 1002, 3, 0);
    assert_wakeup(trace, 2, 1002, 1001);
    assert_switch(trace, 3, 0, 0, 1002);
    assert_true(trace->schedulings[2].ns >= trace->schedulings[1].ns + 2000000);
    assert_true(trace->schedulings[3].ns == trace->schedulings[2].ns + 1); /* it never waits for the GVL */
    const struct trace_event *begin = trace_event(trace, "blocked", "barrier", 0);
    const struct trace_event *end = trace_event(trace, "blocked", "barrier", 1);
    assert_int_equal(begin->type, EVENT_BEGIN);
    assert_int_equal(begin->tid, 1002);
    assert_int_equal(begin->argument_count, 0);
    assert_int_equal(end->type, EVENT_END);
    assert_int_equal(end->argument_count, 0);
    assert_true(begin->ns == trace->schedulings[1].ns && end->ns == trace->schedulings[2].ns);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "suspensions"), 1);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "suspensions_without_callers"), 0);
    trace_free(trace);
}

/* The VM's lock is taken after the thread has said what it is about to block in. */
static void
a_barrier_on_the_way_to_a_block_does_not_change_it(void **state)
{
    (void)state;
    enum { ROUNDS = 3 }; /* from the second one on, blocks have a template */
    start_threads();
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    for (int i = 0; i < ROUNDS; i++) {
        fake_current(&worker);
        rb_vm_trace_thread_blocks_in(thread_of(&worker_memory), NULL, 5);
        rb_vm_trace_thread_suspending(&worker, thread_of(&worker_memory), RB_VM_TRACE_BLOCKED);
        stop_worker(); /* which ends what it was about to do: it is written when the worker runs on */
        rb_vm_trace_thread_suspended(&worker, thread_of(&worker_memory), RB_VM_TRACE_BLOCKED);
        rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
        rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    }
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 1 + 9 * ROUNDS);
    assert_int_equal(trace_count(trace, "blocked", "barrier"), 2 * ROUNDS);
    assert_int_equal(trace_count(trace, "blocked", "Thread::Queue#pop"), 4 * ROUNDS);
    for (size_t i = 0; i < ROUNDS; i++) {
        const struct trace_event *late = trace_event(trace, "blocked", "Thread::Queue#pop", 4 * i + 2);
        assert_string_equal(trace_text(late, "0"), "Thread::Queue#pop (app.rb:7)");
        assert_int_equal(trace_number(late, "fd"), 5);
        const struct trace_event *begin = trace_event(trace, "blocked", "Thread::Queue#pop", 4 * i);
        assert_string_equal(trace_text(begin, "0"), "Thread::Queue#pop (app.rb:7)");
        assert_int_equal(trace_number(begin, "fd"), 5);
        assert_int_equal(trace_event(trace, "blocked", "barrier", 2 * i)->argument_count, 0);
    }
    trace_free(trace);
}

/* A time slice goes on after a barrier: where it ends is recorded if all of it is long enough. */
static void
a_barrier_does_not_begin_a_time_slice(void **state)
{
    (void)state;
    start_with("vm-trace=threads:min=2ms");
    fake_current(&worker);
    rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    stop_worker();
    suspend(&worker, &worker_memory, RB_VM_TRACE_PREEMPTED);
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "preempted", "Thread::Queue#pop"), 1);
    trace_free(trace);
}

/* A thread without the GVL may take the VM's lock, too: it is blocked already, and may not write. */
static void
a_thread_without_the_gvl_does_not_stop_again(void **state)
{
    (void)state;
    start_threads();
    block(&worker, &worker_memory);
    fake_host.without_gvl = &worker;
    stop_worker();
    struct memory other = { { 0 } }; /* of a thread that blocked before the trace */
    rb_vm_trace_barrier_joined(&worker, thread_of(&other));
    rb_vm_trace_barrier_left(&worker, thread_of(&other));
    fake_host.without_gvl = NULL;
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 2);
    assert_int_equal(trace_count(trace, "blocked", "barrier"), 0);
    trace_free(trace);
}

/* It has the GVL, but has not said so yet. */
static void
a_thread_that_has_just_got_the_gvl_stops(void **state)
{
    (void)state;
    start_threads();
    for (int i = 0; i < 2; i++) {
        fake_current(&main_thread);
        rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
        stop_worker();
        rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
        block(&worker, &worker_memory);
    }
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 2 * 6);
    for (size_t i = 0; i < 2; i++) {
        size_t at = 6 * i;
        assert_wakeup(trace, at, 1002, 1001);
        assert_switch(trace, at + 1, 0, 0, 1002);
        assert_switch(trace, at + 2, 1002, 3, 0);
        assert_wakeup(trace, at + 3, 1002, 1001);
        assert_switch(trace, at + 4, 0, 0, 1002);
        assert_switch(trace, at + 5, 1002, 3, 0);
    }
    assert_int_equal(trace_count(trace, "blocked", "barrier"), 4);
    trace_free(trace);
}

/* Whoever makes the barrier may start or stop the trace. */
static void
a_trace_begins_and_ends_in_barriers(void **state)
{
    (void)state;
    start_threads();
    fake_current(&worker);
    rb_vm_trace_barrier_left(&worker, thread_of(&worker_memory)); /* it stopped before */
    rb_vm_trace_barrier_complete(thread_of(&worker_memory));
    rb_vm_trace_barrier_joined(&worker, thread_of(&worker_memory));
    fake_current(&main_thread);
    struct trace *trace = finish();
    fake_current(&worker);
    rb_vm_trace_barrier_left(&worker, thread_of(&worker_memory));
    fake_current(&main_thread);
    assert_int_equal(trace->scheduling_count, 2);
    assert_switch(trace, 1, 1002, 3, 0);
    assert_int_equal(trace_count(trace, "blocked", "barrier"), 1);
    trace_free(trace);
}

/* While a clock stands still, what follows a suspension is given the next ns. */
static void
the_summary_is_later_than_all_events_where_a_clock_stands_still(void **state)
{
    (void)state;
    start_threads();
    fake_current(&worker);
    main_ractor.vm_trace->clock =
        (struct vm_trace_clock){ .anchor_ns = rb_vm_trace_clock_system_ns() + UINT64_C(1000000000) };
    for (unsigned i = 0; i < 3; i++) {
        rb_vm_trace_barrier_joined(&worker, thread_of(&worker_memory));
        rb_vm_trace_barrier_left(&worker, thread_of(&worker_memory));
    }
    fake_current(&main_thread);
    struct trace *trace = finish();
    uint64_t summary_ns = trace_event(trace, "trace", "summary", 0)->ns;
    for (size_t i = 0; i < trace->event_count; i++) {
        if (strcmp(trace->events[i].name, "summary") != 0) assert_true(trace->events[i].ns < summary_ns);
    }
    for (size_t i = 0; i < trace->scheduling_count; i++) assert_true(trace->schedulings[i].ns < summary_ns);
    trace_free(trace);
}

/* One that gives up the GVL without having said so: what it stored is written by the next one that has the GVL. */
static void
a_suspension_that_was_not_announced_is_written_late(void **state)
{
    (void)state;
    start_threads();
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    rb_vm_trace_thread_suspended(&worker, thread_of(&worker_memory), RB_VM_TRACE_PREEMPTED);
    uint64_t then_ns = clock_now_ns(&main_ractor.vm_trace->clock);
    pass(5000000);
    fake_current(&main_thread);
    rb_vm_trace_thread_ready(&main_thread, thread_of(&main_memory));
    rb_vm_trace_thread_resumed(&main_thread, thread_of(&main_memory));
    suspend(&main_thread, &main_memory, RB_VM_TRACE_PREEMPTED);
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 6);
    assert_switch(trace, 1, 1002, 1, 0);
    assert_switch(trace, 3, 0, 0, 1001);
    assert_switch(trace, 5, 0, 0, 1002);
    assert_true(trace->schedulings[1].ns <= then_ns);
    assert_true(trace->schedulings[2].ns > then_ns);
    trace_free(trace);
}

/* A thread sees that the GVL is free just before the one that let it go notes the time of that. */
static void
a_thread_that_finds_the_gvl_free_runs_after_the_one_before(void **state)
{
    (void)state;
    start_threads();
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    if (rb_vm_trace_clock_ticks_p()) /* only a clock that has been read for a while scales the time of a stamp */
        while (main_ractor.vm_trace->clock.horizon == 0) clock_now_ns(&main_ractor.vm_trace->clock);
    fake_host.gvl_free = true;
    fake_current(&main_thread);
    rb_vm_trace_thread_ready(&main_thread, thread_of(&main_memory));
    fake_current(&worker);
    rb_vm_trace_thread_suspended(&worker, thread_of(&worker_memory), RB_VM_TRACE_BLOCKED);
    fake_current(&main_thread);
    rb_vm_trace_thread_resumed(&main_thread, thread_of(&main_memory));
    struct trace *trace = finish();
    assert_int_equal(trace->scheduling_count, 4);
    assert_switch(trace, 1, 1002, 3, 0);
    assert_switch(trace, 3, 0, 0, 1001);
    assert_true(trace->schedulings[3].ns > trace->schedulings[1].ns);
    trace_free(trace);
}

/* It has the GVL again, and stops for a barrier before it says that it runs on. */
static void
a_late_suspension_comes_before_the_barrier_after_it(void **state)
{
    (void)state;
    start_threads();
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    rb_vm_trace_thread_suspended(&worker, thread_of(&worker_memory), RB_VM_TRACE_BLOCKED);
    rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
    pass(1000);
    stop_worker();
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "blocked", "Thread::Queue#pop"), 2);
    assert_int_equal(trace_count(trace, "blocked", "barrier"), 2);
    for (size_t i = 1; i < trace->scheduling_count; i++)
        assert_true(trace->schedulings[i].ns >= trace->schedulings[i - 1].ns);
    assert_int_equal(trace->open_spans, 0);
    trace_free(trace);
}

/* One that was about to wait, and need not: it runs on. */
static void
a_thread_that_need_not_wait_runs_on(void **state)
{
    (void)state;
    start_threads();
    fake_current(&worker);
    rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    for (int i = 0; i < 2; i++) {
        rb_vm_trace_thread_suspending(&worker, thread_of(&worker_memory), RB_VM_TRACE_BLOCKED);
        if (i == 0) rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
    }
    rb_vm_trace_thread_suspending(&worker, thread_of(&worker_memory), RB_VM_TRACE_BLOCKED); /* without a word between */
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "blocked", NULL), 5);
    assert_int_equal(trace->open_spans, 1);
    assert_int_equal(trace->scheduling_count, 8); /* each of the two woke itself */
    trace_free(trace);
}

/* From now on the kernel kills this process at each system call but exit. */
static bool
forbid_system_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL)
    };
    struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/*
 * For the lock of a scheduler all threads of a ractor wait. With it, no system call is made (the kernel kills
 * who makes one), and no lock of the tracer is taken (that would never end). Stamps of a clock that has no
 * ticks are system calls, on some systems.
 */
static void
under_the_lock_of_a_scheduler_only_words_are_stored(void **state)
{
    (void)state;
    start_with("vm-trace=threads");
    if (!rb_vm_trace_clock_ticks_p()) skip();
    rb_vm_trace_threads_on |= RB_VM_TRACE_THREADS_SAMPLES;
    pid_t child = fork();
    if (child == 0) {
        fake_current(&worker);
        rb_vm_trace_thread_resumed(&worker, thread_of(&worker_memory));
        rb_vm_trace_thread_suspending(&worker, thread_of(&worker_memory), RB_VM_TRACE_BLOCKED);
        struct memory unannounced = { { 0 } };
        pthread_mutex_lock(&rb_vm_trace_capture.lock);
        pthread_mutex_lock(&rb_vm_trace_capture.file.lock);
        pthread_mutex_lock(&rb_vm_trace_capture.shared.lock);
        alarm(30);
        if (!forbid_system_calls()) _exit(2);
        rb_vm_trace_thread_suspended(&worker, thread_of(&worker_memory), RB_VM_TRACE_BLOCKED);
        rb_vm_trace_thread_suspended(&worker, thread_of(&unannounced), RB_VM_TRACE_PREEMPTED);
        fake_current(&main_thread);
        rb_vm_trace_thread_ready(&worker, thread_of(&worker_memory));
        syscall(SYS_exit, 0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    rb_vm_trace_threads_on &= ~RB_VM_TRACE_THREADS_SAMPLES;
    trace_free(finish());
}

static void
nothing_is_written_when_the_stream_is_off(void **state)
{
    (void)state;
    start_traced(.exit_rate = 1);
    assert_int_equal(rb_vm_trace_threads_on, 0);
    fake_current(&main_thread);
    suspend(&main_thread, &main_memory, RB_VM_TRACE_BLOCKED);
    struct trace *trace = finish_traced();
    assert_int_equal(trace->scheduling_count, 0);
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(a_thread_that_blocks_and_is_woken),
        isolated_test(a_thread_runs_no_later_for_the_clock_of_its_waker),
        isolated_test(a_thread_whose_time_slice_ends_still_wants_to_run),
        isolated_test(a_preempted_thread_says_where_it_was),
        isolated_test(a_thread_that_ran_before_is_seen_from_the_beginning),
        isolated_test(a_thread_that_blocked_before_the_trace_has_no_end_of_it),
        isolated_test(suspensions_over_many_chunks_are_whole),
        isolated_test(repeated_suspensions_keep_what_differs),
        isolated_test(a_thread_that_finds_the_gvl_free_runs_at_once),
        isolated_test(each_ractor_is_a_cpu_and_numbers_are_used_again),
        isolated_test(a_number_is_used_again_only_after_its_last_record),
        isolated_test(a_thread_stops_for_the_barrier_of_another),
        isolated_test(a_barrier_on_the_way_to_a_block_does_not_change_it),
        isolated_test(a_suspension_that_was_not_announced_is_written_late),
        isolated_test(a_thread_that_finds_the_gvl_free_runs_after_the_one_before),
        isolated_test(a_late_suspension_comes_before_the_barrier_after_it),
        isolated_test(a_thread_that_need_not_wait_runs_on),
        isolated_test(under_the_lock_of_a_scheduler_only_words_are_stored),
        isolated_test(a_barrier_does_not_begin_a_time_slice),
        isolated_test(a_thread_without_the_gvl_does_not_stop_again),
        isolated_test(a_thread_that_has_just_got_the_gvl_stops),
        isolated_test(a_trace_begins_and_ends_in_barriers),
        isolated_test(the_summary_is_later_than_all_events_where_a_clock_stands_still),
        isolated_test(nothing_is_written_when_the_stream_is_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
