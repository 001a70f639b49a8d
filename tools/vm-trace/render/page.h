#ifndef PAGE_H
#define PAGE_H
/* page.h - the page that `vm-trace html` writes. */
#include <stdio.h>

#include "analysis/page_data.h"

/* Writes the whole page. `data` must be finished; `files` are the names for its head. The caller
 * checks `out` for errors. */
void print_page(FILE *out, struct page_data *data, int file_count, char **files);

#endif
