/*
 * Execution states: whose time it is, to the nanosecond. The clock stands still, and tests move it.
 */
#include "harness.h"
#include "traced.h"
#include "vm_trace/session/requests.h"
#include "vm_trace/session/session.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/streams/states/states.h"
#include "vm_trace/vm_trace_jit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct rb_iseq_struct outer, middle, inner;
static struct rb_vm_trace_site *site, *other_site;
static const struct fake_method c_method = { "Array", "sort_by" };
static struct rb_execution_context_struct fiber = {
    .ractor = &main_ractor, .tid = 1001, .thread_name = "main", .name_id = 1,
};
static struct rb_execution_context_struct worker = {
    .ractor = &main_ractor, .tid = 1002, .thread_name = "worker", .name_id = 2,
};

/* How long the thread had no CPU so far; only then is its CPU time simulated. 0: it is the system's. */
static uint64_t had_no_cpu_ns;

/* Instead of the C library's. */
int
clock_gettime(clockid_t id, struct timespec *time)
{
    if (id != CLOCK_THREAD_CPUTIME_ID || !had_no_cpu_ns) return (int)syscall(SYS_clock_gettime, id, time);
    uint64_t ns = clock_now_ns(&main_ractor.vm_trace->clock) - had_no_cpu_ns;
    *time = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
    return 0;
}

/* Time in which the thread has no CPU. */
static void
pass_without_cpu(uint64_t ns)
{
    had_no_cpu_ns += ns;
    pass(ns);
}

static const char *
exits_on(uint64_t rate, const char *counter)
{
    (void)rate;
    (void)counter;
    return NULL;
}

static const char *
every_exit(void)
{
    return NULL;
}

static void
exits_off(void)
{
}

static void
recording(bool on, bool compiles, bool invalidations)
{
    (void)on;
    (void)compiles;
    (void)invalidations;
}

static const struct rb_vm_trace_jit jit = {
    .name = "ZJIT", .exits_on = exits_on, .every_exit = every_exit, .exits_off = exits_off, .recording = recording
};

static void
start_with(const char *streams)
{
    skip_without_ticks();
    outer = fake_iseq("outer", "app.rb");
    middle = fake_iseq("middle", "app.rb");
    inner = fake_iseq("inner", "app.rb");
    rb_vm_trace_register_jit(&jit);
    start_session_traced(streams);
    assert_int_equal(rb_vm_trace_states_on, 1);
    assert_true(fake_host.entries_watched);
    stop_clock();
    site = make_site(RB_VM_TRACE_SIDE_EXIT, "a", &outer, 3);
    other_site = make_site(RB_VM_TRACE_SIDE_EXIT, "b", &inner, 5);
}

static void
start(void)
{
    start_with("states,exits");
}

static struct trace *
finish(void)
{
    fake_free_stack(&fiber);
    fake_free_stack(&worker);
    return finish_traced();
}

/* --- what a program does -------------------------------------------------------------------------- */

static struct rb_execution_context_struct *ec = &main_thread;

static void
run_as(struct rb_execution_context_struct *context)
{
    ec = context;
    fake_current(ec);
}

/* Compiled code that was entered with a frame. */
struct entered {
    uint64_t number;
    uintptr_t frame;
};

/* The interpreter, or C, calls an ISEQ with compiled code. */
static struct entered
enter(const struct rb_iseq_struct *iseq)
{
    const struct rb_vm_trace_states *states = *rb_vm_trace_host_states(ec);
    bool compiled = states && states->head.compiled;
    fake_push(ec, iseq, 1);
    ec->frames[ec->frame_count - 1].first = compiled; /* by way of C */
    uintptr_t frame = rb_vm_trace_host_innermost(ec);
    return (struct entered){ compiled ? RB_VM_TRACE_SAME_STATE : rb_vm_trace_states_enter(ec, frame), frame };
}

/* Its code returns. */
static void
leave(struct entered entered)
{
    fake_pop(ec, 1);
    if (entered.number != RB_VM_TRACE_SAME_STATE) rb_vm_trace_states_return(ec, entered.frame, entered.number, false);
}

/* Its code exits, and the interpreter goes on. */
static void
exit_to_interpreter(struct entered entered, const struct rb_vm_trace_site *of)
{
    if (of) take_exit(of, ec);
    rb_vm_trace_states_return(ec, entered.frame, entered.number, true);
}

/* The interpreter leaves the innermost frame, or an exception does. */
static void
leave_interpreted(void)
{
    bool watched = ec->frames[ec->frame_count - 1].watched;
    fake_pop(ec, 1);
    if (watched) rb_vm_trace_frame_popped(ec);
}

/* The interpreter calls an ISEQ without compiled code, the nth time. */
static void
call_uncompiled(const struct rb_iseq_struct *iseq, uint64_t calls)
{
    fake_push(ec, iseq, 1);
    rb_vm_trace_uncompiled(ec, calls, 30);
}

