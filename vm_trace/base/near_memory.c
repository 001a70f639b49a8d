/*
 * Memory in reach of all of the code, for jumps of 2 GiB. There is always some.
 */
#include "vm_trace/base/near_memory.h"
#include "vm_trace/platform/platform.h"
#include "vm_trace/vm_trace_jit.h"

#include <stdint.h>
#include <sys/mman.h>

#ifndef __aarch64__
#define STEP ((size_t)16 << 20)
#define REACH ((size_t)INT32_MAX) /* of a jump of x86-64, bytes */

/* Whether all of both is so near. */
static bool
in_reach(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes)
{
    return a <= b ? b - a + b_bytes <= REACH : a - b + a_bytes <= REACH;
}

static void *
reserve_at(uintptr_t address, uintptr_t code, size_t code_bytes, size_t bytes)
{
    if (!in_reach(address, bytes, code, code_bytes)) return NULL;
    /* Of addresses that nothing is at yet there are no pointers. NOLINTNEXTLINE(performance-no-int-to-ptr) */
    void *at = rb_vm_trace_platform_addresses((void *)address, bytes);
    if (!at) return NULL;
    if (in_reach((uintptr_t)at, bytes, code, code_bytes)) return at;
    munmap(at, bytes);
    return NULL;
}

void *
rb_vm_trace_reserve_code_region(const void *code, size_t code_bytes, size_t bytes)
{
    uintptr_t start = (uintptr_t)code, from = start & ~(STEP - 1);
    for (size_t distance = 0; distance < REACH; distance += STEP) {
        void *at = reserve_at(from + distance, start, code_bytes, bytes);
        if (!at && from > distance + bytes)
            at = reserve_at((from - distance - bytes) & ~(STEP - 1), start, code_bytes, bytes);
        if (at) return at;
    }
    return NULL;
}

void
rb_vm_trace_release_code_region(void *start, size_t bytes)
{
    munmap(start, bytes);
}

void
rb_vm_trace_near_memory_keep(const void *code, size_t bytes)
{
    (void)code, (void)bytes;
}

void
rb_vm_trace_code_written(const void *start, size_t bytes)
{
    (void)start, (void)bytes;
}

void
rb_vm_trace_code_changed(void)
{
}
#endif

bool
rb_vm_trace_protect_code_region(void *start, size_t bytes, bool executable)
{
    return mprotect(start, bytes, PROT_READ | (executable ? PROT_EXEC : PROT_WRITE)) == 0;
}
