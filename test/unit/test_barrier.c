/*
 * Barriers that other threads pass: they order a store of such a thread and its load after it, which
 * processors do not keep in order. And what happens where the kernel has no such call.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* RTLD_NEXT */
#endif
#include "harness.h"
#include "vm_trace/platform/platform.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What membarrier fails with; 0: it does not. */
static int refusal;
static int calls;

/* Instead of the C library's. */
long
syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    long one = va_arg(arguments, long), two = va_arg(arguments, long), three = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_membarrier) {
        calls++;
        if (refusal) {
            errno = refusal;
            return -1;
        }
    }
    static long (*real)(long, ...);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, one, two, three);
}

enum { ROUNDS = 5000 };

/* Each thread stores to its own word and reads that of the other. One of them sees a store. */
static struct {
    int fast, slow, seen_by_fast;
    int round, done;
} shared;

/* A thread that has no processor is not waited for on the one that it could have. */
static void
wait_for_round(const int *word, int round)
{
    for (int looks = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) != round; looks++) {
        if (looks >= 10000) sched_yield();
    }
}

static void *
store_and_load(void *nothing)
{
    for (int round = 1; round <= ROUNDS; round++) {
        wait_for_round(&shared.round, round);
        __atomic_store_n(&shared.fast, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* of the compiler's */
        int seen = __atomic_load_n(&shared.slow, __ATOMIC_RELAXED);
        __atomic_store_n(&shared.seen_by_fast, seen, __ATOMIC_RELAXED);
        __atomic_store_n(&shared.done, round, __ATOMIC_RELEASE);
    }
    return nothing;
}

static void
threads_pass_the_barrier_without_one_of_their_own(void **state)
{
    if (!rb_vm_trace_platform_barrier()) skip_because("this kernel refuses membarrier");
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) skip_because("threads run side by side on two processors only");
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, store_and_load, NULL), 0);
    int neither = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        shared.fast = shared.slow = 0;
        __atomic_store_n(&shared.round, round, __ATOMIC_RELEASE);
        __atomic_store_n(&shared.slow, 1, __ATOMIC_RELAXED);
        assert_true(rb_vm_trace_platform_barrier());
        int seen = __atomic_load_n(&shared.fast, __ATOMIC_RELAXED);
        wait_for_round(&shared.done, round);
        if (!seen && !__atomic_load_n(&shared.seen_by_fast, __ATOMIC_RELAXED)) neither++;
    }
    pthread_join(other, NULL);
    assert_int_equal(neither, 0);
}

static void
process_is_registered_once(void **state)
{
    if (!rb_vm_trace_platform_sync_cores()) skip_because("this kernel does not know this barrier");
    int first = calls;
    assert_true(rb_vm_trace_platform_sync_cores());
    assert_int_equal(calls - first, 1);
}

static void
forked_child_passes_the_barrier(void *nothing)
{
    assert_true(rb_vm_trace_platform_barrier());
}

static void
child_has_the_barrier_too(void **state)
{
    if (!rb_vm_trace_platform_barrier()) skip_because("this kernel refuses membarrier");
    in_child(forked_child_passes_the_barrier, NULL);
}

static void
refused_call_is_reported_and_leaves_errno(void **state)
{
    const int refusals[] = { EPERM, ENOSYS, EINVAL };
    for (int i = 0; i < 3; i++) {
        refusal = refusals[i];
        errno = EINTR;
        assert_false(rb_vm_trace_platform_barrier());
        assert_false(rb_vm_trace_platform_sync_cores());
        assert_int_equal(errno, EINTR);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(threads_pass_the_barrier_without_one_of_their_own),
        isolated_test(process_is_registered_once),
        isolated_test(child_has_the_barrier_too),
        isolated_test(refused_call_is_reported_and_leaves_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
