#ifndef PAGE_ADVICE_H
#define PAGE_ADVICE_H
/* page_advice.h - the advice for the reasons on the page (script.js describes the JSON). */
#include "page/page_strings.h"

void print_page_advice(struct page *page);

#endif
