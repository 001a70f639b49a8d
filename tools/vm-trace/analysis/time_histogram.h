#ifndef TIME_HISTOGRAM_H
#define TIME_HISTOGRAM_H
/* time_histogram.h - how much of what happened when: counts of numbered rows in equal parts of time.
 *
 * How long a trace is shows only at its end. So bins begin narrow and are joined by twos as it grows. They begin at multiples of
 * their width; memory grows with the cells that are not empty, up to a limit, beyond which bins are joined as well.
 */
#include "base/map.h"

enum { HISTOGRAM_BINS_MAX = 320, HISTOGRAM_CELLS_MAX = 1024 * 1024 };

struct histogram_cell {
    uint32_t row;
    uint32_t bin; /* from histogram.first on */
    uint64_t count;
};

struct time_histogram {
    unsigned shift; /* a bin is 2**shift ns wide */
    int64_t first;  /* number of the first and last bin in use: times divided by the width */
    int64_t last;
    struct histogram_cell *cells; /* one for each row and bin that are not empty; in no order */
    uint32_t count;
    uint32_t capacity;
    struct map cell_of; /* row and bin */
};

/* A zeroed struct time_histogram is an empty one. */
void time_histogram_free(struct time_histogram *histogram);
void time_histogram_add(struct time_histogram *histogram, uint32_t row, int64_t ts_ns, uint64_t count);
/* Adds the length of what began and ended at these times, each bin its part. */
void time_histogram_add_duration(struct time_histogram *histogram, uint32_t row, int64_t begin_ns, int64_t end_ns);

#endif
