#ifndef CLOCK_H
#define CLOCK_H
/* clock.h - the system's clocks in nanoseconds. */
#include <stdint.h>
#include <time.h>

/* Returns the time of a clock that exists on every Linux, such as CLOCK_MONOTONIC. */
static inline int64_t
clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
