#ifndef PAGE_CALLS_H
#define PAGE_CALLS_H
/* page_calls.h - the calls of the page: sums by method, and every slice. */
#include "page/page_strings.h"

/* The part of the JSON: tracks, and sums of methods. */
void print_page_calls(struct page *page);
/* The slices, packed: the content of an element of their own. */
void print_page_call_slices(struct page *page);

#endif
