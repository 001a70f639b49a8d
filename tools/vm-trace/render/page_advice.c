/* page_advice.c - see page_advice.h */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/advice.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "render/page_advice.h"

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
print_texts(FILE *out, const struct advice *advice, const char *separator)
{
    fprintf(out, "%s\n[", separator);
    page_text(out, text_of(advice->meaning));
    putc(',', out);
    page_text(out, text_of(advice->cause));
    putc(',', out);
    page_text(out, text_of(advice->help));
    putc(']', out);
}

void
print_page_advice(struct page *page)
{
    const struct page_data *data = page->data;
    FILE *out = page->out;
    unsigned char *seen = xcalloc(pool_size(data->pool), 1);
    uint32_t *number_of = xcalloc(advice_count(), sizeof *number_of), count = 0;
    fputs(",\n\"advised\":[", out);
    for (uint32_t i = 0, printed = 0; i < data->row_count; i++) {
        const struct page_row *row = &data->rows[i];
        const struct advice *advice = new_advice(page, row, seen);
        if (advice == NULL) continue;
        uint32_t *number = &number_of[advice - advice_at(0)];
        if (*number == 0) *number = ++count;
        fprintf(out, "%s[%" PRIu32 ",%d,%" PRIu32 "]", printed++ > 0 ? "," : "", page_string(page, row->reason),
                row->category == STRING_FALLBACK, *number - 1);
    }
    fputs("],\n\"advice\":[", out);
    for (uint32_t number = 1; number <= count; number++) {
        for (size_t i = 0; i < advice_count(); i++) {
            if (number_of[i] == number) print_texts(out, advice_at(i), number > 1 ? "," : "");
        }
    }
    putc(']', out);
    free(number_of);
    free(seen);
}
