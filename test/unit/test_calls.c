/*
 * Calls: each one is written when it ends, and they nest, whatever the VM forgets to report. The clock
 * stands still, and tests move it.
 */
#include "harness.h"
#include "traced.h"
#include "vm_trace/capture/method_filter.h"
#include "vm_trace/session/requests.h"
#include "vm_trace/session/session.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/streams/calls/open_calls.h"
#include "vm_trace/vm_trace_jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rb_iseq_struct outer, middle, inner;
static const struct fake_method c_method = { "Array", "sort_by" }, method = { "Foo", "inner" };
static struct rb_execution_context_struct fiber = {
    .ractor = &main_ractor, .tid = 1501, .thread_name = "main fiber 2", .name_id = 3,
};
static struct rb_execution_context_struct *ec = &main_thread;

static void
start_with_clock(const char *streams)
{
    outer = fake_iseq("outer", "app.rb");
    middle = fake_iseq("middle", "app.rb");
    inner = fake_iseq("inner", "app.rb");
    ec = &main_thread;
    start_session_traced(streams);
    assert_int_equal(rb_vm_trace_frames_on, RB_VM_TRACE_FRAMES_CALLS);
}

static void
start(const char *streams)
{
    skip_without_ticks();
    start_with_clock(streams);
    stop_clock();
}

static struct trace *
finish(void)
{
    fake_free_stack(&fiber);
    return finish_traced();
}

static void
call_at_once(const struct rb_iseq_struct *iseq)
{
    fake_push(ec, iseq, 1);
    rb_vm_trace_uncompiled(ec, 1, 30);
}

static void
call(const struct rb_iseq_struct *iseq)
{
    pass(1);
    call_at_once(iseq);
}

static void
call_c(const struct fake_method *called)
{
    pass(1);
    fake_push_cfunc(ec, called);
    rb_vm_trace_frame_begun(ec);
}

/* As the interpreter does it. */
static void
leave(void)
{
    bool watched = ec->frames[ec->frame_count - 1].watched;
    fake_pop(ec, 1);
    if (watched) rb_vm_trace_frame_popped(ec);
}

static const struct trace_event *
call_event(const struct trace *trace, const char *name, size_t nth)
{
    return trace_event(trace, "call", name, nth);
}

static void
assert_call(const struct trace *trace, const char *name, size_t nth, uint64_t took_ns)
{
    const struct trace_event *event = call_event(trace, name, nth);
    assert_int_equal(event->id - event->ns, took_ns);
}

static void
assert_arguments(const struct trace *trace, const char *name, unsigned count)
{
    assert_int_equal(call_event(trace, name, 0)->argument_count, count);
}

#define OUTER "outer (app.rb:1)"
#define MIDDLE "middle (app.rb:1)"
#define INNER "inner (app.rb:1)"

static void
a_call_is_written_with_its_times(void **state)
{
    (void)state;
    start("calls");
    call(&outer);
    pass(100);
    call(&inner);
    pass(1000);
    leave();
    pass(10);
    leave();
    struct trace *trace = finish();
    assert_call(trace, INNER, 0, 1000);
    assert_call(trace, OUTER, 0, 1111);
    assert_arguments(trace, INNER, 0);
    assert_int_equal(call_event(trace, INNER, 0)->ns - call_event(trace, OUTER, 0)->ns, 101);
    assert_int_equal(trace_count(trace, "call", NULL), 2);
    trace_free(trace);
}

static void
a_method_in_c_has_a_name_without_a_place(void **state)
{
    (void)state;
    start("calls");
    call(&outer);
    call_c(&c_method);
    pass(5);
    leave();
    leave();
    struct trace *trace = finish();
    assert_call(trace, "Array#sort_by", 0, 5);
    trace_free(trace);
}

static void
calls_do_not_begin_at_the_same_time(void **state)
{
    (void)state;
    start("calls");
    call_at_once(&outer);
    call_at_once(&middle);
    call_at_once(&inner);
    leave();
    leave();
    leave();
    pass(10); /* else the summary would be earlier */
    struct trace *trace = finish();
    const struct trace_event *o = call_event(trace, OUTER, 0), *m = call_event(trace, MIDDLE, 0),
                             *i = call_event(trace, INNER, 0);
    assert_true(o->ns < m->ns && m->ns < i->ns);
    assert_true(i->id <= m->id && m->id <= o->id);
    trace_free(trace);
}

