#ifndef PAGE_FIRST_H
#define PAGE_FIRST_H
/* page_first.h - the head of the page: what `vm-trace report` shows first. */
#include "topics/report_data.h"
#include "page/page_strings.h"

/* Prints the member `first`; page/first.js describes it. The report has read the same files, with the same choice. */
void print_page_first(struct page *page, struct report *report);

#endif
