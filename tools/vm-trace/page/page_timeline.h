#ifndef PAGE_TIMELINE_H
#define PAGE_TIMELINE_H
/* page_timeline.h - threads over time in the page. */
#include "page/page_strings.h"

/* Prints the member `timeline` of the page's JSON, with a comma before it. */
void print_page_timeline(struct page *page);

#endif
