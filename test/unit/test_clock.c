/*
 * The clock: its arithmetic on pairs that are made up, then on the machine's own.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* memfd_create */
#endif
#include "harness.h"
#include "vm_trace/base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000 };
/* A counter of 3 ticks a nanosecond that began long ago. */
#define TICKS(ns) (UINT64_C(123456789012345) + 3 * (uint64_t)(ns))
#define NS(ns) (UINT64_C(987654321000000) + (uint64_t)(ns))

static struct vm_trace_clock machine;

/* What the kernel is to call its source of time; NULL: what it does. */
static const char *kernel_source;

static const char *
file_of_kernel_source(const char *path)
{
    static char file[64];
    if (!kernel_source || !strstr(path, "/current_clocksource")) return path;
    int fd = memfd_create("clocksource", 0);
    assert_int_equal(write(fd, kernel_source, strlen(kernel_source)), strlen(kernel_source));
    snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
    return file;
}

/* What clock_now_ns would say at those ticks. */
static uint64_t
told(const struct vm_trace_clock *ticking, uint64_t ticks)
{
    assert_true(ticks - ticking->anchor_ticks < ticking->horizon);
    return ticking->anchor_ns + clock_scale(ticking, ticks - ticking->anchor_ticks);
}

/* A clock whose scale is known, from readings at 0 and 5 ms and one between them. */
static struct vm_trace_clock
running_clock(void)
{
    struct vm_trace_clock ticking = { 0 };
    rb_vm_trace_clock_update(&ticking, TICKS(0), NS(0));
    rb_vm_trace_clock_update(&ticking, TICKS(2 * MS), NS(2 * MS));
    rb_vm_trace_clock_update(&ticking, TICKS(5 * MS), NS(5 * MS));
    return ticking;
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
    assert_int_equal(ticking.horizon, 0); /* it is known when a second one agrees */
    assert_true(rb_vm_trace_clock_update(&ticking, TICKS(4 * MS), NS(4 * MS)) == NS(4 * MS));
    assert_true(ticking.horizon > 0);
}

static void
scaled_time_is_that_of_the_system(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = running_clock();
    for (uint64_t ns = 5 * MS; ns < 14 * MS; ns += 12345) {
        uint64_t now = told(&ticking, TICKS(ns));
        assert_true(now <= NS(ns) && now + 10 > NS(ns));
    }
}

static void
horizon_is_10_ms_of_ticks(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = running_clock();
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
    struct vm_trace_clock ticking = running_clock();
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
        struct vm_trace_clock ticking = running_clock();
        uint64_t ns = 10000ull * MS, system = NS(ns + (uint64_t)((int64_t)ns * ppm / MS));
        uint64_t now = rb_vm_trace_clock_update(&ticking, TICKS(ns), system);
        if (now > system + 1000 || now < system) fail_msg("%lld ns off at %d ppm", (long long)(now - system), ppm);
    }
}

static void
jump_ahead_of_the_system_is_followed(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = running_clock();
    /* The machine slept: CLOCK_BOOTTIME went on for an hour, the counter did not. */
    uint64_t hour = 3600ull * 1000 * MS;
    assert_true(rb_vm_trace_clock_update(&ticking, TICKS(20 * MS), NS(20 * MS + hour)) == NS(20 * MS + hour));
    assert_int_equal(ticking.horizon, 0); /* the old scale is worth nothing */
    rb_vm_trace_clock_update(&ticking, TICKS(25 * MS), NS(25 * MS + hour));
    rb_vm_trace_clock_update(&ticking, TICKS(30 * MS), NS(30 * MS + hour));
    uint64_t now = told(&ticking, TICKS(31 * MS));
    assert_true(now <= NS(31 * MS + hour) && now + 10 > NS(31 * MS + hour));
}

/* After a move to another machine the counter may be anything. */
static void
counter_that_ran_back_begins_anew(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = running_clock();
    assert_true(rb_vm_trace_clock_update(&ticking, 1000, NS(20 * MS)) == NS(20 * MS));
    assert_int_equal(ticking.horizon, 0);
    assert_true(rb_vm_trace_clock_update(&ticking, 1000 + 6 * MS, NS(22 * MS)) == NS(22 * MS));
    assert_true(rb_vm_trace_clock_update(&ticking, 1000 + 12 * MS, NS(24 * MS)) == NS(24 * MS));
    assert_true(ticking.horizon > 0);
}

/*
 * What the inline path and the slow one tell together, of a counter and a system's clock that a
 * test moves: never less than before.
 */
static uint64_t last_told;

static uint64_t
notify_hooks(struct vm_trace_clock *ticking, uint64_t ticks, uint64_t system)
{
    bool scaled = ticks - ticking->anchor_ticks < ticking->horizon;
    uint64_t now = scaled ? told(ticking, ticks) : rb_vm_trace_clock_update(ticking, ticks, system);
    if (now < last_told) {
        fail_msg("back by %llu ns at %llu ns", (unsigned long long)(last_told - now), (unsigned long long)(system - NS(0)));
    }
    return last_told = now;
}

