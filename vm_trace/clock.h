#ifndef RUBY_VM_TRACE_CLOCK_H
#define RUBY_VM_TRACE_CLOCK_H 1
/*
 * Time of an event: nanoseconds of CLOCK_BOOTTIME, the clock on which a trace lines up with
 * ftrace's and perf's. Read through the vDSO, so no system call.
 */

#include <stdint.h>
#include <time.h>

static inline uint64_t
clock_now_ns(void)
{
    struct timespec ts;
#ifdef CLOCK_BOOTTIME
    clock_gettime(CLOCK_BOOTTIME, &ts);
#else
    clock_gettime(CLOCK_MONOTONIC, &ts); /* the nearest that other systems have */
#endif
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

#endif /* RUBY_VM_TRACE_CLOCK_H */
