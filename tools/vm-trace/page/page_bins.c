/* page_bins.c - see page_bins.h */
#include <stdlib.h>

#include "base/xalloc.h"
#include "page/packed_numbers.h"
#include "page/page_bins.h"

/* The numbers as they are printed: cells with those of the page as rows, sorted by them. */
struct binned {
    struct histogram_cell *cells;
    uint32_t count, capacity;
    unsigned shift;
    int64_t first, last; /* numbers of the first and the last bin: times divided by the width */
};

uint32_t
page_bins_number(struct page_bins *bins)
{
    return ++bins->count;
}

void
page_bins_add(struct page_bins *bins, uint32_t number, bool before, struct series_key key)
{
    uint32_t row = page_series_row(before ? bins->before : bins->series, key);
    if (row == ROW_NONE) return;
    if (key.measure == SERIES_LONGEST) row |= HISTOGRAM_MAXIMUM;
    make_room(bins->sources, bins->source_count, bins->source_capacity);
    bins->sources[bins->source_count++] = (struct bins_source){row, number, before};
}

uint32_t
page_bins_of(struct page_bins *bins, struct series_key key)
{
    if (page_series_row(bins->series, key) == ROW_NONE) return 0;
    uint32_t number = page_bins_number(bins);
    page_bins_add(bins, number, false, key);
    return number;
}

void
page_bins_free(struct page_bins *bins)
{
    free(bins->sources);
}

/* --- the cells of the numbers ------------------------------------------------------------------------- */

static int
by_row_and_bin(const void *left, const void *right)
{
    const struct histogram_cell *a = left, *b = right;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return (a->bin > b->bin) - (a->bin < b->bin);
}

static int
by_run_and_row(const void *left, const void *right)
{
    const struct bins_source *a = left, *b = right;
    if (a->before != b->before) return a->before ? 1 : -1;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Joins cells of one bin. They are sorted. */
static void
join_cells(struct binned *binned)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < binned->count; i++) {
        struct histogram_cell *last = kept > 0 ? &binned->cells[kept - 1] : NULL, *cell = &binned->cells[i];
        if (last != NULL && last->row == cell->row && last->bin == cell->bin)
            last->value = histogram_join(cell->row, last->value, cell->value);
        else binned->cells[kept++] = *cell;
    }
    binned->count = kept;
}

/* The bin of this run that is as far from the first event as one of the other run; at least the first, at most the
 * last. */
static uint32_t
bin_of_before(const struct page_bins *bins, const struct binned *binned, int64_t bin)
{
    uint64_t middle_ns = ((uint64_t)bin << binned->shift) + (UINT64_C(1) << binned->shift) / 2;
    int64_t moved = (int64_t)(middle_ns - (uint64_t)bins->before_first_ns + (uint64_t)bins->first_ns) >> binned->shift;
    if (moved > binned->last) moved = binned->last;
    return moved <= binned->first ? 0 : (uint32_t)(moved - binned->first);
}

/* Adds the cells of sources that are sorted, of one run. */
static void
add_cells(const struct page_bins *bins, struct binned *binned, struct time_histogram *histogram,
          const struct bins_source *sources, uint32_t count)
{
    if (histogram->count > 0) qsort(histogram->cells, histogram->count, sizeof *histogram->cells, by_row_and_bin);
    for (uint32_t i = 0, cell = 0; i < count; i++) {
        const struct bins_source *source = &sources[i];
        while (cell < histogram->count && histogram->cells[cell].row < source->row) cell++;
        for (uint32_t at = cell; at < histogram->count && histogram->cells[at].row == source->row; at++) {
            struct histogram_cell moved = histogram->cells[at];
            int64_t bin = histogram->first + moved.bin;
            moved.row = source->number | (source->row & HISTOGRAM_MAXIMUM);
            moved.bin = source->before ? bin_of_before(bins, binned, bin) : (uint32_t)(bin - binned->first);
            make_room(binned->cells, binned->count, binned->capacity);
            binned->cells[binned->count++] = moved;
        }
    }
}

