#ifndef PAGE_H
#define PAGE_H
/* page.h - the page that `vm-trace html` writes. */
#include <stdio.h>

#include "page/page_data.h"

struct page_sources;
struct report;

/* Writes the whole page. `data` must be finished; `report` has read the same, for the head; `files` are the names for
 * its head; `sources` are embedded, unless NULL. The caller checks `out` for errors. */
void print_page(FILE *out, struct page_data *data, struct report *report, struct page_sources *sources, int file_count,
                char **files);

#endif