/* Run for `ns`, telling the time every 100 us, at `ticks_per_us` of a counter that stands at *ticks. */
static void
run(struct vm_trace_clock *ticking, uint64_t *ticks, uint64_t *system, uint64_t ns, uint64_t ticks_per_us)
{
    for (uint64_t end = *system + ns; *system < end; ) {
        *system += 100000;
        *ticks += 100 * ticks_per_us;
        uint64_t now = notify_hooks(ticking, *ticks, *system);
        if (now > *system + 10100000) fail_msg("ahead by %llu ns", (unsigned long long)(now - *system));
    }
}

/* Moved to a machine whose counter is faster or slower, in the middle of a horizon. */
static void
time_does_not_run_back_when_the_counter_changes_its_rate(void **state)
{
    (void)state;
    static const uint64_t rates[] = { 300, 1500, 2900, 2999, 3001, 3100, 6000, 12000 };
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
        struct vm_trace_clock ticking = { 0 };
        uint64_t ticks = TICKS(0), system = NS(0);
        last_told = 0;
        run(&ticking, &ticks, &system, 33 * MS, 3000);
        run(&ticking, &ticks, &system, 1 * MS, rates[i]);
        run(&ticking, &ticks, &system, 100 * MS, rates[i]);
        run(&ticking, &ticks, &system, 100 * MS, 3000);
        uint64_t now = notify_hooks(&ticking, ticks += 300, system += 100);
        if (now > system + 20000 || now + 20000 < system) fail_msg("off by %lld ns at %llu", (long long)(now - system), (unsigned long long)rates[i]);
    }
}

/* A guest that was stopped: either clock may have gone on meanwhile, or both. */
static void
time_does_not_run_back_over_pauses_and_jumps(void **state)
{
    (void)state;
    static const uint64_t spans[] = { 50000, 3 * MS, 9 * MS, 11 * MS, 1000ull * MS, 3600ull * 1000 * MS, UINT64_C(86400000) * MS * 40 };
    for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
        for (int which = 1; which <= 3; which++) {
            for (uint64_t before = 100000; before < 31 * MS; before += 1700000) {
                struct vm_trace_clock ticking = { 0 };
                uint64_t ticks = TICKS(0), system = NS(0);
                last_told = 0;
                run(&ticking, &ticks, &system, before, 3000);
                if (which & 1) ticks += 3 * spans[i];
                if (which & 2) system += spans[i];
                run(&ticking, &ticks, &system, 60 * MS, 3000);
                uint64_t now = notify_hooks(&ticking, ticks += 300, system += 100);
                if (now > system + 1000 || now + 1000 < system) fail_msg("off by %lld ns", (long long)(now - system));
            }
        }
    }
}

static void
time_does_not_run_back_when_the_counter_is_set_back(void **state)
{
    (void)state;
    static const uint64_t counts[] = { 0, 1, 3 * MS, 1000ull * MS };
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        for (uint64_t before = 100000; before < 31 * MS; before += 1700000) {
            struct vm_trace_clock ticking = { 0 };
            uint64_t ticks = TICKS(0), system = NS(0);
            last_told = 0;
            run(&ticking, &ticks, &system, before, 3000);
            ticks = counts[i];
            run(&ticking, &ticks, &system, 60 * MS, 3000);
            uint64_t now = notify_hooks(&ticking, ticks += 300, system += 100);
            assert_true(now < system + 1000 && now + 1000 > system);
        }
    }
}

/* Two years, asked in bursts with long pauses between, by a counter that passes 2 to the 64th. */
static void
clock_is_right_for_years(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = { 0 };
    uint64_t ticks = UINT64_MAX - 3 * UINT64_C(86400000) * MS * 365, system = NS(0);
    last_told = 0;
    for (int day = 0; day < 2 * 365; day++) {
        run(&ticking, &ticks, &system, 25 * MS, 3000);
        uint64_t now = notify_hooks(&ticking, ticks += 300, system += 100);
        assert_true(now < system + 1000 && now + 1000 > system);
        system += UINT64_C(86400000) * MS;
        ticks += 3 * UINT64_C(86400000) * MS;
    }
}

/* The first two pairs have a jump between them: no scale may come of it that lasts. */
static void
rate_that_no_counter_has_is_not_used(void **state)
{
    (void)state;
    static const struct { uint64_t ticks, ns; } jumps[] = {
        { 1, 5 * MS }, { 100, UINT64_C(86400000) * MS }, { UINT64_C(1) << 60, 2 * MS }, { 1000, 2 * MS }
    };
    for (size_t i = 0; i < sizeof(jumps) / sizeof(*jumps); i++) {
        struct vm_trace_clock ticking = { 0 };
        uint64_t ticks = TICKS(0), system = NS(0);
        last_told = 0;
        notify_hooks(&ticking, ticks, system);
        notify_hooks(&ticking, ticks += jumps[i].ticks, system += jumps[i].ns);
        assert_int_equal(ticking.horizon, 0);
        run(&ticking, &ticks, &system, 30 * MS, 3000);
        uint64_t now = notify_hooks(&ticking, ticks += 300, system += 100);
        assert_true(now < system + 1000 && now + 1000 > system);
    }
}