/* --- what the trace says ---------------------------------------------------------------------------- */

static uint64_t
number_or_0(const struct trace_event *event, const char *name)
{
    return trace_argument(event, name) ? trace_number(event, name) : 0;
}

static const struct trace_event *
states_of_thread(const struct trace *trace, uint64_t tid)
{
    for (size_t i = 0;; i++) {
        const struct trace_event *event = trace_event(trace, "trace", "states", i);
        if (event->tid == tid) return event;
    }
}

#define assert_state(trace, name, ns) assert_int_equal(number_or_0(states_of_thread(trace, 1001), name), ns)

static void
assert_lost(const struct trace *trace, const char *reason, uint64_t ns, uint64_t longest_ns)
{
    size_t sites = trace_count(trace, "trace", "site");
    for (size_t i = 0; i < sites; i++) {
        const struct trace_event *event = trace_event(trace, "trace", "site", i);
        if (strcmp(trace_text(event, "reason"), reason) != 0) continue;
        assert_int_equal(number_or_0(event, "lost_ns"), ns);
        assert_int_equal(number_or_0(event, "lost_max_ns"), longest_ns);
        return;
    }
    fail_msg("no site %s", reason);
}

static uint64_t
lost_by_exit(const struct trace *trace, size_t nth)
{
    return trace_number(trace_event(trace, "side_exit", NULL, nth), "lost_ns");
}

/* --- exits --------------------------------------------------------------------------------------------- */

static void
an_exit_loses_time_until_the_entered_frame_ends(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    pass(100);
    fake_push(ec, &inner, 1); /* compiled code calls compiled code: no entry */
    pass(10);
    exit_to_interpreter(entry, site);
    pass(2000);
    leave_interpreted();      /* inner */
    pass(3000);
    leave_interpreted();      /* outer */
    pass(400);
    struct trace *trace = finish();
    assert_state(trace, "compiled", 110);
    assert_state(trace, "exited", 5000);
    assert_lost(trace, "a", 5000, 5000);
    assert_int_equal(lost_by_exit(trace, 0), 5000);
    trace_free(trace);
}

/* Its event is in a chunk that is no longer mapped, even where the next one shares its tables. */
static void
an_exit_whose_chunk_is_full_has_no_time_of_its_own(void **state)
{
    (void)state;
    enum { OTHERS = 20000 }; /* more than a chunk holds */
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(100);
    for (int i = 0; i < OTHERS; i++) {
        struct entered callee = enter(&inner);
        exit_to_interpreter(callee, other_site);
        leave_interpreted();
    }
    pass(23);
    leave_interpreted();
    assert_true(main_ractor.vm_trace->writer.chunk_serial > 1);
    struct trace *trace = finish();
    assert_int_equal(trace->chunk_count, 1);
    assert_lost(trace, "a", 123, 123);
    assert_int_equal(lost_by_exit(trace, 0), 0);
    for (size_t i = 1; i <= OTHERS; i++) assert_int_equal(lost_by_exit(trace, i), 0);
    trace_free(trace);
}

static void
compiled_code_that_returns_loses_nothing(void **state)
{
    (void)state;
    start();
    leave(enter(&outer));
    struct entered entry = enter(&outer);
    pass(100);
    leave(entry);
    pass(77);
    struct trace *trace = finish();
    assert_state(trace, "compiled", 100);
    assert_state(trace, "exited", 0);
    trace_free(trace);
}

static void
compiled_callees_are_not_lost(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(10);
    struct entered callee = enter(&inner);
    pass(5000);
    leave(callee);
    pass(20);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "compiled", 5000);
    assert_state(trace, "exited", 30);
    assert_lost(trace, "a", 30, 30);
    trace_free(trace);
}

/* A callee's exit has its own time; the outer one's goes on when the callee has ended. */
static void
exits_inside_an_exited_frame_have_their_own_time(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(10);
    for (int i = 3; i >= 1; i--) {
        struct entered callee = enter(&inner);
        exit_to_interpreter(callee, other_site);
        pass(1000 * (uint64_t)i);
        leave_interpreted();
        pass(1);
    }
    leave_interpreted();
    struct trace *trace = finish();
    assert_lost(trace, "a", 13, 13);
    assert_lost(trace, "b", 6000, 3000);
    assert_state(trace, "exited", 6013);
    assert_int_equal(lost_by_exit(trace, 0), 13);
    for (size_t i = 1; i <= 3; i++) assert_int_equal(lost_by_exit(trace, i), 4000 - 1000 * i);
    trace_free(trace);
}

/* Its callees without compiled code are interpreted as long as the frame is. */
static void
uncompiled_callees_of_an_exited_frame_are_lost_too(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(10);
    call_uncompiled(&inner, 1);
    pass(300);
    leave_interpreted();
    pass(1);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "exited", 311);
    assert_state(trace, "uncompiled", 0);
    assert_lost(trace, "a", 311, 311);
    assert_int_equal(lost_by_exit(trace, 0), 311);
    trace_free(trace);
}

