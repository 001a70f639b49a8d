/*
 * Resets of the flight recorder: what counts afterwards, whatever the ractors are at, and what it costs them.
 */
#include "harness.h"
#include "vm_trace/session/session.h"
#include "vm_trace/streams/exit_state.h"
#include "vm_trace/session/snapshot.h"
#include "traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rb_iseq_struct foo;
static struct rb_vm_trace_site *sites[3];
static struct rb_ractor_struct ractor;
static struct rb_execution_context_struct thread = { .ractor = &ractor, .tid = 1002, .thread_name = "other", .name_id = 7 };

static void
(start)(struct rb_vm_trace_config config)
{
    rb_vm_trace_session.memory.bytes = 16 << 20;
    (start_traced)(config);
    foo = fake_iseq("foo", "a.rb");
    static const char *const reasons[] = { "A", "B", "C" };
    for (unsigned i = 0; i < 3; i++) sites[i] = make_site(RB_VM_TRACE_SIDE_EXIT, reasons[i], &foo, 1 + i);
    fake_push(&main_thread, &foo, 1);
    ractor.vm_trace = rb_vm_trace_ractor_new();
    fake_push(&thread, &foo, 1);
}
#define start(...) (start)((struct rb_vm_trace_config){ __VA_ARGS__ })

static void
end(void)
{
    rb_vm_trace_shutdown();
    rb_vm_trace_ractor_free(ractor.vm_trace);
    free_traced();
    fake_free_stack(&thread);
    free(traced_path);
}

static void
exits(unsigned times, struct rb_execution_context_struct *ec)
{
    for (unsigned i = 0; i < times; i++) take_exit(sites[i % 3], ec);
}

static void
reset(void)
{
    assert_true(rb_vm_trace_recorder_reset(main_ractor.vm_trace));
}

static struct trace *
saved(void)
{
    struct rb_vm_trace_save save = { .path = traced_path, .why = "save" };
    assert_int_equal(rb_vm_trace_snapshot_begin(false), VM_TRACE_SNAPSHOT_BEGUN);
    rb_vm_trace_recorder_write(&save);
    if (save.error) fail_msg("%s: %s", traced_path, save.reason);
    return trace_read(traced_path);
}

/* In a saved trace, and in what `status` says. */
static void
assert_counts(uint64_t hits, uint64_t sampled)
{
    struct trace *trace = saved();
    assert_summary(trace, hits, sampled, 0);
    trace_free(trace);
    struct rb_vm_trace_status status;
    rb_vm_trace_status(&status);
    assert_int_equal(status_count(status, "exits"), hits);
    assert_int_equal(status.sampled, sampled);
    assert_int_equal(status.lost, 0);
}

/* What code does before it calls: count. */
static void
count_hit(const struct rb_vm_trace_site *site, const struct rb_execution_context_struct *ec)
{
    ++*(uint64_t *)((char *)ec->ractor->vm_trace + rb_vm_trace_hits_offset(site));
}

static void
other_ractors_begin_anew_at_their_next_exit(void **state)
{
    (void)state;
    start(.exit_rate = 1);
    exits(5, &thread);
    exits(3, &main_thread);
    reset();
    assert_counts(0, 0);
    exits(4, &thread);
    assert_counts(4, 4);
    reset();
    reset();
    exits(1, &thread);
    exits(2, &main_thread);
    assert_counts(3, 3);
    end();
}

static void
status_counts_events_from_the_reset_as_it_does_exits(void **state)
{
    (void)state;
    start(.exit_rate = 1, .compiles = true);
    exits(50, &main_thread);
    rb_vm_trace_capture.overflow->lost = rb_vm_trace_capture.dead.lost = main_ractor.vm_trace->lost = 5;
    reset();
    exits(7, &main_thread);
    rb_vm_trace_span_begin(RB_VM_TRACE_PHASE, "phase", 5);
    rb_vm_trace_span_end(RB_VM_TRACE_PHASE, "phase", 5);
    struct rb_vm_trace_status status;
    rb_vm_trace_status(&status);
    assert_int_equal(status_count(status, "exits"), 7);
    assert_int_equal(status.sampled, 7);
    assert_int_equal(status.events, 9);
    assert_int_equal(status.lost, 0);
    assert_null(status.loss);
    end();
}

