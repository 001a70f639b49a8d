#ifndef RUBY_VM_TRACE_BASE_TICKS_H
#define RUBY_VM_TRACE_BASE_TICKS_H 1
/*
 * The processor's counter, where reading it takes less than a call of the system's clock. For
 * clock.h, which says when it may be used.
 */

#include "vm_trace/platform/platform.h"

#include <stdint.h>

#if VM_TRACE_PLATFORM_COUNTER && defined(__x86_64__)
# define CLOCK_HAS_TICKS 1
# include <x86intrin.h>

static inline uint64_t
clock_ticks(void)
{
    return __rdtsc();
}

#elif VM_TRACE_PLATFORM_COUNTER && defined(__aarch64__)
# define CLOCK_HAS_TICKS 1

static inline uint64_t
clock_ticks(void)
{
    uint64_t ticks;
    /*
     * Without a barrier the processor may read the counter before what comes first, even before an
     * earlier read of it: then a thread's times would run back. The kernel has the same barrier here.
     */
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return ticks;
}

#else
# define CLOCK_HAS_TICKS 0
#endif

#endif /* RUBY_VM_TRACE_BASE_TICKS_H */
