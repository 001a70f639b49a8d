/* time_histogram.c - see time_histogram.h */
#include <stdlib.h>

#include "analysis/time_histogram.h"
#include "base/xalloc.h"

enum { FIRST_SHIFT = 10 };

void
bins_free(struct bins *bins)
{
    map_free(&bins->cell_of);
    free(bins->cells);
    *bins = (struct bins){0};
}

/* False when there is no room for one more. */
static bool
add_to_cell(struct bins *bins, uint32_t row, uint32_t bin, uint64_t count)
{
    uint64_t key = (uint64_t)row << 32 | bin;
    uint32_t index = map_get(&bins->cell_of, key);
    if (index == MAP_NONE) {
        if (bins->count == BIN_CELLS_MAX) return false;
        index = bins->count++;
        make_room(bins->cells, index, bins->capacity);
        bins->cells[index] = (struct bin_cell){.row = row, .bin = bin};
        map_set(&bins->cell_of, key, index);
    }
    bins->cells[index].count += count;
    return true;
}

/* Puts the cells where they belong with another width, or another first bin. */
static void
move_cells(struct bins *bins, unsigned shift, int64_t first)
{
    struct bins moved = {.shift = shift, .first = first, .last = bins->last >> (shift - bins->shift)};
    for (uint32_t i = 0; i < bins->count; i++) {
        const struct bin_cell *cell = &bins->cells[i];
        int64_t bin = ((bins->first + cell->bin) >> (shift - bins->shift)) - first;
        add_to_cell(&moved, cell->row, (uint32_t)bin, cell->count);
    }
    bins_free(bins);
    *bins = moved;
}

/* Makes the bins reach to a time. */
static void
cover(struct bins *bins, int64_t ts_ns)
{
    if (bins->shift == 0) {
        bins->shift = FIRST_SHIFT;
        bins->first = bins->last = ts_ns >> bins->shift;
    }
    int64_t bin = ts_ns >> bins->shift;
    if (bin >= bins->first && bin <= bins->last) return;
    int64_t first = bin < bins->first ? bin : bins->first;
    int64_t last = bin > bins->last ? bin : bins->last;
    unsigned more = 0;
    while ((last >> more) - (first >> more) >= BINS_MAX) more++;
    if (more > 0 || first < bins->first) move_cells(bins, bins->shift + more, first >> more);
    bins->last = last >> more;
}

void
bins_add(struct bins *bins, uint32_t row, int64_t ts_ns, uint64_t count)
{
    cover(bins, ts_ns);
    while (!add_to_cell(bins, row, (uint32_t)((ts_ns >> bins->shift) - bins->first), count)) {
        if (bins->first == bins->last) return; /* as many rows as cells: the caller has fewer */
        move_cells(bins, bins->shift + 1, bins->first >> 1);
    }
}

void
bins_add_span(struct bins *bins, uint32_t row, int64_t begin_ns, int64_t end_ns)
{
    cover(bins, begin_ns);
    cover(bins, end_ns);
    unsigned shift = bins->shift; /* it may grow meanwhile: parts that are too small do no harm */
    for (int64_t at = begin_ns; at < end_ns;) {
        int64_t bin_end_ns = at | (int64_t)((UINT64_C(1) << shift) - 1);
        int64_t next = bin_end_ns < end_ns ? bin_end_ns + 1 : end_ns;
        bins_add(bins, row, at, (uint64_t)(next - at));
        at = next;
    }
}