/* Between the count in machine code and its call to C: the exit is then one after the reset, whole. */
static void
check_exit_in_flight(unsigned rate)
{
    start(.exit_rate = rate);
    exits(30, &thread);
    count_hit(sites[1], &thread);
    if (rate > 1) exits_of(thread.ractor->vm_trace)->countdown = 0; /* it was the one in K */
    reset();
    rb_vm_trace_exit(ractor.vm_trace, sites[1], &thread);
    struct trace *trace = saved();
    assert_summary(trace, 1, 1, 0);
    assert_int_equal(site_hits(trace, "B"), 1);
    trace_free(trace);
    end();
}

static void
exit_that_is_counted_before_a_reset_and_recorded_after_it_has_its_hit(void **state)
{
    (void)state;
    check_exit_in_flight(1);
}

static void
sampled_exit_that_is_counted_before_a_reset_and_recorded_after_it_has_its_hit(void **state)
{
    (void)state;
    check_exit_in_flight(3);
}

static void
recompile_exit_that_a_reset_comes_into_is_after_it(void **state)
{
    (void)state;
    start(.exit_rate = 1, .compiles = true);
    struct rb_vm_trace_site *site = make_site(RB_VM_TRACE_RECOMPILE_EXIT, "R", &foo, 9);
    fake_current(&thread);
    for (unsigned i = 0; i < 2; i++) {
        exits(3, &thread);
        count_hit(site, &thread);
        uint64_t start_ns = rb_vm_trace_recompile_begin(ractor.vm_trace, site, true);
        reset();
        if (i == 1) { /* the reset is noticed before the exit is recorded */
            rb_vm_trace_span_begin(RB_VM_TRACE_PHASE, "phase", 5);
            rb_vm_trace_span_end(RB_VM_TRACE_PHASE, "phase", 5);
        }
        rb_vm_trace_recompile_exit(ractor.vm_trace, site, &thread, start_ns, RB_VM_TRACE_PROFILING);
        assert_counts(1, 1);
    }
    fake_current(&main_thread);
    end();
}

/*
 * A reset copies the counters of those that have moved; at K = 5 the countdown is where it was
 * after any multiple of that.
 */
static void
sampled_hits_are_exact_after_any_number_of_exits(void **state)
{
    (void)state;
    start(.exit_rate = 5);
    for (unsigned before = 0; before <= 11; before++) {
        for (unsigned after = 0; after <= 11; after++) {
            exits(before, &thread);
            reset();
            exits(after, &thread);
            struct rb_vm_trace_status status;
            rb_vm_trace_status(&status);
            assert_int_equal(status_count(status, "exits"), after);
        }
    }
    end();
}

/* Fallbacks count down by themselves, and exits of which all are recorded do not. */
static void
hits_are_exact_where_only_fallbacks_are_sampled(void **state)
{
    (void)state;
    start(.exit_rate = 1, .fallback_rate = 5);
    struct rb_vm_trace_site *fallback = make_site(RB_VM_TRACE_FALLBACK, "F", &foo, 9);
    for (unsigned before = 0; before <= 11; before++) {
        unsigned fallbacks = before % 4 == 1 ? 7 : 0; /* else only exits tell that the ractor went on */
        exits(before, &thread);
        for (unsigned i = 0; i < fallbacks; i++) rb_vm_trace_hit(fallback, &thread);
        reset();
        exits(2, &thread);
        for (unsigned i = 0; i < fallbacks; i++) rb_vm_trace_hit(fallback, &thread);
        struct rb_vm_trace_status status;
        rb_vm_trace_status(&status);
        assert_int_equal(status_count(status, "exits"), 2);
        assert_int_equal(status_count(status, "fallbacks"), fallbacks);
        assert_int_equal(status.sampled, 2);
    }
    end();
}