static void
uncompiled_blocks_that_c_calls_are_lost_too(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(10);
    fake_push_cfunc(ec, &c_method);
    rb_vm_trace_states_c_called(ec);
    pass(100);
    call_uncompiled(&inner, 1);
    pass(300);
    leave_interpreted();
    pass(50);
    leave_interpreted();
    pass(1);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "exited", 311);
    assert_state(trace, "c_function", 150);
    assert_state(trace, "uncompiled", 0);
    assert_lost(trace, "a", 311, 311);
    trace_free(trace);
}

/* One in K is recorded, and the sum has them all. */
static void
sums_have_exits_that_are_not_recorded(void **state)
{
    (void)state;
    start_with("states,exits:rate=7");
    for (uint64_t i = 1; i <= 20; i++) {
        struct entered entry = enter(&outer);
        exit_to_interpreter(entry, site);
        pass(i);
        leave_interpreted();
    }
    struct trace *trace = finish();
    assert_lost(trace, "a", 210, 20);
    assert_int_equal(site_hits(trace, "a"), 20);
    assert_int_equal(trace_count(trace, "side_exit", NULL), 2);
    assert_int_equal(lost_by_exit(trace, 0), 7);
    assert_int_equal(lost_by_exit(trace, 1), 14);
    trace_free(trace);
}

/* At the end it is charged, and the exit's own time is known, too. */
static void
a_frame_that_is_open_at_the_end_is_charged(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(1234);
    struct trace *trace = finish();
    assert_lost(trace, "a", 1234, 1234);
    assert_state(trace, "exited", 1234);
    trace_free(trace);
}

/* --- exceptions ------------------------------------------------------------------------------------------ */

/* It is handled in the exited frame: frames inside it end, however many. */
static void
an_exception_ends_the_levels_that_it_leaves(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(10);
    struct entered callee = enter(&middle);
    pass(100);
    enter(&inner); /* by way of C */
    pass(100);
    (void)callee;
    fake_pop(ec, 2);
    rb_vm_trace_unwound(ec);
    pass(20);
    leave_interpreted();
    pass(5);
    struct trace *trace = finish();
    assert_state(trace, "compiled", 200);
    assert_state(trace, "exited", 30);
    assert_lost(trace, "a", 30, 30);
    trace_free(trace);
}

/* Compiled code that handles one goes on in the interpreter, and no exit did that. */
static void
an_exception_handled_in_compiled_code_is_no_exit(void **state)
{
    (void)state;
    start();
    enter(&outer);
    pass(100);
    fake_push(ec, &inner, 1);
    pass(10);
    fake_pop(ec, 1);
    rb_vm_trace_unwound(ec);
    pass(2000);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "compiled", 110);
    assert_state(trace, "exited", 0);
    assert_state(trace, "uncompiled", 2000);
    trace_free(trace);
}

/*
 * YJIT enters compiled code at a handler, which gives back to the interpreter when its frame has
 * ended.
 */
static void
a_handler_whose_frame_has_ended_has_not_exited(void **state)
{
    (void)state;
    start();
    call_uncompiled(&outer, 31);
    pass(1);
    struct entered entry = enter(&inner);
    pass(10);
    fake_pop(ec, 1);
    rb_vm_trace_states_return(ec, entry.frame, entry.number, true);
    pass(300);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "compiled", 10);
    assert_state(trace, "exited", 0);
    assert_state(trace, "uncompilable", 301);
    trace_free(trace);
}

/* A loop that catches: each time its frame enters the compiled code of its handler, and exits from it. */
static void
a_frame_that_catches_again_and_again_has_one_level(void **state)
{
    (void)state;
    enum { TIMES = 1000 };
    start_with("states:min=1us,exits");
    call_uncompiled(&outer, 1);
    struct entered entry = { .frame = rb_vm_trace_host_innermost(ec) };
    pass(500);
    for (int i = 0; i < TIMES; i++) {
        entry.number = rb_vm_trace_states_enter(ec, entry.frame);
        pass(100);
        exit_to_interpreter(entry, site);
        pass(30);
    }
    assert_int_equal((*rb_vm_trace_host_states(ec))->depth, 1);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "uncompiled", 500);
    assert_state(trace, "compiled", TIMES * 100);
    assert_state(trace, "exited", TIMES * 30);
    assert_lost(trace, "a", TIMES * 30, 30);
    for (int i = 0; i < TIMES; i++) assert_int_equal(lost_by_exit(trace, i), 30);
    assert_int_equal(trace_count(trace, "execution", NULL), 0);
    const struct trace_event *calls = trace_event(trace, "trace", "interpreted", 0);
    assert_int_equal(trace_number(calls, "calls"), 1);
    assert_int_equal(trace_number(calls, "ran_ns"), 500 + TIMES * 130);
    trace_free(trace);
}

