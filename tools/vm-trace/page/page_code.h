#ifndef PAGE_CODE_H
#define PAGE_CODE_H
/* page_code.h - the texts of compiled versions in the page, with what happened at each instruction. */
#include "page/page_strings.h"

enum { PAGE_CODE_BYTES_MAX = 4 * 1024 * 1024 }; /* of all texts together, and of the lines that versions have lost */

/* Prints the member "code" of the page's JSON: the ISEQs that exit most first. How many are left out is said. */
void print_page_code(struct page *page);

#endif
