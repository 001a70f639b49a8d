#ifndef PAGE_STRINGS_H
#define PAGE_STRINGS_H
/* page_strings.h - the strings and times of the page while it is written. In the JSON a text is its
 * number in one list of strings. */
#include <stdio.h>

#include "analysis/page_data.h"
#include "render/page_bins.h"

struct page {
    FILE *out;
    struct page_data *data;
    uint32_t *number_of; /* number in the pool -> number in the page + 1 */
    uint32_t *strings;   /* number in the page -> number in the pool */
    uint32_t string_count;
    struct page_bins bins;
    uint32_t *method_of; /* number in the pool -> number among the methods of calls + 1 */
};

/* Returns the number of a string in the page, and adds it to the page's strings if necessary. The pool
 * must have it already when the page is begun. */
uint32_t page_string(struct page *page, uint32_t id);
/* Returns a time of the page: from the first event on. */
int64_t page_time(const struct page *page, int64_t ns);

/* Prints a JSON string that is safe in a script element: it cannot contain "</script>", or
 * characters that move or hide text. A long one ends in "...". */
void page_text(FILE *out, struct fxt_string text);

#endif