/* The same frame within one that exited: what it lost until then is the outer exit's. */
static void
a_handler_of_a_callee_that_lost_time_leaves_it_to_the_outer_exit(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(10);
    call_uncompiled(&inner, 1);
    pass(200);
    struct entered handler = { .frame = rb_vm_trace_host_innermost(ec) };
    handler.number = rb_vm_trace_states_enter(ec, handler.frame);
    pass(3000);
    exit_to_interpreter(handler, other_site);
    pass(40000);
    leave_interpreted();
    pass(5);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "compiled", 3000);
    assert_lost(trace, "a", 215, 215);
    assert_lost(trace, "b", 40000, 40000);
    trace_free(trace);
}

/* An exit that led nowhere (its code was not left) is not the reason of what comes later. */
static void
an_exit_of_earlier_code_is_not_taken_for_a_later_one(void **state)
{
    (void)state;
    start();
    call_uncompiled(&middle, 31);
    take_exit(site, ec);
    enter(&outer);
    pass(100);
    rb_vm_trace_unwound(ec);
    pass(2000);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "exited", 0);
    assert_state(trace, "uncompiled", 2000);
    assert_lost(trace, "a", 0, 0);
    trace_free(trace);
}

/* Compiled code that C called from compiled code exits: only it goes on in the interpreter. */
static void
an_exit_of_code_that_c_called_loses_time_until_that_returns(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    pass(100);
    struct entered callee = enter(&inner);
    assert_int_equal(callee.number, RB_VM_TRACE_SAME_STATE);
    pass(10);
    exit_to_interpreter(callee, site);
    pass(2000);
    leave_interpreted();
    pass(30);
    leave(entry);
    struct trace *trace = finish();
    assert_state(trace, "compiled", 140);
    assert_state(trace, "exited", 2000);
    assert_lost(trace, "a", 2000, 2000);
    trace_free(trace);
}

/* The same with a jump: the code that had called C goes on when the frame has ended. */
static void
an_exception_handled_in_code_that_c_called_leaves_the_outer_code_compiled(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    pass(100);
    enter(&inner);
    pass(10);
    rb_vm_trace_unwound(ec);
    pass(2000);
    leave_interpreted();
    pass(30);
    leave(entry);
    struct trace *trace = finish();
    assert_state(trace, "compiled", 140);
    assert_state(trace, "uncompiled", 2000);
    trace_free(trace);
}

/* --- what interrupts --------------------------------------------------------------------------------------- */

static void
compiling_is_not_lost(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(10);
    assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_COMPILE, "inner", 5));
    pass(700);
    rb_vm_trace_span_end(RB_VM_TRACE_COMPILE, "inner", 5);
    pass(20);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "exited", 30);
    assert_lost(trace, "a", 30, 30);
    trace_free(trace);
}

static void
pauses_are_not_lost(void **state)
{
    (void)state;
    static const struct {
        enum vm_trace_execution as;
        const char *name;
        uint64_t ready; /* after the pause began; 0: not woken */
    } pauses[] = { { VM_TRACE_GC, "gc", 0 }, { VM_TRACE_BLOCKED, "blocked", 400 }, { VM_TRACE_WAITING, "waiting", 0 } };
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        pass(10);
        struct rb_vm_trace_ractor *ractor = main_ractor.vm_trace;
        uint64_t from = clock_now_ns(&ractor->clock);
        rb_vm_trace_states_pause(ractor, ec, from);
        pass(500);
        rb_vm_trace_states_resume(ractor, ec, pauses[i].as, pauses[i].ready ? from + pauses[i].ready : 0, from + 500);
    }
    pass(1);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "exited", 31);
    assert_lost(trace, "a", 31, 31);
    assert_state(trace, "gc", 500);
    assert_state(trace, "blocked", 400);
    assert_state(trace, "waiting", 600); /* 100 of them until it had the GVL */
    trace_free(trace);
}

enum { MS = 1000000 };

static void
start_without_cpu(void)
{
    start();
    had_no_cpu_ns = 1;
}

static struct trace *
finish_without_cpu(void)
{
    had_no_cpu_ns = 0;
    return finish();
}

static void
time_without_a_cpu_is_not_lost(void **state)
{
    (void)state;
    start_without_cpu();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(300);
    pass_without_cpu(7 * MS);
    pass(20);
    leave_interpreted();
    struct trace *trace = finish_without_cpu();
    assert_state(trace, "no_cpu", 7 * MS);
    assert_state(trace, "exited", 320);
    assert_lost(trace, "a", 320, 320);
    trace_free(trace);
}

/* The interval between two looks has many states; the last one gets what cannot have been in those before it. */
static void
two_states_without_cpu(uint64_t before, uint64_t in, uint64_t ran)
{
    start_without_cpu();
    struct entered entry = enter(&outer);
    pass_without_cpu(before);
    exit_to_interpreter(entry, site);
    pass_without_cpu(in);
    pass(ran);
    leave_interpreted();
    struct trace *trace = finish_without_cpu();
    assert_state(trace, "compiled", before);
    assert_state(trace, "no_cpu", in);
    assert_state(trace, "exited", ran);
    trace_free(trace);
}

