/* time_histogram.c - see time_histogram.h */
#include <stdlib.h>

#include "analysis/time_histogram.h"
#include "base/xalloc.h"

enum { FIRST_SHIFT = 10 };

void
time_histogram_free(struct time_histogram *histogram)
{
    map_free(&histogram->cell_of);
    free(histogram->cells);
    *histogram = (struct time_histogram){0};
}

/* Returns false if there is no room for another cell. */
static bool
add_to_cell(struct time_histogram *histogram, uint32_t row, uint32_t bin, uint64_t value)
{
    uint64_t key = (uint64_t)row << 32 | bin;
    uint32_t index = map_get(&histogram->cell_of, key);
    if (index == MAP_NONE) {
        if (histogram->count == HISTOGRAM_CELLS_MAX) return false;
        index = histogram->count++;
        make_room(histogram->cells, index, histogram->capacity);
        histogram->cells[index] = (struct histogram_cell){.row = row, .bin = bin};
        map_set(&histogram->cell_of, key, index);
    }
    struct histogram_cell *cell = &histogram->cells[index];
    cell->value = histogram_join(row, cell->value, value);
    return true;
}

/* Moves the cells to bins of another width, or with another first bin. */
static void
move_cells(struct time_histogram *histogram, unsigned shift, int64_t first)
{
    struct time_histogram moved = {
        .shift = shift, .first = first, .last = histogram->last >> (shift - histogram->shift)};
    for (uint32_t i = 0; i < histogram->count; i++) {
        const struct histogram_cell *cell = &histogram->cells[i];
        int64_t bin = ((histogram->first + cell->bin) >> (shift - histogram->shift)) - first;
        add_to_cell(&moved, cell->row, (uint32_t)bin, cell->value);
    }
    time_histogram_free(histogram);
    *histogram = moved;
}

/* Makes the bins cover a time. */
static void
cover(struct time_histogram *histogram, int64_t ts_ns)
{
    if (histogram->shift == 0) {
        histogram->shift = FIRST_SHIFT;
        histogram->first = histogram->last = ts_ns >> histogram->shift;
    }
    int64_t bin = ts_ns >> histogram->shift;
    if (bin >= histogram->first && bin <= histogram->last) return;
    int64_t first = bin < histogram->first ? bin : histogram->first;
    int64_t last = bin > histogram->last ? bin : histogram->last;
    unsigned more = 0;
    while ((last >> more) - (first >> more) >= HISTOGRAM_BINS_MAX) more++;
    if (more > 0 || first < histogram->first) move_cells(histogram, histogram->shift + more, first >> more);
    histogram->last = last >> more;
}

void
time_histogram_add(struct time_histogram *histogram, uint32_t row, int64_t ts_ns, uint64_t value)
{
    cover(histogram, ts_ns);
    while (!add_to_cell(histogram, row, (uint32_t)((ts_ns >> histogram->shift) - histogram->first), value)) {
        if (histogram->first == histogram->last) return; /* as many rows as cells, which no caller has */
        move_cells(histogram, histogram->shift + 1, histogram->first >> 1);
    }
}

void
time_histogram_add_duration(struct time_histogram *histogram, uint32_t row, int64_t begin_ns, int64_t end_ns)
{
    cover(histogram, begin_ns);
    cover(histogram, end_ns);
    unsigned shift = histogram->shift; /* it may grow meanwhile; smaller steps do no harm */
    for (int64_t at = begin_ns; at < end_ns;) {
        int64_t bin_end_ns = at | (int64_t)((UINT64_C(1) << shift) - 1);
        int64_t next = bin_end_ns < end_ns ? bin_end_ns + 1 : end_ns;
        time_histogram_add(histogram, row, at, (uint64_t)(row & HISTOGRAM_MAXIMUM ? end_ns - begin_ns : next - at));
        at = next;
    }
}

void
time_histogram_widen(struct time_histogram *histogram, unsigned shift)
{
    if (shift <= histogram->shift || histogram->count == 0) return;
    move_cells(histogram, shift, histogram->first >> (shift - histogram->shift));
}
