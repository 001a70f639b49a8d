/*
 * Memory near compiled code: its branches reach it, and its branches reach the code.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* MAP_ANONYMOUS */
#endif
#include "harness.h"
#include "vm_trace/base/code_region.h"
#include "vm_trace/vm_trace_jit.h"

#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20 };

#ifdef __aarch64__
# define REACH ((size_t)128 * MIB)
#else
# define REACH ((size_t)INT32_MAX)
#endif

static char *
reserve_code(size_t bytes)
{
    void *code = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(code, MAP_FAILED);
    return code;
}

static size_t
distance(const char *a, const char *b)
{
    return a < b ? (size_t)(b - a) : (size_t)(a - b);
}

static void
memory_is_in_reach_of_the_start_of_the_code(void **state)
{
    for (size_t code_bytes = 32 * MIB; code_bytes <= (size_t)256 * MIB; code_bytes *= 2) {
        char *code = reserve_code(code_bytes);
        char *near = rb_vm_trace_reserve_code_region(code, code_bytes, 32 * MIB);
        assert_non_null(near);
        assert_true(distance(near, code) <= REACH);
        assert_true(distance(near + 32 * MIB, code) <= REACH);
        rb_vm_trace_release_code_region(near, 32 * MIB);
        munmap(code, code_bytes);
    }
}

static void
further_memory_is_other_memory_in_reach(void **state)
{
    char *code = reserve_code(64 * MIB), *near[3];
    for (int i = 0; i < 3; i++) {
        near[i] = rb_vm_trace_reserve_code_region(code, 64 * MIB, 4 * MIB);
        assert_non_null(near[i]);
        assert_true(distance(near[i], code) <= REACH && distance(near[i] + 4 * MIB, code) <= REACH);
        for (int j = 0; j < i; j++) assert_true(distance(near[i], near[j]) >= 4 * MIB);
    }
}

static void
written_memory_becomes_executable(void **state)
{
#if defined(__aarch64__)
    const uint32_t instructions[] = { 0x52800540, 0xD65F03C0 }; /* mov w0, 42; ret */
#elif defined(__x86_64__)
    const uint8_t instructions[] = { 0xB8, 42, 0, 0, 0, 0xC3 }; /* mov eax, 42; ret */
#else
    const uint8_t instructions[] = { 0 };
    skip_because("no code of this processor");
#endif
    char *code = reserve_code(MIB), *near = rb_vm_trace_reserve_code_region(code, MIB, 64 << 10);
    assert_true(rb_vm_trace_protect_code_region(near, 64 << 10, false));
    memcpy(near, instructions, sizeof(instructions));
    rb_vm_trace_code_written(near, sizeof(instructions));
    assert_true(rb_vm_trace_protect_code_region(near, 64 << 10, true));
    rb_vm_trace_code_changed();
    int (*function)(void);
    memcpy(&function, &near, sizeof(function));
    assert_int_equal(function(), 42);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(memory_is_in_reach_of_the_start_of_the_code),
        isolated_test(further_memory_is_other_memory_in_reach),
        isolated_test(written_memory_becomes_executable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