static void
a_state_gets_no_time_without_a_cpu_from_those_before_it(void **state)
{
    (void)state;
    two_states_without_cpu(MS * 3 / 5, 0, MS * 2 / 5 + 1);
}

static void
a_short_state_loses_nothing_to_a_wait_before_it(void **state)
{
    (void)state;
    two_states_without_cpu(MS - 60, 0, 61);
}

static void
a_wait_that_did_not_fit_before_a_state_was_in_it(void **state)
{
    (void)state;
    two_states_without_cpu(MS * 2 / 5, MS * 4 / 5, 90);
}

static void
a_thread_that_waits_needs_no_cpu(void **state)
{
    (void)state;
    start_without_cpu();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    struct rb_vm_trace_ractor *ractor = main_ractor.vm_trace;
    static const enum vm_trace_execution pauses[] = { VM_TRACE_BLOCKED, VM_TRACE_WAITING };
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        rb_vm_trace_states_pause(ractor, ec, clock_now_ns(&ractor->clock));
        pass_without_cpu(5 * MS);
        rb_vm_trace_states_resume(ractor, ec, pauses[i], 0, clock_now_ns(&ractor->clock));
        pass(2 * MS);
    }
    leave_interpreted();
    struct trace *trace = finish_without_cpu();
    assert_state(trace, "exited", 4 * MS);
    assert_state(trace, "no_cpu", 0);
    trace_free(trace);
}

static void
a_collection_without_a_cpu_takes_none_from_the_state_after_it(void **state)
{
    (void)state;
    start_without_cpu();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    struct rb_vm_trace_ractor *ractor = main_ractor.vm_trace;
    rb_vm_trace_states_pause(ractor, ec, clock_now_ns(&ractor->clock));
    pass(3 * MS);
    pass_without_cpu(4 * MS);
    rb_vm_trace_states_resume(ractor, ec, VM_TRACE_GC, 0, clock_now_ns(&ractor->clock));
    pass(2 * MS);
    leave_interpreted();
    struct trace *trace = finish_without_cpu();
    assert_state(trace, "gc", 3 * MS);
    assert_state(trace, "no_cpu", 4 * MS);
    assert_state(trace, "exited", 2 * MS);
    trace_free(trace);
}

static void
methods_in_c_are_not_lost(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(10);
    fake_push_cfunc(ec, &c_method);
    rb_vm_trace_states_c_called(ec);
    pass(800);
    leave_interpreted();
    pass(20);
    leave_interpreted();
    struct trace *trace = finish();
    assert_state(trace, "exited", 30);
    assert_state(trace, "c_function", 800);
    assert_lost(trace, "a", 30, 30);
    trace_free(trace);
}

/* Compiled code inside C inside compiled code: no change of state, and none to count. */
static void
compiled_code_called_by_way_of_c_changes_nothing(void **state)
{
    (void)state;
    start();
    struct entered entry = enter(&outer);
    uint64_t changes[2];
    for (int i = 0; i < 2; i++) {
        changes[i] = (*rb_vm_trace_host_states(ec))->times->changes;
        struct entered callee = enter(&inner);
        pass(10);
        leave(callee);
    }
    assert_int_equal(changes[0], changes[1]);
    pass(1);
    leave(entry);
    struct trace *trace = finish();
    assert_state(trace, "compiled", 21);
    trace_free(trace);
}

/* --- fibers and threads ---------------------------------------------------------------------------------------- */

static void
a_fiber_has_its_own_levels(void **state)
{
    (void)state;
    start();
    fake_fiber_of(&fiber, &main_thread);
    struct entered entry = enter(&outer);
    exit_to_interpreter(entry, site);
    pass(10);
    rb_vm_trace_fiber_switched(&main_thread, &fiber);
    run_as(&fiber);
    pass(1);
    struct entered in_fiber = enter(&inner);
    pass(5000);
    rb_vm_trace_fiber_switched(&fiber, &main_thread);
    run_as(&main_thread);
    pass(20);
    rb_vm_trace_fiber_switched(&main_thread, &fiber);
    run_as(&fiber);
    pass(300);
    leave(in_fiber);
    rb_vm_trace_fiber_switched(&fiber, &main_thread);
    run_as(&main_thread);
    pass(30);
    leave_interpreted();
    rb_vm_trace_states_ended(rb_vm_trace_host_states(&fiber));
    struct trace *trace = finish();
    assert_state(trace, "exited", 60);
    assert_lost(trace, "a", 60, 60);
    assert_state(trace, "compiled", 5300);
    assert_int_equal(trace_count(trace, "trace", "states"), 1);
    trace_free(trace);
}