static void
ends_that_nobody_reports_come_with_the_next_report(void **state)
{
    (void)state;
    start("calls");
    call(&outer);
    call(&middle);
    call(&inner);
    fake_pop(ec, 2); /* a jump out of C */
    pass(7);
    call(&inner);    /* where middle was */
    pass(3);
    leave();
    leave();
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "call", NULL), 4);
    assert_call(trace, MIDDLE, 0, 1 + 7 + 1);
    assert_true(call_event(trace, INNER, 1)->ns >= call_event(trace, MIDDLE, 0)->id);
    trace_free(trace);
}

static void
an_exception_ends_calls_where_it_is_handled(void **state)
{
    (void)state;
    start("calls");
    call(&outer);
    call(&middle);
    call(&inner);
    pass(50);
    fake_pop(ec, 2);
    rb_vm_trace_unwound(ec);
    pass(1000); /* outer goes on */
    leave();
    struct trace *trace = finish();
    assert_true(call_event(trace, INNER, 0)->id - call_event(trace, OUTER, 0)->ns <= 60);
    assert_true(call_event(trace, OUTER, 0)->id - call_event(trace, OUTER, 0)->ns >= 1050);
    trace_free(trace);
}

static void
the_body_of_a_rescue_is_a_call(void **state)
{
    (void)state;
    start("calls");
    call(&outer);
    call(&inner);
    fake_pop(ec, 1);
    fake_push(ec, &middle, 1); /* the handler's frame */
    pass(1);
    rb_vm_trace_unwound(ec);
    pass(20);
    leave();
    leave();
    struct trace *trace = finish();
    assert_call(trace, MIDDLE, 0, 20 - 1); /* it begins after the end of inner, which was found out then */
    trace_free(trace);
}

static void
compiled_code_reports_what_it_pushes_and_pops(void **state)
{
    (void)state;
    start("calls");
    call(&outer);
    pass(1);
    fake_push_method(ec, &inner, &method, 1);
    rb_vm_trace_jit_frame_begun(ec);
    pass(9);
    fake_pop(ec, 1);
    rb_vm_trace_host_calls_left(ec);
    leave();
    struct trace *trace = finish();
    assert_call(trace, "Foo#inner (app.rb:1)", 0, 9);
    trace_free(trace);
}

static void
short_calls_are_counted_in_the_one_around_them(void **state)
{
    (void)state;
    start("calls:min=1us");
    call(&outer);
    for (int i = 0; i < 3; i++) {
        call(&middle);
        pass(100);
        call(&inner);
        pass(200);
        leave();
        leave();
    }
    call(&inner);
    pass(2000);
    leave();
    leave();
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "call", NULL), 2);
    assert_int_equal(trace_number(call_event(trace, OUTER, 0), "left_out"), 6);
    uint64_t ns = trace_number(call_event(trace, OUTER, 0), "left_out_ns");
    assert_true(ns >= 900 && ns <= 920);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "calls"), 2);
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "calls_left_out"), 6);
    assert_int_equal(trace_number(trace_event(trace, "trace", "settings", 0), "calls_min_ns"), 1000);
    trace_free(trace);
}

/* A program that evaluates ever new code: what is kept of it has a bound, and open calls keep their names. */
static void
names_that_no_open_call_has_are_given_back(void **state)
{
    (void)state;
    enum { EVALS = 4 * VM_TRACE_CALL_TEXTS, TEXT = 16 };
    start("calls");
    struct rb_iseq_struct *evals = calloc(EVALS, sizeof(*evals));
    char (*labels)[TEXT] = calloc(EVALS, sizeof(*labels));
    assert_true(evals && labels);
    const struct vm_trace_ractor_calls *kept = calls_of(main_ractor.vm_trace);
    call(&outer);
    size_t most = 0;
    for (int i = 0; i < EVALS; i++) {
        snprintf(labels[i], TEXT, "eval %d", i);
        evals[i] = fake_iseq(labels[i], "app.rb");
        call(&evals[i]);
        leave();
        if (kept->text_count > most) most = kept->text_count;
    }
    assert_in_range(most, VM_TRACE_CALL_TEXTS, VM_TRACE_CALL_TEXTS + 8);
    leave();
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "call", NULL), EVALS + 1);
    assert_int_equal(trace_count(trace, "call", OUTER), 1);
    assert_int_equal(trace_count(trace, "call", "eval 7 (app.rb:1)"), 1);
    assert_int_equal(trace_count(trace, "call", "eval 65535 (app.rb:1)"), 1);
    trace_free(trace);
    free(labels);
    free(evals);
}