/* The bins of all numbers: those of the histograms, made wide enough for the whole trace. */
static struct binned
common_bins(const struct page_bins *bins)
{
    struct time_histogram *histogram = &bins->series->over_time;
    unsigned shift = histogram->shift;
    if (bins->before != NULL && bins->before->over_time.shift > shift) shift = bins->before->over_time.shift;
    while (bins->first_ns < bins->last_ns &&
           (uint64_t)(bins->last_ns >> shift) - (uint64_t)(bins->first_ns >> shift) >= HISTOGRAM_BINS_MAX) shift++;
    time_histogram_widen(histogram, shift);
    if (bins->before != NULL) time_histogram_widen(&bins->before->over_time, shift);
    struct binned binned = {.shift = shift, .first = bins->first_ns >> shift, .last = bins->last_ns >> shift};
    if (histogram->count > 0 && histogram->first < binned.first) binned.first = histogram->first;
    if (histogram->count > 0 && histogram->last > binned.last) binned.last = histogram->last;
    return binned;
}

static struct binned
gather_cells(const struct page_bins *bins)
{
    struct binned binned = common_bins(bins);
    uint32_t now = 0;
    if (bins->source_count > 0) qsort(bins->sources, bins->source_count, sizeof *bins->sources, by_run_and_row);
    while (now < bins->source_count && !bins->sources[now].before) now++;
    add_cells(bins, &binned, &bins->series->over_time, bins->sources, now);
    if (bins->before != NULL)
        add_cells(bins, &binned, &bins->before->over_time, bins->sources + now, bins->source_count - now);
    return binned;
}

static void
widen(struct binned *binned)
{
    for (uint32_t i = 0; i < binned->count; i++) {
        struct histogram_cell *cell = &binned->cells[i];
        cell->bin = (uint32_t)(((binned->first + cell->bin) >> 1) - (binned->first >> 1));
    }
    binned->first >>= 1;
    binned->last >>= 1;
    binned->shift++;
    join_cells(binned);
}

/* --- output -------------------------------------------------------------------------------------------- */

static int
by_number_and_bin(const void *left, const void *right)
{
    const struct histogram_cell *a = left, *b = right;
    uint32_t a_number = a->row & ~HISTOGRAM_MAXIMUM, b_number = b->row & ~HISTOGRAM_MAXIMUM;
    if (a_number != b_number) return a_number < b_number ? -1 : 1;
    return (a->bin > b->bin) - (a->bin < b->bin);
}

/* For each number: how many bins have values; for each of these, how far it is from the last one, and its value. */
static void
pack(struct packed_numbers *packed, const struct binned *binned, uint32_t count)
{
    for (uint32_t number = 1, i = 0, end; number <= count; number++, i = end) {
        for (end = i; end < binned->count && (binned->cells[end].row & ~HISTOGRAM_MAXIMUM) == number;) end++;
        packed_number(packed, end - i);
        for (uint32_t at = i, bin = 0; at < end; bin = binned->cells[at++].bin) {
            packed_number(packed, binned->cells[at].bin - bin);
            packed_number(packed, binned->cells[at].value);
        }
    }
}

static uint64_t
packed_bytes(const struct binned *binned)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < binned->count; i++) {
        const struct histogram_cell *cell = &binned->cells[i];
        bytes += 1 + packed_number_bytes(cell->value); /* few are 128 bins apart */
    }
    return bytes;
}

void
print_page_bins(struct json *json, struct page_bins *bins)
{
    struct binned binned = gather_cells(bins);
    if (binned.count > 0) qsort(binned.cells, binned.count, sizeof *binned.cells, by_number_and_bin);
    join_cells(&binned);
    while (packed_bytes(&binned) > PAGE_BINS_BYTES_MAX && binned.first < binned.last) widen(&binned);
    bool any = binned.count > 0;
    json_object(json_key(json_line(json), "bins"));
    json_unsigned(json_key(json, "width_ns"), any ? UINT64_C(1) << binned.shift : 1);
    json_integer(json_key(json, "start_ns"),
                 any ? (int64_t)(((uint64_t)binned.first << binned.shift) - (uint64_t)bins->first_ns) : 0);
    json_integer(json_key(json, "count"), any ? binned.last - binned.first + 1 : 0);
    json_counts(json, {"uncounted", bins->series->uncounted}, {"numbers", bins->count});
    json_begin_plain(json_key(json, "packed"));
    struct packed_numbers *packed = xcalloc(1, sizeof *packed);
    packed_begin(packed, json->out, PACKED_PLAIN);
    pack(packed, &binned, bins->count);
    packed_end(packed);
    json_end_plain(json);
    json_end(json);
    free(packed);
    free(binned.cells);
}