/* One that runs nothing that is seen: its time is the thread's all the same. */
static void
a_fiber_that_is_never_seen_leaves_no_gap(void **state)
{
    (void)state;
    start();
    call_uncompiled(&outer, 1);
    rb_vm_trace_fiber_switched(&main_thread, &fiber);
    pass(5000);
    uint64_t unseen_ns = (*rb_vm_trace_host_states(&main_thread))->times->ns[VM_TRACE_UNSEEN];
    rb_vm_trace_fiber_switched(&fiber, &main_thread);
    pass(1);
    struct trace *trace = finish();
    assert_state(trace, "unseen", unseen_ns + 5000);
    assert_state(trace, "uncompiled", 1);
    trace_free(trace);
}

/* A thread that is new waits before it runs. */
static void
a_thread_begins_when_it_first_wants_to_run(void **state)
{
    (void)state;
    start();
    struct rb_vm_trace_ractor *ractor = main_ractor.vm_trace;
    uint64_t ready_ns = clock_now_ns(&ractor->clock);
    pass(4000);
    run_as(&worker);
    rb_vm_trace_states_resume(ractor, &worker, VM_TRACE_BLOCKED, ready_ns, ready_ns + 4000);
    pass(10);
    call_uncompiled(&outer, 1);
    pass(500);
    struct trace *trace = finish();
    const struct trace_event *states = states_of_thread(trace, 1002);
    assert_int_equal(number_or_0(states, "waiting"), 4000);
    assert_int_equal(number_or_0(states, "unseen"), 10);
    assert_int_equal(number_or_0(states, "uncompiled"), 500);
    trace_free(trace);
}

/* It has the GVL once more after that. */
static void
a_thread_that_has_ended_has_one_event(void **state)
{
    (void)state;
    start();
    run_as(&worker);
    call_uncompiled(&outer, 1);
    pass(500);
    leave_interpreted();
    rb_vm_trace_states_ended(rb_vm_trace_host_states(&worker));
    uint64_t ns = clock_now_ns(&main_ractor.vm_trace->clock);
    rb_vm_trace_states_resume(main_ractor.vm_trace, &worker, VM_TRACE_BLOCKED, ns - 100, ns);
    call_uncompiled(&outer, 2);
    pass(10);
    leave_interpreted();
    run_as(&main_thread);
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "trace", "states"), 2); /* main's */
    assert_int_equal(number_or_0(states_of_thread(trace, 1002), "uncompiled"), 500);
    trace_free(trace);
}

/* A fiber that is suspended in an exited frame when the trace ends. */
static void
the_longest_exit_may_be_one_that_never_ended(void **state)
{
    (void)state;
    start();
    fake_fiber_of(&fiber, &main_thread);
    call_uncompiled(&outer, 1);
    rb_vm_trace_fiber_switched(&main_thread, &fiber);
    run_as(&fiber);
    exit_to_interpreter(enter(&inner), site);
    pass(5000);
    rb_vm_trace_fiber_switched(&fiber, &main_thread);
    run_as(&main_thread);
    pass(20);
    struct trace *trace = finish();
    assert_lost(trace, "a", 5000, 5000);
    assert_state(trace, "exited", 5000);
    trace_free(trace);
}

/* Time of a state that ended is never counted again: the sum is the clock's. */
static void
states_add_up_to_the_time_that_passed(void **state)
{
    (void)state;
    start();
    pass(5);
    call_uncompiled(&outer, 1);
    uint64_t begin_ns = clock_now_ns(&main_ractor.vm_trace->clock), before_ns = 0;
    const struct vm_trace_thread_times *times = (*rb_vm_trace_host_states(ec))->times;
    for (int i = 0; i < VM_TRACE_EXECUTIONS; i++) before_ns += times->ns[i];
    unsigned random = 1;
    size_t depth = 0;
    for (int i = 0; i < 10000; i++) {
        random = random * 1103515245 + 12345;
        pass(random >> 20);
        unsigned choice = random >> 8 & 3;
        if (choice <= 1 && depth < 60) {
            if (choice) call_uncompiled(&middle, i % 40);
            else enter(&inner);
            depth++;
        }
        else if (choice == 2 && depth > 0) {
            leave_interpreted();
            depth--;
        }
        else if (choice == 3 && depth > 0 && (random >> 10 & 1)) {
            fake_pop(ec, depth - 1);
            depth = 1;
            rb_vm_trace_unwound(ec);
        }
    }
    while (depth-- > 0) leave_interpreted();
    uint64_t passed_ns = clock_now_ns(&main_ractor.vm_trace->clock) - begin_ns;
    struct trace *trace = finish();
    const struct trace_event *event = states_of_thread(trace, 1001);
    uint64_t sum = 0;
    for (unsigned i = 0; i < event->argument_count; i++) {
        const char *name = event->arguments[i].name;
        if (strcmp(name, "changes") != 0 && strcmp(name, "left_out") != 0) sum += trace_number(event, name);
    }
    assert_int_equal(sum, before_ns + passed_ns);
    trace_free(trace);
}