/* Code that was compiled before the trace does not count, so none does then. */
static void
calls_that_code_replaces_are_counted_from_the_start_only(void **state)
{
    (void)state;
    assert_null(rb_vm_trace_replaced_calls());
    start("calls");
    assert_null(rb_vm_trace_replaced_calls());
    rb_vm_trace_jit_ready();
    uint64_t *count = rb_vm_trace_replaced_calls();
    assert_non_null(count);
    *count += 3;
    struct trace *trace = finish();
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "calls_replaced"), 3);
    trace_free(trace);
}

static void
time_of_recorded_calls_is_not_left_out(void **state)
{
    (void)state;
    assert_true(rb_vm_trace_parse_methods("--vm-trace-methods", "outer,inner"));
    start("calls");
    call(&outer);
    call(&middle); /* is not requested */
    pass(60);
    call(&inner);
    pass(40);
    leave();
    leave();
    leave();
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "call", NULL), 2);
    assert_int_equal(trace_number(call_event(trace, OUTER, 0), "left_out"), 1);
    assert_int_equal(trace_number(call_event(trace, OUTER, 0), "left_out_ns"), 60 + 1);
    trace_free(trace);
}

static void
deep_calls_are_counted_in_the_one_around_them(void **state)
{
    (void)state;
    start("calls:depth=1");
    call(&outer);
    call(&middle);
    pass(40);
    leave();
    pass(2);
    leave();
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "call", NULL), 1);
    assert_int_equal(trace_number(call_event(trace, OUTER, 0), "left_out"), 1);
    assert_int_equal(trace_number(call_event(trace, OUTER, 0), "left_out_ns"), 40);
    assert_int_equal(trace_number(trace_event(trace, "trace", "settings", 0), "calls_depth"), 1);
    trace_free(trace);
}

static void
frames_that_were_open_begin_with_the_trace(void **state)
{
    (void)state;
    ec = &main_thread;
    outer = fake_iseq("outer", "app.rb");
    fake_push(ec, &outer, 1);
    start("calls");
    call(&inner);
    pass(5);
    leave();
    leave(); /* it is watched since then */
    struct trace *trace = finish();
    const struct trace_event *event = trace_event(trace, "call", NULL, 1);
    assert_string_equal(trace_text(event, "began"), "before the trace");
    assert_null(trace_argument(event, "ended"));
    trace_free(trace);
}

static void
the_frame_that_sees_the_first_end_was_open_too(void **state)
{
    (void)state;
    ec = &main_thread;
    outer = fake_iseq("outer", "app.rb");
    fake_push(ec, &outer, 1);
    start("calls");
    rb_vm_trace_host_calls_left(ec); /* what has started the trace returns */
    pass(5);
    leave();
    struct trace *trace = finish();
    assert_string_equal(trace_text(trace_event(trace, "call", NULL, 0), "began"), "before the trace");
    assert_int_equal(trace_count(trace, "call", NULL), 1);
    trace_free(trace);
}

static void
blocks_over_a_reset(struct rb_vm_trace_thread *thread)
{
    rb_vm_trace_thread_suspending(ec, thread, RB_VM_TRACE_BLOCKED);
    rb_vm_trace_thread_suspended(ec, thread, RB_VM_TRACE_BLOCKED);
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    uint64_t reset_ns = rb_vm_trace_epoch_begin_ns(&(uint32_t){ 0 }); /* a little ahead */
    while (rb_vm_trace_clock_system_ns() <= reset_ns) continue;
    rb_vm_trace_thread_ready(ec, thread);
    rb_vm_trace_thread_resumed(ec, thread);
}

static struct trace *
saved(void)
{
    struct rb_vm_trace_save save = { .path = traced_path, .why = "save" };
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    rb_vm_trace_recorder_write(&save);
    return trace_read(traced_path);
}

/* `blocked` is inside of the calls that are open at a reset, each call inside of the one around it. */
static void
assert_blocked_inside(const struct trace *trace, unsigned depth)
{
    const struct trace_event *blocked = trace_event(trace, "blocked", NULL, 0), *call = NULL;
    assert_int_equal(trace_count(trace, "call", NULL), depth);
    for (unsigned i = 0; i < depth; i++) {
        const struct trace_event *around = call_event(trace, NULL, i); /* the innermost one comes first */
        assert_true(around->ns < (call ? call : blocked)->ns && around->id >= (call ? call->id : blocked->ns));
        assert_string_equal(trace_text(around, "began"), "before the trace");
        call = around;
    }
    assert_true(trace_event(trace, "blocked", NULL, 1)->ns < call_event(trace, NULL, 0)->id);
}

