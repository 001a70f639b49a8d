/*
 * Fibers that wait: what a switch between two writes.
 */
#include "harness.h"
#include "traced.h"
#include "vm_trace/base/fiber_tracks.h"
#include "vm_trace/streams/fibers/fibers.h"

static struct rb_execution_context_struct loop_fiber = { .ractor = &main_ractor, .tid = 1002, .thread_name = "loop" };
static struct rb_execution_context_struct task = { .ractor = &main_ractor, .tid = 1003, .thread_name = "task" };
static const struct fake_method pop = { "Thread::Queue", "pop" }, block = { "Turns", "block" };
static const struct fake_method yield = { "Fiber", "yield" };

#define LONG_NS UINT64_C(2000000000)
#define SHORT_NS UINT64_C(1000)

static void
start_with(const char *option)
{
    static struct rb_iseq_struct loop;
    skip_without_ticks();
    loop = fake_iseq("loop", "app.rb");
    assert_true(rb_vm_trace_parse_vm_option(option));
    start_traced(.exit_rate = 1);
    fake_push(&loop_fiber, &loop, 3);
    fake_push(&task, &loop, 7);
    stop_clock();
}

static void
go(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to)
{
    fake_current(to);
    rb_vm_trace_fiber_switched(from, to);
}

static struct trace *
finish(void)
{
    fake_current(&main_thread);
    fake_free_stack(&loop_fiber);
    fake_free_stack(&task);
    return finish_traced();
}

/* loop_fiber lets the task run for `ran_ns`, which then waits for `waited_ns`. */
static void
turn(uint64_t ran_ns, uint64_t waited_ns)
{
    go(&loop_fiber, &task);
    pass(ran_ns);
    go(&task, &loop_fiber);
    pass(waited_ns);
}

static void
a_wait_says_where_and_what_came_before(void **state)
{
    (void)state;
    start_with("vm-trace=fibers");
    fake_push_cfunc(&task, &pop);
    fake_push_cfunc(&task, &block);
    fake_push_cfunc(&task, &yield);
    fake_host.in_scheduler = &task;
    fake_host.scheduler_frames = 2;
    go(&loop_fiber, &task);
    pass(5000000);
    go(&task, &loop_fiber);
    pass(LONG_NS);
    rb_vm_trace_fiber_ready((uintptr_t)&task);
    pass(300000);
    go(&loop_fiber, &task);
    struct trace *trace = finish();
    const struct trace_event *wait = trace_event(trace, "fiber", "Thread::Queue#pop", 0);
    assert_non_null(wait);
    assert_int_equal(wait->tid, 1003);
    assert_int_equal(wait->id - wait->ns, LONG_NS + 300000);
    assert_string_equal(trace_text(wait, "scheduler"), "Turns#block");
    assert_string_equal(trace_text(wait, "0"), "Fiber#yield (app.rb:7)");
    assert_string_equal(trace_text(wait, "2"), "Thread::Queue#pop (app.rb:7)");
    assert_int_equal(trace_number(wait, "waker"), 1002);
    assert_int_equal(trace_number(wait, "ran_ns"), 5000000);
    assert_int_equal(trace_number(wait, "ready_ns"), 300000);
    /* The loop waited while the task ran. */
    const struct trace_event *loop = trace_event(trace, "fiber", "loop", 0);
    assert_int_equal(loop->tid, 1002);
    assert_int_equal(loop->id - loop->ns, 5000000);
    assert_int_equal(trace_count(trace, "fiber", NULL), 2);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "fiber_waits"), 2);
    trace_free(trace);
}

static void
short_waits_are_counted_unless_the_run_before_was_long(void **state)
{
    (void)state;
    start_with("vm-trace=fibers:min=1s"); /* the loop's first run began with the trace */
    turn(SHORT_NS, SHORT_NS);
    turn(LONG_NS, SHORT_NS);
    go(&loop_fiber, &task);
    struct trace *trace = finish();
    const struct trace_event *summary = trace_event(trace, "trace", "summary", 0);
    assert_int_equal(trace_event(trace, "fiber", NULL, 0)->tid, 1002); /* the loop's, while the task ran long */
    assert_int_equal(trace_event(trace, "fiber", NULL, 1)->tid, 1003);
    assert_int_equal(trace_number(summary, "fiber_waits"), 2);
    assert_int_equal(trace_number(summary, "fiber_waits_left_out"), 2);
    assert_int_equal(trace_number(trace_event(trace, "trace", "settings", 0), "fibers_min_ns"), 1000000000);
    trace_free(trace);
}

static void
threads_without_a_scheduler_can_be_left_out(void **state)
{
    (void)state;
    start_with("vm-trace=fibers:scheduler:min=0ns");
    turn(LONG_NS, LONG_NS); /* none has one */
    fake_host.in_scheduler = &task;
    turn(LONG_NS, LONG_NS);
    go(&loop_fiber, &task);
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "fiber", NULL), 1);
    assert_int_equal(trace_event(trace, "fiber", NULL, 0)->tid, 1003);
    assert_int_equal(trace_number(trace_event(trace, "trace", "settings", 0), "fibers_of_schedulers"), 1);
    trace_free(trace);
}

static void
a_fiber_that_has_ended_resumes_nobody(void **state)
{
    (void)state;
    start_with("vm-trace=fibers");
    go(&loop_fiber, &task);
    pass(LONG_NS);
    fake_free_stack(&task);
    go(&task, &loop_fiber);
    struct trace *trace = finish();
    const struct trace_event *wait = trace_event(trace, "fiber", "loop", 0);
    assert_null(trace_argument(wait, "waker"));
    assert_null(trace_argument(wait, "scheduler"));
    assert_int_equal(trace_count(trace, "fiber", NULL), 1);
    trace_free(trace);
}

/* What is known of fibers outlives a trace, as it does when the flight recorder begins anew. */
static void
what_began_before_the_trace_begins_with_it(void **state)
{
    (void)state;
    start_with("vm-trace=fibers");
    uint32_t track = rb_vm_trace_host_fiber_track(&task);
    rb_vm_trace_fiber_switch(track, 1);
    rb_vm_trace_fiber_switch(track, LONG_NS);
    go(&loop_fiber, &task);
    struct trace *trace = finish();
    const struct trace_event *wait = trace_event(trace, "fiber", NULL, 0);
    assert_int_equal(wait->tid, 1003);
    assert_true(wait->ns >= trace_event(trace, "trace", "settings", 0)->ns);
    assert_null(trace_argument(wait, "ran_ns"));
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(a_wait_says_where_and_what_came_before),
        isolated_test(short_waits_are_counted_unless_the_run_before_was_long),
        isolated_test(threads_without_a_scheduler_can_be_left_out),
        isolated_test(a_fiber_that_has_ended_resumes_nobody),
        isolated_test(what_began_before_the_trace_begins_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
