#ifndef PAGE_COST_H
#define PAGE_COST_H
/* page_cost.h - the part of the page's JSON about the stream `states`. */
#include "page/page_strings.h"

/* Prints the members cost, states, interpreted and slices; nothing without the stream. */
void print_page_cost(struct page *page);

#endif
