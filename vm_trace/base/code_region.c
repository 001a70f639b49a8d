/*
 * Where compiled code is. Memory next to it is near_memory.c's.
 */
#include "vm_trace/base/code_region.h"
#include "vm_trace/base/near_memory.h"
#include "vm_trace/vm_trace_jit.h"

enum { MOST_REGIONS = 4 };
static struct {
    uintptr_t from, to;
} regions[MOST_REGIONS];
static size_t region_count;

/* Async-signal-safe readers may run: a region counts when all of it is there. */
static void
note_region(uintptr_t from, size_t bytes)
{
    size_t count = __atomic_load_n(&region_count, __ATOMIC_RELAXED);
    if (count == MOST_REGIONS) return;
    regions[count].from = from;
    regions[count].to = from + bytes;
    __atomic_store_n(&region_count, count + 1, __ATOMIC_RELEASE);
}

void
rb_vm_trace_code_region(const void *code, size_t bytes)
{
    note_region((uintptr_t)code, bytes);
    if (code) rb_vm_trace_near_memory_keep(code, bytes);
}

bool
rb_vm_trace_code_p(uintptr_t address)
{
    size_t count = __atomic_load_n(&region_count, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < count; i++) {
        if (address - regions[i].from < regions[i].to - regions[i].from) return true;
    }
    return false;
}

bool
rb_vm_trace_code_between_p(uintptr_t from, uintptr_t to)
{
    size_t count = __atomic_load_n(&region_count, __ATOMIC_ACQUIRE);
    if (!count) return false;
    /* Of what is on a stack. NOLINTNEXTLINE(performance-no-int-to-ptr) */
    const uintptr_t *word = (const uintptr_t *)((from + sizeof(*word) - 1) & ~(sizeof(*word) - 1));
    for (; (uintptr_t)(word + 1) <= to; word++) {
        if (rb_vm_trace_code_p(*word)) return true;
    }
    return false;
}
