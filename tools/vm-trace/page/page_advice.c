/* page_advice.c - see page_advice.h */
#include <stdlib.h>

#include "topics/exits/advice.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "page/page_advice.h"

enum { SEEN_EXIT = 1, SEEN_FALLBACK = 2 };

/* The advice for a row's reason, if no earlier row has it. */
static const struct advice *
new_advice(const struct page *page, const struct page_row *row, unsigned char *seen)
{
    unsigned char kind = row->category == STRING_FALLBACK ? SEEN_FALLBACK : SEEN_EXIT;
    unsigned name;
    if (row->reason == STRING_NONE || (seen[row->reason] & kind) != 0) return NULL;
    seen[row->reason] |= kind;
    return advice_find(kind == SEEN_FALLBACK ? ADVICE_FALLBACK : ADVICE_EXIT,
                       pool_string(page->data->pool, row->reason).ptr, &name);
}

static void
print_texts(struct page *page, const struct advice *advice)
{
    json_array(json_line(&page->json));
    page_text(page, text_of(advice->meaning));
    page_text(page, text_of(advice->cause));
    page_text(page, text_of(advice->help));
    json_end(&page->json);
}

void
print_page_advice(struct page *page)
{
    const struct page_data *data = page->data;
    struct json *json = &page->json;
    unsigned char *seen = xcalloc(pool_size(data->pool), 1);
    uint32_t *number_of = xcalloc(advice_count(), sizeof *number_of), count = 0;
    json_array(json_key(json_line(json), "advised"));
    for (uint32_t i = 0; i < data->exits.row_count; i++) {
        const struct page_row *row = &data->exits.rows[i];
        const struct advice *advice = new_advice(page, row, seen);
        if (advice == NULL) continue;
        uint32_t *number = &number_of[advice - advice_at(0)];
        if (*number == 0) *number = ++count;
        json_tuple(json, page_string(page, row->reason), row->category == STRING_FALLBACK, *number - 1);
    }
    json_end(json);
    json_array(json_key(json_line(json), "advice"));
    for (uint32_t number = 1; number <= count; number++) {
        for (size_t i = 0; i < advice_count(); i++) {
            if (number_of[i] == number) print_texts(page, advice_at(i));
        }
    }
    json_end(json);
    free(number_of);
    free(seen);
}
