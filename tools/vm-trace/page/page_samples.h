#ifndef PAGE_SAMPLES_H
#define PAGE_SAMPLES_H
/* page_samples.h - samples of time in the page: a flame graph. */
#include "page/page_strings.h"

/* Prints members of the page's JSON; nothing without the stream `samples`. */
void print_page_samples(struct page *page);

#endif