/* --- interpreted for other reasons ---------------------------------------------------------------------------- */

static void
calls_without_compiled_code_say_why(void **state)
{
    (void)state;
    start();
    call_uncompiled(&outer, 1);
    pass(60000);
    struct entered callee = enter(&inner);
    pass(5000);
    leave(callee);
    pass(40000);
    leave_interpreted();
    call_uncompiled(&outer, 31); /* compilation failed */
    pass(200000);
    leave_interpreted();
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "trace", "interpreted"), 2);
    const struct trace_event *first = trace_event(trace, "trace", "interpreted", 0);
    const struct trace_event *second = trace_event(trace, "trace", "interpreted", 1);
    assert_string_equal(trace_text(first, "why"), "not compiled yet");
    assert_string_equal(trace_text(second, "why"), "cannot be compiled");
    assert_int_equal(trace_number(first, "interpreted_ns"), 100000);
    assert_int_equal(trace_number(first, "ran_ns"), 105000);
    assert_int_equal(trace_number(second, "interpreted_ns"), 200000);
    assert_state(trace, "uncompiled", 100000);
    assert_state(trace, "uncompilable", 200000);
    trace_free(trace);
}

/* One call stands for many, and the code is compiled once. */
static void
compiling_is_no_part_of_what_a_call_takes(void **state)
{
    (void)state;
    start();
    call_uncompiled(&outer, 1);
    pass(60000);
    assert_true(rb_vm_trace_span_begin(RB_VM_TRACE_COMPILE, "inner", 5));
    pass(700000);
    rb_vm_trace_span_end(RB_VM_TRACE_COMPILE, "inner", 5);
    pass(3000);
    leave_interpreted();
    struct trace *trace = finish();
    assert_int_equal(trace_number(trace_event(trace, "trace", "interpreted", 0), "ran_ns"), 63000);
    assert_state(trace, "compiling", 700000);
    trace_free(trace);
}

/* A call inside a call of the same ISEQ ends first. */
static void
first_and_last_calls_are_those_that_began_first_and_last(void **state)
{
    (void)state;
    start();
    uint64_t first_ns = clock_now_ns(&main_ractor.vm_trace->clock);
    call_uncompiled(&outer, 1);
    pass(10000);
    call_uncompiled(&outer, 2);
    pass(10000);
    leave_interpreted();
    leave_interpreted();
    struct trace *trace = finish();
    const struct trace_event *calls = trace_event(trace, "trace", "interpreted", 0);
    assert_int_equal(trace_number(calls, "calls"), 2);
    assert_int_equal(trace_number(calls, "first_ns"), first_ns);
    assert_int_equal(trace_number(calls, "last_ns"), first_ns + 10000);
    trace_free(trace);
}

/* The sample of calls that are timed follows no rhythm of the program's. */
static void
methods_that_are_entered_in_turn_are_all_timed(void **state)
{
    (void)state;
    enum { TURNS = 16000 };
    const struct rb_iseq_struct *turn[] = { &outer, &middle, &inner, &middle };
    start();
    for (int i = 0; i < TURNS; i++) {
        struct entered entry = enter(turn[i % 4]);
        pass(100);
        leave(entry);
    }
    struct trace *trace = finish();
    uint64_t calls = 0;
    for (size_t i = 0; i < 3; i++) calls += trace_number(trace_event(trace, "trace", "calls", i), "calls");
    assert_int_equal(trace_count(trace, "trace", "calls"), 3);
    assert_true(calls > TURNS * 9 / 10 && calls < TURNS * 11 / 10);
    trace_free(trace);
}

/* Slices of what took long enough, on a track beside the thread's. */
static void
only_long_levels_are_slices(void **state)
{
    (void)state;
    start_with("states:min=1ms,exits");
    for (int i = 0; i < 2; i++) {
        struct entered entry = enter(&outer);
        exit_to_interpreter(entry, site);
        pass(i ? 1000000 : 999999);
        leave_interpreted();
    }
    struct trace *trace = finish();
    assert_int_equal(trace_count(trace, "execution", NULL), 1);
    const struct trace_event *slice = trace_event(trace, "execution", "interpreted", 0);
    assert_string_equal(trace_text(slice, "reason"), "a");
    assert_string_equal(slice->thread, "main execution");
    assert_int_equal(trace_number(states_of_thread(trace, 1001), "left_out"), 3); /* two of them compiled */
    trace_free(trace);
}