/* `seen`: the stream knows the calls when the reset comes. */
static void
check_blocked_at_a_reset(bool seen, unsigned depth)
{
    _Alignas(8) char memory[RB_VM_TRACE_THREAD_BYTES] = { 0 };
    struct rb_vm_trace_thread *thread = (struct rb_vm_trace_thread *)memory;
    rb_vm_trace_session.memory.bytes = 16 << 20;
    ec = &main_thread;
    outer = fake_iseq("outer", "app.rb");
    if (!seen) fake_push(ec, &outer, 1);
    start_with_clock("calls,threads");
    for (unsigned i = 0; i < depth && seen; i++) call_at_once(&outer);
    blocks_over_a_reset(thread);
    if (!seen) rb_vm_trace_host_calls_left(ec); /* it is seen first now */
    for (unsigned i = 0; i < depth; i++) leave();
    struct trace *trace = saved();
    assert_blocked_inside(trace, depth);
    trace_free(trace);
    trace_free(finish());
}

static void
what_a_thread_blocks_in_at_a_reset_is_inside_of_its_open_calls(void **state)
{
    (void)state;
    check_blocked_at_a_reset(true, 2);
}

static void
however_many_calls_are_open(void **state)
{
    (void)state;
    check_blocked_at_a_reset(true, 1000);
}

static void
though_the_calls_are_seen_after_the_reset(void **state)
{
    (void)state;
    check_blocked_at_a_reset(false, 1);
}

static void
frames_that_are_open_at_the_end_are_written(void **state)
{
    (void)state;
    start("calls");
    call(&outer);
    call(&inner);
    pass(5);
    struct trace *trace = finish();
    assert_string_equal(trace_text(call_event(trace, INNER, 0), "ended"), "after the trace");
    assert_string_equal(trace_text(call_event(trace, OUTER, 0), "ended"), "after the trace");
    assert_int_equal(trace_number(trace_event(trace, "trace", "summary", 0), "calls"), 2);
    trace_free(trace);
}

static void
each_fiber_has_its_own_calls(void **state)
{
    (void)state;
    start("calls");
    call(&outer);
    ec = &fiber;
    fake_current(ec);
    call(&inner);
    pass(10);
    ec = &main_thread;
    fake_current(ec);
    pass(10);
    leave();
    ec = &fiber;
    fake_current(ec);
    leave();
    rb_vm_trace_calls_ended(rb_vm_trace_host_calls(&fiber));
    assert_null(*rb_vm_trace_host_calls(&fiber));
    fake_current(&main_thread);
    struct trace *trace = finish();
    assert_call(trace, OUTER, 0, 21);
    assert_call(trace, INNER, 0, 20);
    assert_int_equal(call_event(trace, OUTER, 0)->tid, 1001);
    assert_int_equal(call_event(trace, INNER, 0)->tid, 1501);
    trace_free(trace);
}

static void
switch_to(struct rb_execution_context_struct *to)
{
    struct rb_execution_context_struct *from = ec;
    ec = to;
    fake_current(ec);
    rb_vm_trace_fiber_switched(from, to);
}

#define SUSPENDED "(fiber suspended)"

/* main:  outer [      suspended      ] [ suspended          fiber:  inner [ suspended ] inner [suspended, open */
static void
time_in_which_a_fiber_does_not_run_is_a_stretch_inside_its_innermost_call(void **state)
{
    (void)state;
    start("calls");
    call(&outer);
    pass(5);
    switch_to(&fiber);
    call(&inner);
    pass(10);
    switch_to(&main_thread);
    pass(100);
    switch_to(&fiber);
    pass(20);
    switch_to(&main_thread);
    pass(7);
    leave();
    struct trace *trace = finish();
    assert_call(trace, SUSPENDED, 0, 11); /* main's, while the fiber runs */
    assert_call(trace, SUSPENDED, 1, 100);
    assert_call(trace, SUSPENDED, 2, 20);
    assert_call(trace, OUTER, 0, 5 + 11 + 100 + 20 + 7);
    static const uint32_t tids[] = { 1001, 1501, 1001, 1501 };
    for (size_t i = 0; i < 4; i++) assert_int_equal(call_event(trace, SUSPENDED, i)->tid, tids[i]);
    assert_string_equal(trace_text(call_event(trace, SUSPENDED, 3), "ended"), "after the trace");
    assert_int_equal(trace_count(trace, "call", SUSPENDED), 4);
    trace_free(trace);
}

