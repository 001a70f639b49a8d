#ifndef PAGE_BINS_H
#define PAGE_BINS_H
/* page_bins.h - what the page sums up in a window: the keys of page_series.h, or several of them together, each with a
 * number by which the rest of the JSON names it. page/bins.js describes the format.
 *
 *      zeroed, with the two series -> page_bins_of, or page_bins_number and page_bins_add -> print_page_bins
 *      -> page_bins_free
 */
#include <stdio.h>

#include "page/page_series.h"
#include "base/json.h"

enum { PAGE_BINS_BYTES_MAX = 2 * 1024 * 1024 }; /* of numbers, in base64 a third more; beyond, bins are merged */

struct page_bins {
    struct page_series *series;
    struct page_series *before; /* of another run; NULL: none */
    int64_t first_ns, last_ns;  /* the bins reach from the first event to the last */
    int64_t before_first_ns;    /* the other run is compared from there on */
    uint32_t count; /* numbers in use; 0 is for what is always 0 */
    struct bins_source {
        uint32_t row, number;
        bool before;
    } *sources;
    uint32_t source_count, source_capacity;
};

/* Returns a new number. */
uint32_t page_bins_number(struct page_bins *bins);
/* Adds what is under a key to a number. before: of the other run. */
void page_bins_add(struct page_bins *bins, uint32_t number, bool before, struct series_key key);
/* Returns a new number for a key, or 0 if nothing is under it. */
uint32_t page_bins_of(struct page_bins *bins, struct series_key key);
/* Prints members of a JSON object, each after a comma. */
void print_page_bins(struct json *json, struct page_bins *bins);
void page_bins_free(struct page_bins *bins);

#endif
