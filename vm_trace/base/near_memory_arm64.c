/*
 * Memory near code whose branches reach 128 MiB. The code may be as large, so not every branch reaches
 * everything: who writes one checks that. Code is used from its start, so what is below it is nearest.
 *
 * Later there may be none, so some is kept from the start: address space without memory.
 *
 *   | stubs of a session, 32 MiB | what stays, in units of 64 KiB | code ...
 */
#include "vm_trace/base/near_memory.h"
#include "vm_trace/platform/platform.h"
#include "vm_trace/vm_trace_jit.h"

#include <stdint.h>
#include <sys/mman.h>

#ifdef __aarch64__
#define MIB ((size_t)1 << 20)
#define REACH (128 * MIB)
#define FARTHEST_BELOW (64 * MIB) /* from the start of the code to the end of the memory */
#define LARGE (32 * MIB)          /* MOST_STUBS_BYTES in jit/arm64.rs */
#define UNIT ((size_t)64 << 10)   /* the largest page */

enum { UNITS = 16, MOST_KEPT = 4 };

/* Changed with the world stopped. */
static struct kept {
    const void *code;
    char *start;          /* of LARGE, then UNITS units; NULL: none */
    bool large_taken;
    unsigned units_taken; /* from the end; they stay */
} kept[MOST_KEPT];

static bool
in_reach(uintptr_t at, size_t bytes, uintptr_t code)
{
    return at < code ? code - at <= bytes + FARTHEST_BELOW : at - code + bytes <= REACH;
}

static void *
reserve_at(uintptr_t address, uintptr_t code, size_t bytes)
{
    if (!in_reach(address, bytes, code)) return NULL;
    /* Of addresses that nothing is at yet there are no pointers. NOLINTNEXTLINE(performance-no-int-to-ptr) */
    void *at = rb_vm_trace_platform_addresses((void *)address, bytes);
    if (!at) return NULL;
    if (in_reach((uintptr_t)at, bytes, code)) return at;
    munmap(at, bytes);
    return NULL;
}

/* The nearest, below the code first. */
static void *
find(const void *code, size_t code_bytes, size_t bytes)
{
    uintptr_t start = (uintptr_t)code;
    for (size_t distance = 0; distance < REACH; distance += MIB) {
        uintptr_t below = (start - distance - bytes) & ~(UNIT - 1), above = (start + distance + UNIT - 1) & ~(UNIT - 1);
        void *at = start > distance + bytes ? reserve_at(below, start, bytes) : NULL;
        if (!at && above >= start + code_bytes) at = reserve_at(above, start, bytes);
        if (at) return at;
    }
    return NULL;
}

void
rb_vm_trace_near_memory_keep(const void *code, size_t bytes)
{
    for (int i = 0; i < MOST_KEPT; i++) {
        if (kept[i].code) continue;
        kept[i].code = code;
        kept[i].start = find(code, bytes, LARGE + UNITS * UNIT);
        return;
    }
}

static void *
take(struct kept *from, size_t bytes)
{
    if (bytes > LARGE) return NULL;
    if (bytes > UNIT) {
        if (from->large_taken) return NULL;
        from->large_taken = true;
        return from->start + LARGE - bytes;
    }
    if (from->units_taken == UNITS) return NULL;
    return from->start + LARGE + (UNITS - ++from->units_taken) * UNIT;
}

void *
rb_vm_trace_reserve_code_region(const void *code, size_t code_bytes, size_t bytes)
{
    for (int i = 0; i < MOST_KEPT; i++) {
        void *at = kept[i].code == code && kept[i].start ? take(&kept[i], bytes) : NULL;
        if (at) return at;
    }
    return find(code, code_bytes, bytes);
}

void
rb_vm_trace_release_code_region(void *start, size_t bytes)
{
    for (int i = 0; i < MOST_KEPT; i++) {
        size_t offset = (size_t)((char *)start - kept[i].start);
        if (!kept[i].start || offset >= LARGE + UNITS * UNIT) continue;
        /* The pages go, the addresses stay ours. */
        if (!rb_vm_trace_platform_release(start, bytes)) return;
        if (offset < LARGE) kept[i].large_taken = false;
        return;
    }
    munmap(start, bytes);
}

void
rb_vm_trace_code_written(const void *start, size_t bytes)
{
    char *from = (char *)start;
    __builtin___clear_cache(from, from + bytes);
}

/* Without such a barrier it is as when the JITs change code themselves: doc/internals/arm64.md. */
void
rb_vm_trace_code_changed(void)
{
    (void)rb_vm_trace_platform_sync_cores();
}
#endif
