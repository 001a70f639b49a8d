/*
 * What native threads run, as the kernel reader learns it from the notes of Ruby's threads.
 */
#include "harness.h"
#include "fake_host.h"
#include "vm_trace/streams/kernel/native_threads.h"

#include <string.h>

enum { FIRST = 42, SECOND = 999 /* that of a test, as the fake host has it */ };

static void
assert_runs(struct vm_trace_native_thread *thread, const char *name)
{
    assert_int_equal(thread->track.name_bytes, strlen(name));
    assert_memory_equal(thread->track.name, name, strlen(name));
}

static void
thread_that_goes_on_elsewhere_under_another_name_has_left(void **state)
{
    (void)state;
    struct rb_execution_context_struct ec = { .tid = FIRST, .thread_name = "worker", .name_id = 7 };
    fake_current(&ec);
    assert_true(rb_vm_trace_native_begin());
    struct vm_trace_native_thread *first = rb_vm_trace_native_thread(FIRST, 0);
    rb_vm_trace_native_at(first, 0);
    assert_runs(first, "worker");

    ec.thread_name = "renamed";
    ec.name_id = 8;
    rb_vm_trace_native_runs(&ec);
    struct vm_trace_native_thread *second = rb_vm_trace_native_thread(SECOND, 0);
    rb_vm_trace_native_at(second, UINT64_MAX);
    assert_runs(second, "renamed");
    assert_runs(first, "thread"); /* what the system calls it */
    rb_vm_trace_native_free_all();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(thread_that_goes_on_elsewhere_under_another_name_has_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