static void
check_machine_times(void)
{
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
machine_times_stand_between_those_of_the_system(void **state)
{
    (void)state;
    check_machine_times();
}

static void
clock_without_ticks_reports_no_time_before_one_that_was_set(void **state)
{
    (void)state;
    kernel_source = "hpet\n";
    check_machine_times();
    assert_false(rb_vm_trace_clock_ticks_p());
    uint64_t later = rb_vm_trace_clock_system_ns() + 20 * MS;
    clock_not_before(&machine, later);
    assert_true(clock_now_ns(&machine) >= later);
}

#if CLOCK_HAS_TICKS
# ifdef __x86_64__
#  define COUNTER "tsc"
# else
#  define COUNTER "arch_sys_counter"
# endif
/* Whatever this kernel's is: an emulator shows that of another processor. */
static void
ticks_are_used_where_the_kernel_uses_them(void **state)
{
    (void)state;
    static const char *const others[] = { "", "\n", "jiffies\n", COUNTER, COUNTER "2\n" };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        kernel_source = others[i];
        rb_vm_trace_clock_init();
        assert_false(rb_vm_trace_clock_ticks_p());
    }
    kernel_source = COUNTER "\n";
    check_machine_times();
    assert_true(rb_vm_trace_clock_ticks_p());
    assert_true(machine.horizon > 0);
}

static void
stamp_of_a_clock_that_has_just_begun_has_its_time(void **state)
{
    (void)state;
    struct vm_trace_clock ticking = { 0 };
    assert_true(clock_stamp_ns(&ticking, TICKS(0), true) == UINT64_MAX);
    rb_vm_trace_clock_update(&ticking, TICKS(0), NS(0));
    rb_vm_trace_clock_update(&ticking, TICKS(2 * MS), NS(2 * MS));
    assert_int_equal(ticking.horizon, 0);
    static const int times[] = { 1000, MS, 2 * MS - 1, 2 * MS, 3 * MS };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        assert_in_range(clock_stamp_ns(&ticking, TICKS(times[i]), true), NS(times[i]) - 1, NS(times[i]) + 1);

    /* The machine's own, read once: whatever comes between, each stamp is between its neighbours. */
    rb_vm_trace_clock_init();
    if (!rb_vm_trace_clock_ticks_p()) return;
    struct vm_trace_clock begun = { 0 };
    uint64_t before = clock_now_ns(&begun), stamps[100];
    for (size_t i = 0; i < 100; i++) stamps[i] = clock_stamp(true);
    uint64_t after = rb_vm_trace_clock_system_ns();
    for (size_t i = 0; i < 100; i++) {
        uint64_t ns = clock_stamp_ns(&begun, stamps[i], true);
        assert_in_range(ns, before - 200000, after + 200000);
    }
}
#endif

static void
system_time_is_that_of_the_platform(void **state)
{
    (void)state;
    struct timespec a, b;
    clock_gettime(VM_TRACE_PLATFORM_CLOCK, &a);
    uint64_t now = rb_vm_trace_clock_system_ns();
    clock_gettime(VM_TRACE_PLATFORM_CLOCK, &b);
    assert_true(now >= (uint64_t)a.tv_sec * 1000000000 + (uint64_t)a.tv_nsec);
    assert_true(now <= (uint64_t)b.tv_sec * 1000000000 + (uint64_t)b.tv_nsec);
}

int
main(void)
{
    path_to_open = file_of_kernel_source;
    const struct CMUnitTest tests[] = {
        isolated_test(no_ticks_are_scaled_before_the_scale_is_known),
        isolated_test(scaled_time_is_that_of_the_system),
        isolated_test(horizon_is_10_ms_of_ticks),
        isolated_test(times_never_run_back_under_slew_and_jitter),
        isolated_test(clock_that_is_ahead_has_met_the_system_at_the_next_horizon),
        isolated_test(idle_clock_is_not_ahead_when_it_is_asked_again),
        isolated_test(jump_ahead_of_the_system_is_followed),
        isolated_test(counter_that_ran_back_begins_anew),
        isolated_test(time_does_not_run_back_when_the_counter_changes_its_rate),
        isolated_test(time_does_not_run_back_over_pauses_and_jumps),
        isolated_test(time_does_not_run_back_when_the_counter_is_set_back),
        isolated_test(clock_is_right_for_years),
        isolated_test(rate_that_no_counter_has_is_not_used),
        isolated_test(machine_times_stand_between_those_of_the_system),
        isolated_test(clock_without_ticks_reports_no_time_before_one_that_was_set),
#if CLOCK_HAS_TICKS
        isolated_test(ticks_are_used_where_the_kernel_uses_them),
        isolated_test(stamp_of_a_clock_that_has_just_begun_has_its_time),
#endif
        isolated_test(system_time_is_that_of_the_platform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
