#ifndef TIME_HISTOGRAM_H
#define TIME_HISTOGRAM_H
/* time_histogram.h - sums and maxima of numbered rows over time, in bins of equal width.
 *
 * The length of a trace is known only at its end. So bins begin narrow, and are merged in pairs as
 * the trace grows. They begin at multiples of their width. Memory grows with the number of cells
 * that are not empty; at a limit, bins are merged as well.
 */
#include "base/map.h"

enum { HISTOGRAM_BINS_MAX = 320, HISTOGRAM_CELLS_MAX = 2 * 1024 * 1024 };

/* Set in the number of a row: its cells have the largest value, not the sum. */
#define HISTOGRAM_MAXIMUM 0x80000000u

struct histogram_cell {
    uint32_t row;
    uint32_t bin; /* from histogram.first on */
    uint64_t value;
};

struct time_histogram {
    unsigned shift; /* a bin is 2**shift ns wide */
    int64_t first;  /* numbers of the first and the last bin in use: times divided by the width */
    int64_t last;
    struct histogram_cell *cells; /* one per row and bin with a value; not sorted */
    uint32_t count;
    uint32_t capacity;
    struct map cell_of; /* row and bin */
};

/* A zeroed histogram is empty. */
void time_histogram_free(struct time_histogram *histogram);
void time_histogram_add(struct time_histogram *histogram, uint32_t row, int64_t ts_ns, uint64_t value);
/* Adds the nanoseconds between two times: to each bin its share, or to a row of maxima, in each bin, all. */
void time_histogram_add_duration(struct time_histogram *histogram, uint32_t row, int64_t begin_ns, int64_t end_ns);
/* Makes bins at least 2**shift ns wide. */
void time_histogram_widen(struct time_histogram *histogram, unsigned shift);

static inline uint64_t
histogram_join(uint32_t row, uint64_t value, uint64_t other)
{
    if (row & HISTOGRAM_MAXIMUM) return value > other ? value : other;
    return value + other;
}

#endif