/* What is left out around it has no part of it. */
static void
suspended_time_is_none_of_calls_that_are_left_out(void **state)
{
    (void)state;
    start("calls:depth=1");
    call(&outer);
    call(&middle);
    pass(5);
    switch_to(&fiber);
    pass(50);
    switch_to(&main_thread);
    pass(6);
    leave();
    leave();
    struct trace *trace = finish();
    assert_call(trace, SUSPENDED, 0, 50);
    assert_int_equal(trace_number(call_event(trace, OUTER, 0), "left_out_ns"), 11);
    trace_free(trace);
}

static void
a_fiber_without_calls_is_not_suspended(void **state)
{
    (void)state;
    start("calls");
    switch_to(&fiber);
    call(&inner);
    leave();
    switch_to(&main_thread);
    pass(50);
    switch_to(&fiber);
    call(&inner);
    leave();
    rb_vm_trace_calls_ended(rb_vm_trace_host_calls(&fiber));
    switch_to(&main_thread);
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "call", NULL), 2);
    trace_free(trace);
}

static void
a_context_that_ends_ends_its_calls(void **state)
{
    (void)state;
    start("calls");
    call(&outer);
    ec = &fiber;
    fake_current(ec);
    call(&inner);
    pass(10);
    rb_vm_trace_calls_ended(rb_vm_trace_host_calls(&fiber));
    fake_current(&main_thread);
    struct trace *trace = finish();
    assert_call(trace, INNER, 0, 10);
    assert_null(trace_argument(call_event(trace, INNER, 0), "ended"));
    trace_free(trace);
}

static void
a_full_chunk_loses_no_call(void **state)
{
    (void)state;
    rb_vm_trace_writer_run_chunks = 1;
    enum { MANY = 200000 }; /* more than a chunk of 1 MiB has room for */
    start("calls");
    call(&outer);
    for (int i = 0; i < MANY; i++) {
        call(&inner);
        pass(3);
        leave();
    }
    leave();
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "call", INNER), MANY);
    assert_true(trace->chunk_count > 4);
    trace_free(trace);
}

static void
a_freed_iseq_is_not_taken_for_the_one_that_has_its_address(void **state)
{
    (void)state;
    start("calls");
    struct rb_iseq_struct one = fake_iseq_at(0x7000000, 100, "one", "a.rb");
    call(&outer);
    call(&one);
    leave();
    rb_vm_trace_iseq_free(&one);
    one.name = "two";
    call(&one);
    leave();
    leave();
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "call", "one (a.rb:1)"), 1);
    assert_int_equal(trace_count(trace, "call", "two (a.rb:1)"), 1);
    trace_free(trace);
}

static void
nothing_is_recorded_when_calls_are_not(void **state)
{
    (void)state;
    outer = fake_iseq("outer", "app.rb");
    ec = &main_thread;
    start_session_traced("markers");
    assert_int_equal(rb_vm_trace_frames_on, 0);
    call_at_once(&outer);
    fake_pop(ec, 1);
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "call", NULL), 0);
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(a_call_is_written_with_its_times),
        isolated_test(a_method_in_c_has_a_name_without_a_place),
        isolated_test(calls_do_not_begin_at_the_same_time),
        isolated_test(ends_that_nobody_reports_come_with_the_next_report),
        isolated_test(an_exception_ends_calls_where_it_is_handled),
        isolated_test(the_body_of_a_rescue_is_a_call),
        isolated_test(compiled_code_reports_what_it_pushes_and_pops),
        isolated_test(short_calls_are_counted_in_the_one_around_them),
        isolated_test(names_that_no_open_call_has_are_given_back),
        isolated_test(calls_that_code_replaces_are_counted_from_the_start_only),
        isolated_test(time_of_recorded_calls_is_not_left_out),
        isolated_test(deep_calls_are_counted_in_the_one_around_them),
        isolated_test(frames_that_were_open_begin_with_the_trace),
        isolated_test(the_frame_that_sees_the_first_end_was_open_too),
        isolated_test(what_a_thread_blocks_in_at_a_reset_is_inside_of_its_open_calls),
        isolated_test(however_many_calls_are_open),
        isolated_test(though_the_calls_are_seen_after_the_reset),
        isolated_test(frames_that_are_open_at_the_end_are_written),
        isolated_test(each_fiber_has_its_own_calls),
        isolated_test(time_in_which_a_fiber_does_not_run_is_a_stretch_inside_its_innermost_call),
        isolated_test(suspended_time_is_none_of_calls_that_are_left_out),
        isolated_test(a_fiber_without_calls_is_not_suspended),
        isolated_test(a_context_that_ends_ends_its_calls),
        isolated_test(a_full_chunk_loses_no_call),
        isolated_test(a_freed_iseq_is_not_taken_for_the_one_that_has_its_address),
        isolated_test(nothing_is_recorded_when_calls_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