/* Perfetto keeps one of several slices that begin at the same time. */
static void
slices_that_a_reset_cuts_nest(void **state)
{
    (void)state;
    rb_vm_trace_session.memory.bytes = 4 << 20;
    start_with("states:min=1ms,exits");
    const struct rb_iseq_struct *iseqs[] = { &outer, &middle, &inner };
    for (int i = 0; i < 3; i++) {
        call_uncompiled(iseqs[i], 1);
        pass(2000000);
    }
    /* The time of a reset is the system's, which the fake clock is ahead of. */
    while (rb_vm_trace_clock_system_ns() < clock_now_ns(&main_ractor.vm_trace->clock)) usleep(1000);
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
    leave_interpreted();     /* inner took long enough, but not since the reset */
    pass(2000000);
    leave_interpreted();
    leave_interpreted();
    struct rb_vm_trace_save save = { .path = traced_path, .why = "save" };
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    rb_vm_trace_recorder_write(&save);
    struct trace *trace = trace_read(traced_path);
    assert_int_equal(trace_count(trace, "execution", NULL), 2);
    const struct trace_event *second = trace_event(trace, "execution", NULL, 0);
    const struct trace_event *first = trace_event(trace, "execution", NULL, 1);
    assert_int_equal(first->ns + 1, second->ns);
    assert_int_equal(first->id, second->id);
    trace_free(trace);
    rb_vm_trace_shutdown();
    free_traced();
    free(traced_path);
}

static void
without_a_jit_nothing_is_recorded(void **state)
{
    (void)state;
    struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS] = { { .rate = 0 } };
    static const struct rb_vm_trace_memory_config into_file;
    const struct rb_vm_trace_config config = { .jit = "none", .path = "t.fxt" };
    char why[512] = "";
    assert_true(rb_vm_trace_request_list("states", requests, why, sizeof(why)));
    assert_false(rb_vm_trace_start_session(&config, requests, &into_file, why, sizeof(why)));
    assert_string_equal(why, "no JIT is on: start Ruby with --zjit or --yjit");
    assert_int_equal(rb_vm_trace_states_on, 0);
    fake_push(&main_thread, &(struct rb_iseq_struct){ 16, 4096, "f", "f.rb" }, 1);
    rb_vm_trace_uncompiled(&main_thread, 1, 30);
    rb_vm_trace_unwound(&main_thread);
    assert_null(*rb_vm_trace_host_states(&main_thread));
    fake_free_stack(&main_thread);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(an_exit_loses_time_until_the_entered_frame_ends),
        isolated_test(an_exit_whose_chunk_is_full_has_no_time_of_its_own),
        isolated_test(compiled_code_that_returns_loses_nothing),
        isolated_test(compiled_callees_are_not_lost),
        isolated_test(exits_inside_an_exited_frame_have_their_own_time),
        isolated_test(uncompiled_callees_of_an_exited_frame_are_lost_too),
        isolated_test(uncompiled_blocks_that_c_calls_are_lost_too),
        isolated_test(sums_have_exits_that_are_not_recorded),
        isolated_test(a_frame_that_is_open_at_the_end_is_charged),
        isolated_test(an_exception_ends_the_levels_that_it_leaves),
        isolated_test(an_exception_handled_in_compiled_code_is_no_exit),
        isolated_test(a_handler_whose_frame_has_ended_has_not_exited),
        isolated_test(an_exit_of_code_that_c_called_loses_time_until_that_returns),
        isolated_test(an_exception_handled_in_code_that_c_called_leaves_the_outer_code_compiled),
        isolated_test(a_frame_that_catches_again_and_again_has_one_level),
        isolated_test(a_handler_of_a_callee_that_lost_time_leaves_it_to_the_outer_exit),
        isolated_test(an_exit_of_earlier_code_is_not_taken_for_a_later_one),
        isolated_test(compiling_is_not_lost),
        isolated_test(pauses_are_not_lost),
        isolated_test(time_without_a_cpu_is_not_lost),
        isolated_test(a_state_gets_no_time_without_a_cpu_from_those_before_it),
        isolated_test(a_short_state_loses_nothing_to_a_wait_before_it),
        isolated_test(a_wait_that_did_not_fit_before_a_state_was_in_it),
        isolated_test(a_thread_that_waits_needs_no_cpu),
        isolated_test(a_collection_without_a_cpu_takes_none_from_the_state_after_it),
        isolated_test(methods_in_c_are_not_lost),
        isolated_test(compiled_code_called_by_way_of_c_changes_nothing),
        isolated_test(a_fiber_has_its_own_levels),
        isolated_test(a_fiber_that_is_never_seen_leaves_no_gap),
        isolated_test(a_thread_begins_when_it_first_wants_to_run),
        isolated_test(a_thread_that_has_ended_has_one_event),
        isolated_test(the_longest_exit_may_be_one_that_never_ended),
        isolated_test(states_add_up_to_the_time_that_passed),
        isolated_test(calls_without_compiled_code_say_why),
        isolated_test(compiling_is_no_part_of_what_a_call_takes),
        isolated_test(first_and_last_calls_are_those_that_began_first_and_last),
        isolated_test(methods_that_are_entered_in_turn_are_all_timed),
        isolated_test(only_long_levels_are_slices),
        isolated_test(slices_that_a_reset_cuts_nest),
        isolated_test(without_a_jit_nothing_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
