/* page_strings.c - see page_strings.h */
#include "base/escape.h"
#include "render/page_strings.h"

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
page_text(FILE *out, struct fxt_string text)
{
    char escaped[TEXT_BYTES_MAX];
    putc('"', out);
    for (const char *at = escape_into(escaped, sizeof escaped, text); *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') fprintf(out, "\\%c", *at);
        else if (*at == '<') fputs("\\u003c", out);
        else putc(*at, out);
    }
    putc('"', out);
}
