#ifndef PAGE_STRINGS_H
#define PAGE_STRINGS_H
/* page_strings.h - the strings and times of the page while it is written. In the JSON a text is its
 * number in one list of strings. */
#include "page/page_data.h"
#include "base/json.h"
#include "page/page_bins.h"

struct page {
    struct json json;
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

/* Begins the nodes of a tree: an array of that name, after a member with the number of those that are left out. */
void page_begin_nodes(struct page *page, const char *name, uint32_t left_out);

/* Writes a text without characters that move or hide text. A long one ends in "...". */
void page_text(struct page *page, struct fxt_string text);

#endif