static void
check_ractors_that_go(unsigned rate)
{
    start(.exit_rate = rate);
    for (unsigned round = 0; round < 3; round++) {
        exits(6, &thread);
        if (round != 1) reset();
        exits(round == 2 ? 0 : 3, &thread);
        rb_vm_trace_ractor_free(ractor.vm_trace);
        ractor.vm_trace = rb_vm_trace_ractor_new();
        struct rb_vm_trace_status status;
        rb_vm_trace_status(&status);
        uint64_t expected[] = { 3, 12, 0 }; /* the second round adds to the first */
        assert_int_equal(status_count(status, "exits"), expected[round]);
        exits(3, &thread); /* the spare's counts and this one's are added */
        rb_vm_trace_status(&status);
        assert_int_equal(status_count(status, "exits"), expected[round] + 3);
        reset();
        exits(3, &thread);
        rb_vm_trace_ractor_free(ractor.vm_trace);
        ractor.vm_trace = rb_vm_trace_ractor_new();
        if (round == 1) reset();
        rb_vm_trace_status(&status);
        assert_int_equal(status_count(status, "exits"), round == 1 ? 0 : 3);
    }
    end();
}

static void
what_ractors_counted_before_a_reset_is_gone_with_them(void **state)
{
    (void)state;
    check_ractors_that_go(1);
}

static void
what_ractors_counted_before_a_reset_is_gone_with_them_where_they_sample(void **state)
{
    (void)state;
    check_ractors_that_go(3);
}

static void
site_in_the_place_of_a_dead_one_counts_from_0(void **state)
{
    (void)state;
    start(.exit_rate = 1);
    struct rb_iseq_struct bar = fake_iseq("bar", "b.rb");
    struct rb_vm_trace_site *dying = make_site(RB_VM_TRACE_SIDE_EXIT, "Dying", &bar, 1);
    for (unsigned i = 0; i < 9; i++) take_exit(dying, &thread);
    reset();
    take_exit(dying, &thread);
    rb_vm_trace_iseq_free(&bar);
    struct rb_vm_trace_site *next = make_site(RB_VM_TRACE_SIDE_EXIT, "Next", &foo, 5);
    assert_ptr_equal(next, dying);
    take_exit(next, &thread);
    take_exit(next, &thread);
    struct trace *trace = saved();
    assert_summary(trace, 3, 3, 0);
    assert_int_equal(site_hits(trace, "Next"), 2);
    trace_free(trace);
    end();
}

static void
events_right_after_a_reset_are_not_before_it(void **state)
{
    (void)state;
    start(.exit_rate = 1);
    for (unsigned i = 0; i < 300; i++) {
        exits(1, &thread);
        reset();
        exits(1, &thread);
        exits(1, &main_thread);
    }
    assert_counts(2, 2);
    end();
}

/* A clock that is scaled may run ahead of the others: what counts is when a ractor has noticed the reset. */
static void
events_before_a_reset_are_not_after_it_though_their_clock_is_ahead(void **state)
{
    (void)state;
    skip_without_ticks();
    start(.exit_rate = 1);
    stop_clock();
    exits(3, &main_thread);
    reset();
    assert_counts(0, 0);
    exits(2, &main_thread);
    exits(1, &thread);
    assert_counts(3, 3);
    end();
}

/* --- all at once -------------------------------------------------------------------------------------- */

enum { RACTORS = 4, ROUNDS = 100, TURNS = 200 };

static struct worker {
    pthread_t native;
    struct rb_ractor_struct ractor;
    struct rb_execution_context_struct thread;
    char name[8];
} workers[RACTORS];

static pthread_barrier_t round_begins, round_ends;

/* The last reset of a round falls anywhere into the exits of the others. */
static void *
work(void *argument)
{
    struct worker *worker = argument;
    fake_current(&worker->thread);
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&round_begins);
        for (unsigned i = 0; i < TURNS; i++) {
            bool resets = i < TURNS / 2 && i % RACTORS == (worker->thread.tid + round) % RACTORS;
            if (resets && !rb_vm_trace_recorder_reset(worker->ractor.vm_trace)) abort();
            exits(1 + i % 5, &worker->thread);
        }
        pthread_barrier_wait(&round_ends);
    }
    return NULL;
}

