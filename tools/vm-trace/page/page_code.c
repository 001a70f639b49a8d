/* page_code.c - see page_code.h. page/parts/code.js describes the JSON. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "page/page_code.h"

/* The texts of an ISEQ, which follow each other. */
struct iseq_texts {
    uint32_t first, count;
    uint64_t lost_ns, exits, bytes;
};

/* The ISEQs with texts; malloc'ed. */
static struct iseq_texts *
group_by_iseq(const struct compiled_texts *texts, uint32_t *count_out)
{
    struct iseq_texts *iseqs = xcalloc((size_t)texts->texts.count + 1, sizeof *iseqs);
    uint32_t count = 0;
    for (uint32_t i = 0; i < texts->texts.count; i++) {
        const struct compiled_text *text = row_table_at(&texts->texts, i), *before = i > 0 ? text - 1 : NULL;
        bool other = before == NULL || before->process != text->process || before->iseq != text->iseq;
        if (other) iseqs[count++] = (struct iseq_texts){.first = i};
        struct iseq_texts *iseq = &iseqs[count - 1];
        iseq->count++;
        iseq->bytes += text->length + (other ? 0 : before->length);
        uint32_t hit_count, hit = row_table_range(&texts->hits, &text->process, 3, &hit_count);
        for (uint32_t end = hit + hit_count; hit < end; hit++) {
            const struct compiled_hits *hits = row_table_at(&texts->hits, hit);
            iseq->lost_ns += hits->lost_ns;
            if (hits->kind != STRING_FALLBACK) iseq->exits += hits->hits;
        }
    }
    *count_out = count;
    return iseqs;
}

static int
compare_iseqs(const void *left, const void *right)
{
    const struct iseq_texts *a = left, *b = right;
    if (a->lost_ns != b->lost_ns) return a->lost_ns > b->lost_ns ? -1 : 1;
    if (a->exits != b->exits) return a->exits > b->exits ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

static void
print_line(struct page *page, const struct code_line *line)
{
    struct json *json = &page->json;
    json_array(json);
    json_numbers(json, line->change == TEXT_REMOVED ? 0 : line->number, line->change, line->shown, line->lost_ns,
                 line->exits, line->fallbacks, page_string(page, line->reason));
    page_text(page, (struct fxt_string){.ptr = line->ptr, .len = (uint32_t)line->len});
    json_end(json);
}

static void
print_version(struct page *page, const struct compiled_text *before, const struct compiled_text *text)
{
    struct json *json = &page->json;
    size_t count;
    struct code_line *lines = code_lines(&page->data->texts, before, text, &count);
    json_array(json_line(json));
    json_numbers(json, text->version, before != NULL ? before->version : 0, text->length == 0 ? text->bytes : 0,
                 page_string(page, code_why_made(&page->data->history, 0, text)));
    json_array(json);
    for (size_t i = 0; i < count; i++) print_line(page, &lines[i]);
    json_end(json);
    json_end(json);
    free(lines);
}

void
print_page_code(struct page *page)
{
    const struct compiled_texts *texts = &page->data->texts;
    struct json *json = &page->json;
    uint32_t count, shown = 0;
    uint64_t bytes = 0;
    struct iseq_texts *iseqs = group_by_iseq(texts, &count);
    qsort(iseqs, count, sizeof *iseqs, compare_iseqs);
    json_array(json_key(json_line(json), "code"));
    for (; shown < count && shown < PAGE_ROWS_SHOWN; shown++) {
        const struct iseq_texts *iseq = &iseqs[shown];
        const struct compiled_text *first = row_table_at(&texts->texts, iseq->first), *before = NULL;
        bytes += iseq->bytes;
        if (bytes > PAGE_CODE_BYTES_MAX) break;
        json_array(json_line(json));
        json_numbers(json, page_string(page, first->iseq), iseq->lost_ns, iseq->exits);
        json_array(json);
        for (uint32_t i = 0; i < iseq->count; i++) {
            print_version(page, before, first + i);
            if (first[i].length > 0) before = first + i;
        }
        json_end(json);
        json_end(json);
    }
    json_end(json);
    json_unsigned(json_key(json_line(json), "code_left_out"), count - shown);
    free(iseqs);
}
