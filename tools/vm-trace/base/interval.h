#ifndef INTERVAL_H
#define INTERVAL_H
/* interval.h - stretches of time. A damaged file may have any times: nothing here overflows. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
    int64_t from_ns, to_ns; /* without to_ns */
};

/* Returns the time that both have in common. */
static inline uint64_t
interval_common_ns(struct interval a, struct interval b)
{
    int64_t from_ns = a.from_ns > b.from_ns ? a.from_ns : b.from_ns;
    int64_t to_ns = a.to_ns < b.to_ns ? a.to_ns : b.to_ns;
    return to_ns > from_ns ? (uint64_t)to_ns - (uint64_t)from_ns : 0;
}

/* Whether a part of `other`, which may have no length, lies in the window. */
static inline bool
interval_touches(struct interval window, struct interval other)
{
    return other.to_ns >= window.from_ns && other.from_ns < window.to_ns;
}

/* Returns how many rows have this time or an earlier one. They are in its order, and it is an int64_t at `offset`. */
static inline uint32_t
rows_until(const void *rows, uint32_t count, size_t row_bytes, size_t offset, int64_t ns)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (*(const int64_t *)((const char *)rows + middle * row_bytes + offset) <= ns) low = middle + 1;
        else high = middle;
    }
    return low;
}

#endif