static void
run_workers(void (*check)(const struct trace *trace))
{
    pthread_barrier_init(&round_begins, NULL, RACTORS + 1);
    pthread_barrier_init(&round_ends, NULL, RACTORS + 1);
    for (unsigned i = 0; i < RACTORS; i++) {
        struct worker *worker = &workers[i];
        sprintf(worker->name, "w%u", i);
        worker->ractor.vm_trace = rb_vm_trace_ractor_new();
        worker->thread = (struct rb_execution_context_struct){ .ractor = &worker->ractor, .tid = 2000 + i, .thread_name = worker->name, .name_id = 5 };
        fake_push(&worker->thread, &foo, 1);
        assert_int_equal(pthread_create(&worker->native, NULL, work, worker), 0);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&round_begins);
#ifndef __SANITIZE_THREAD__ /* words that nobody waits for are read as they are */
        if (round % 10 == 0) trace_free(saved()); /* whatever is in it, it is a valid trace */
#endif
        pthread_barrier_wait(&round_ends);
        struct trace *trace = saved();
        check(trace);
        trace_free(trace);
    }
    for (unsigned i = 0; i < RACTORS; i++) pthread_join(workers[i].native, NULL);
    pthread_barrier_destroy(&round_begins);
    pthread_barrier_destroy(&round_ends);
}

static void
free_workers(void)
{
    for (unsigned i = 0; i < RACTORS; i++) {
        rb_vm_trace_ractor_free(workers[i].ractor.vm_trace);
        fake_free_stack(&workers[i].thread);
    }
}

/* Wherever the last reset fell: each exit that counts has its event, and each event its hit. */
static void
check_equal(const struct trace *trace)
{
    size_t exits = trace_count(trace, "side_exit", NULL);
    assert_summary(trace, exits, exits, 0);
    for (unsigned i = 0; i < 3; i++) {
        const char *reason[] = { "A", "B", "C" };
        assert_int_equal(site_hits(trace, reason[i]), trace_count(trace, "side_exit", reason[i]));
    }
}

static void
hits_are_events_however_many_ractors_reset(void **state)
{
    (void)state;
    start(.exit_rate = 1);
    run_workers(check_equal);
    reset();
    for (unsigned i = 0; i < RACTORS; i++) exits(6 * (i + 1), &workers[i].thread);
    assert_counts(60, 60);
    free_workers();
    end();
}

static void
check_covered(const struct trace *trace)
{
    for (unsigned i = 0; i < 3; i++) {
        const char *reason[] = { "A", "B", "C" };
        assert_true(site_hits(trace, reason[i]) >= trace_count(trace, "side_exit", reason[i]));
    }
}

static void
hits_cover_samples_however_many_ractors_reset(void **state)
{
    (void)state;
    start(.exit_rate = 3);
    run_workers(check_covered);
    reset();
    for (unsigned i = 0; i < RACTORS; i++) exits(6 * (i + 1), &workers[i].thread);
    struct rb_vm_trace_status status;
    rb_vm_trace_status(&status);
    assert_int_equal(status_count(status, "exits"), 60);
    free_workers();
    end();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(other_ractors_begin_anew_at_their_next_exit),
        isolated_test(status_counts_events_from_the_reset_as_it_does_exits),
        isolated_test(exit_that_is_counted_before_a_reset_and_recorded_after_it_has_its_hit),
        isolated_test(sampled_exit_that_is_counted_before_a_reset_and_recorded_after_it_has_its_hit),
        isolated_test(recompile_exit_that_a_reset_comes_into_is_after_it),
        isolated_test(sampled_hits_are_exact_after_any_number_of_exits),
        isolated_test(hits_are_exact_where_only_fallbacks_are_sampled),
        isolated_test(what_ractors_counted_before_a_reset_is_gone_with_them),
        isolated_test(what_ractors_counted_before_a_reset_is_gone_with_them_where_they_sample),
        isolated_test(site_in_the_place_of_a_dead_one_counts_from_0),
        isolated_test(events_right_after_a_reset_are_not_before_it),
        isolated_test(events_before_a_reset_are_not_after_it_though_their_clock_is_ahead),
        isolated_test(hits_are_events_however_many_ractors_reset),
        isolated_test(hits_cover_samples_however_many_ractors_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
