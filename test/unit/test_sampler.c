/*
 * Moments that are due: one in each period, wherever the program's rhythm lies, each charged once, and to the phase
 * that a thread was in at that moment, however late anybody looks.
 */
#include "harness.h"
#include "vm_trace/base/clock.h"
#include "vm_trace/platform/platform.h"
#include "vm_trace/streams/samples/sampler.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#define PERIOD_NS UINT64_C(1000000)
#define FAR_NS (UINT64_C(1) << 50) /* the sampler's own thread does not look then */
enum { PERIODS = 20000 };

static void
take_nothing(struct vm_trace_sampled *thread, void *context)
{
    (void)thread, (void)context;
}

static struct vm_trace_sampled *
start(uint64_t *from_ns_out)
{
    const struct vm_trace_sampling sampling = { PERIOD_NS, false, take_nothing };
    uint32_t session = 0, number = 0;
    assert_null(rb_vm_trace_sampler_start(&sampling));
    struct vm_trace_sampled *thread = rb_vm_trace_sampled_of(&session, &number);
    assert_non_null(thread);
    sampled_phase(thread, VM_TRACE_WAITS);
    *from_ns_out = rb_vm_trace_clock_system_ns() + FAR_NS;
    rb_vm_trace_sampled_charge_due(thread, *from_ns_out);
    for (int charge = 0; charge < VM_TRACE_CHARGES; charge++) sampled_take(thread, (enum vm_trace_charge)charge);
    return thread;
}

/* How many of the moments a phase of that share of each period gets, which begins where the period of the test does. */
static uint64_t
moments_of(struct vm_trace_sampled *thread, uint64_t from_ns, double share)
{
    for (uint64_t i = 0; i < PERIODS; i++) {
        sampled_phase(thread, VM_TRACE_RUNS);
        rb_vm_trace_sampled_charge_due(thread, from_ns + i * PERIOD_NS + (uint64_t)(share * PERIOD_NS));
        sampled_phase(thread, VM_TRACE_BLOCKS);
        rb_vm_trace_sampled_charge_due(thread, from_ns + (i + 1) * PERIOD_NS);
    }
    struct vm_trace_charged ran = sampled_take(thread, VM_TRACE_CHARGE_RUNNING);
    struct vm_trace_charged blocked = sampled_take(thread, VM_TRACE_CHARGE_BLOCKED);
    assert_int_equal(ran.ns, ran.ticks * PERIOD_NS);
    assert_int_equal(blocked.ns, blocked.ticks * PERIOD_NS);
    assert_in_range(ran.ticks + blocked.ticks, PERIODS - 1, PERIODS + 1); /* the first and the last are in part there */
    return ran.ticks;
}

static void
phase_gets_its_share_of_the_moments(void **state)
{
    (void)state;
    static const double shares[] = { 0.05, 0.3, 0.5, 0.8 };
    uint64_t from_ns;
    struct vm_trace_sampled *thread = start(&from_ns);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        double expected = PERIODS * shares[i], error = sqrt(expected * (1 - shares[i]));
        double found = (double)moments_of(thread, from_ns + i * 2 * PERIODS * PERIOD_NS + PERIOD_NS / 3 * i, shares[i]);
        sampled_take(thread, VM_TRACE_CHARGE_BLOCKED);
        sampled_take(thread, VM_TRACE_CHARGE_RUNNING);
        assert_true(fabs(found - expected) < 6.2 * error); /* farther off once in a billion times */
        rb_vm_trace_sampled_charge_due(thread, from_ns + (i + 1) * (2 * PERIODS * PERIOD_NS + PERIOD_NS / 3));
        sampled_take(thread, VM_TRACE_CHARGE_BLOCKED);
    }
    rb_vm_trace_sampler_stop();
}

static void
late_look_charges_the_phase_of_the_moment(void **state)
{
    (void)state;
    uint64_t from_ns;
    struct vm_trace_sampled *thread = start(&from_ns);
    sampled_phase(thread, VM_TRACE_RUNS);
    rb_vm_trace_sampled_charge_due(thread, from_ns + 10 * PERIOD_NS); /* as who changes the phase does */
    sampled_phase(thread, VM_TRACE_BLOCKS);
    rb_vm_trace_sampled_charge_due(thread, from_ns + 10 * PERIOD_NS); /* who looks only now */
    assert_in_range(sampled_take(thread, VM_TRACE_CHARGE_RUNNING).ticks, 9, 11);
    assert_int_equal(sampled_take(thread, VM_TRACE_CHARGE_BLOCKED).ticks, 0);
    rb_vm_trace_sampler_stop();
}

struct looker {
    struct vm_trace_sampled *thread;
    uint64_t from_ns, to_ns;
};

static void *
look_often(void *data)
{
    const struct looker *looker = data;
    for (uint64_t ns = looker->from_ns; ns <= looker->to_ns; ns += PERIOD_NS / 7)
        rb_vm_trace_sampled_charge_due(looker->thread, ns);
    rb_vm_trace_sampled_charge_due(looker->thread, looker->to_ns);
    return NULL;
}

static void
each_moment_is_charged_once_whoever_looks(void **state)
{
    (void)state;
    enum { LOOKERS = 3 };
    uint64_t from_ns;
    struct looker looker = { .thread = start(&from_ns) };
    looker.from_ns = from_ns;
    looker.to_ns = from_ns + PERIODS * PERIOD_NS;
    sampled_phase(looker.thread, VM_TRACE_BLOCKS);
    pthread_t threads[LOOKERS];
    for (int i = 0; i < LOOKERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, look_often, &looker), 0);
    for (int i = 0; i < LOOKERS; i++) pthread_join(threads[i], NULL);
    assert_in_range(sampled_take(looker.thread, VM_TRACE_CHARGE_BLOCKED).ticks, PERIODS - 1, PERIODS + 1);
    rb_vm_trace_sampler_stop();
}

/* False: the kernel counts no delays. */
static bool
read_delay(uint32_t tid, unsigned long long *ns_out)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%u/schedstat", (unsigned)tid);
    FILE *file = fopen(path, "r");
    bool read = file && fscanf(file, "%*u %llu", ns_out) == 1;
    if (file) fclose(file);
    return read;
}

static void
delay_is_what_the_kernel_counts(void **state)
{
    (void)state;
    uint32_t tid = rb_vm_trace_platform_thread_id();
    unsigned long long before_ns, after_ns;
    if (!read_delay(tid, &before_ns)) skip();
    uint64_t ns = rb_vm_trace_platform_thread_delay_ns(tid);
    assert_true(read_delay(tid, &after_ns));
    assert_in_range(ns, before_ns, after_ns);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(phase_gets_its_share_of_the_moments),
        isolated_test(late_look_charges_the_phase_of_the_moment),
        isolated_test(each_moment_is_charged_once_whoever_looks),
        isolated_test(delay_is_what_the_kernel_counts),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
