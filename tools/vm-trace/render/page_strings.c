/* page_strings.c - see page_strings.h */
#include "render/page_strings.h"

uint32_t
page_string(struct page *page, uint32_t id)
{
    if (page->number_of[id] == 0) {
        page->strings[page->string_count] = id;
        page->number_of[id] = ++page->string_count;
    }
    return page->number_of[id] - 1;
}

int64_t
page_time(const struct page *page, int64_t ns)
{
    return ns - page->data->first_ns;
}
