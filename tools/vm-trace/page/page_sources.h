#ifndef PAGE_SOURCES_H
#define PAGE_SOURCES_H
/* page_sources.h - the sources of files with exits, in the page. */
#include <time.h>

#include "source/annotation.h"
#include "page/page_strings.h"

enum {
    PAGE_SOURCE_BYTES_MAX = 4 * 1024 * 1024, /* of all files together */
    PAGE_SOURCE_LINES_MAX = 20000,           /* with exits */
};

struct page_sources {
    struct annotation annotation;
    uint32_t *reason_of; /* the number of the reason of each gathered row, or 0 */
    const char *below; /* only files in this folder, which is absolute and without links, are read */
    time_t traced;  /* a source that changed later is said to be newer; 0: unknown */
    uint32_t shown; /* out: how many files have their text in the page */
};

/* Prints the member "sources" of the page's JSON: the files that cost most first. What is not in
 * the page is named, with why. */
void print_page_sources(struct page *page, struct page_sources *sources);

#endif
