/* page_strings.c - see page_strings.h */
#include <stdlib.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "page/page_strings.h"

enum { TEXT_BYTES_MAX = 600 };

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

void
page_text(struct page *page, struct fxt_string text)
{
    char escaped[TEXT_BYTES_MAX];
    json_c_text(&page->json, escape_into(escaped, sizeof escaped, text));
}

void
page_begin_nodes(struct page *page, const char *name, uint32_t left_out)
{
    char *key = xformat("%s_left_out", name);
    json_unsigned(json_key(json_line(&page->json), key), left_out);
    json_array(json_key(json_line(&page->json), name));
    free(key);
}
