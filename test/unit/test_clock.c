/*
 * The clock: its arithmetic on pairs that are made up, then on the machine's own.
 */
#include "harness.h"
#include "clock.h"

#include <string.h>
#include <time.h>

enum { MS = 1000000 };
/* A counter of 3 ticks a nanosecond that began long ago. */
#define TICKS(ns) (UINT64_C(123456789012345) + 3 * (uint64_t)(ns))
#define NS(ns) (UINT64_C(987654321000000) + (uint64_t)(ns))

static struct vm_trace_clock machine;

/* What clock_now_ns would say at those ticks. */
static uint64_t
told(const struct vm_trace_clock *ticking, uint64_t ticks)
{
    assert_true(ticks - ticking->anchor_ticks < ticking->horizon);
    return ticking->anchor_ns + clock_scale(ticking, ticks - ticking->anchor_ticks);
}

static void
no_ticks_are_scaled_before_the_scale_is_known(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = { 0 };
    assert_true(rb_vm_trace_clock_update(&ticking, TICKS(0), NS(0)) == NS(0));
    assert_int_equal(ticking.horizon, 0);
    assert_true(rb_vm_trace_clock_update(&ticking, TICKS(1000), NS(1000)) == NS(1000));
    assert_int_equal(ticking.horizon, 0);
    assert_true(rb_vm_trace_clock_update(&ticking, TICKS(2 * MS), NS(2 * MS)) == NS(2 * MS));
    assert_true(ticking.horizon > 0);
}

static void
scaled_time_is_that_of_the_system(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = { 0 };
    rb_vm_trace_clock_update(&ticking, TICKS(0), NS(0));
    rb_vm_trace_clock_update(&ticking, TICKS(5 * MS), NS(5 * MS));
    for (uint64_t ns = 5 * MS; ns < 14 * MS; ns += 12345) {
        uint64_t now = told(&ticking, TICKS(ns));
        assert_true(now <= NS(ns) && now + 10 > NS(ns));
    }
}

static void
horizon_is_10_ms_of_ticks(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = { 0 };
    rb_vm_trace_clock_update(&ticking, TICKS(0), NS(0));
    rb_vm_trace_clock_update(&ticking, TICKS(5 * MS), NS(5 * MS));
    assert_in_range(ticking.horizon, 3 * 10 * MS - 100, 3 * 10 * MS + 100);
}

/* The system's clock is slewed by up to 500 ppm, in either direction, and read with some jitter. */
static void
times_never_run_back_under_slew_and_jitter(void **state)
{
    (void)state;
    for (int ppm = -500; ppm <= 500; ppm += 250) {
        struct vm_trace_clock ticking = { 0 };
        uint64_t last = 0;
        uint32_t random = 99;
        for (uint64_t ns = 0; ns < 3000ull * MS; ns += 777777) {
            random = random * 1103515245 + 12345;
            /* The slew begins after a second. */
            uint64_t slewed = ns > 1000ull * MS ? ns + (uint64_t)((int64_t)(ns - 1000ull * MS) * ppm / MS) : ns;
            uint64_t now, system = NS(slewed + random / 65536 % 60);
            if (TICKS(ns) - ticking.anchor_ticks < ticking.horizon) now = told(&ticking, TICKS(ns));
            else now = rb_vm_trace_clock_update(&ticking, TICKS(ns), system);
            if (now < last) fail_msg("back by %llu ns at %llu, %d ppm", (unsigned long long)(last - now), (unsigned long long)ns, ppm);
            int64_t off = (int64_t)(now - system);
            if (off > 50000 || off < -50000) fail_msg("off by %lld ns at %llu, %d ppm", (long long)off, (unsigned long long)ns, ppm);
            /* And asked once more at once. */
            last = ticking.horizon ? told(&ticking, TICKS(ns)) : now;
            if (last < now) fail_msg("back by %llu ns after %llu, %d ppm", (unsigned long long)(now - last), (unsigned long long)ns, ppm);
        }
    }
}

static void
clock_that_is_ahead_has_met_the_system_at_the_next_horizon(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = { 0 };
    rb_vm_trace_clock_update(&ticking, TICKS(0), NS(0));
    rb_vm_trace_clock_update(&ticking, TICKS(5 * MS), NS(5 * MS));
    /* The system's clock became slower by 500 ppm just then. */
    uint64_t now = rb_vm_trace_clock_update(&ticking, TICKS(15 * MS), NS(15 * MS - 5000));
    assert_in_range(now, NS(15 * MS - 20), NS(15 * MS + 20));
    now = told(&ticking, TICKS(25 * MS - 1000));
    assert_in_range(now, NS(25 * MS - 10000 - 1000 - 100), NS(25 * MS - 10000 - 1000 + 100));
}

/* What was never told need not be kept to: the scale's small error adds up while nobody asks. */
static void
idle_clock_is_not_ahead_when_it_is_asked_again(void **state)
{
    (void)state;
    for (int ppm = -20; ppm <= 20; ppm += 10) {
        struct vm_trace_clock ticking = { 0 };
        rb_vm_trace_clock_update(&ticking, TICKS(0), NS(0));
        rb_vm_trace_clock_update(&ticking, TICKS(5 * MS), NS(5 * MS));
        uint64_t ns = 10000ull * MS, system = NS(ns + (uint64_t)((int64_t)ns * ppm / MS));
        uint64_t now = rb_vm_trace_clock_update(&ticking, TICKS(ns), system);
        if (now > system + 1000 || now < system) fail_msg("%lld ns off at %d ppm", (long long)(now - system), ppm);
    }
}

static void
jump_ahead_of_the_system_is_followed(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = { 0 };
    rb_vm_trace_clock_update(&ticking, TICKS(0), NS(0));
    rb_vm_trace_clock_update(&ticking, TICKS(5 * MS), NS(5 * MS));
    /* The machine slept: CLOCK_BOOTTIME went on for an hour, the counter did not. */
    uint64_t hour = 3600ull * 1000 * MS;
    assert_true(rb_vm_trace_clock_update(&ticking, TICKS(20 * MS), NS(20 * MS + hour)) == NS(20 * MS + hour));
    assert_int_equal(ticking.horizon, 0); /* the old scale is worth nothing */
    rb_vm_trace_clock_update(&ticking, TICKS(30 * MS), NS(30 * MS + hour));
    uint64_t now = told(&ticking, TICKS(31 * MS));
    assert_true(now <= NS(31 * MS + hour) && now + 10 > NS(31 * MS + hour));
}

/* After a move to another machine the counter may be anything. */
static void
counter_that_ran_back_begins_anew(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = { 0 };
    rb_vm_trace_clock_update(&ticking, TICKS(0), NS(0));
    rb_vm_trace_clock_update(&ticking, TICKS(5 * MS), NS(5 * MS));
    assert_true(rb_vm_trace_clock_update(&ticking, 1000, NS(20 * MS)) == NS(20 * MS));
    assert_int_equal(ticking.horizon, 0);
    assert_true(rb_vm_trace_clock_update(&ticking, 1000 + 6 * MS, NS(22 * MS)) == NS(22 * MS));
    assert_true(ticking.horizon > 0);
}

static void
machine_times_stand_between_those_of_the_system(void **state)
{
    (void)state;
    rb_vm_trace_clock_init();
    uint64_t last = 0, end = rb_vm_trace_clock_system_ns() + 60 * MS; /* some horizons */
    while (last < end) {
        uint64_t before = rb_vm_trace_clock_system_ns();
        uint64_t now = clock_now_ns(&machine);
        uint64_t after = rb_vm_trace_clock_system_ns();
        assert_true(now >= last);
        assert_true(now + 200000 > before && now < after + 200000); /* twice what the clock itself calls honest */
        last = now;
    }
}

static void
system_time_is_boottime(void **state)
{
    (void)state;
    struct timespec a, b;
    clock_gettime(CLOCK_BOOTTIME, &a);
    uint64_t now = rb_vm_trace_clock_system_ns();
    clock_gettime(CLOCK_BOOTTIME, &b);
    assert_true(now >= (uint64_t)a.tv_sec * 1000000000 + (uint64_t)a.tv_nsec);
    assert_true(now <= (uint64_t)b.tv_sec * 1000000000 + (uint64_t)b.tv_nsec);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(no_ticks_are_scaled_before_the_scale_is_known),
        isolated_test(scaled_time_is_that_of_the_system),
        isolated_test(horizon_is_10_ms_of_ticks),
        isolated_test(times_never_run_back_under_slew_and_jitter),
        isolated_test(clock_that_is_ahead_has_met_the_system_at_the_next_horizon),
        isolated_test(idle_clock_is_not_ahead_when_it_is_asked_again),
        isolated_test(jump_ahead_of_the_system_is_followed),
        isolated_test(counter_that_ran_back_begins_anew),
        isolated_test(machine_times_stand_between_those_of_the_system),
        isolated_test(system_time_is_boottime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
