/*
 * Records of a chunk that was written. See chunk_scan.h.
 */
#include "vm_trace/store/chunk_scan.h"
#include "vm_trace/schema/fxt.h"
#include "vm_trace/store/chunk.h"

static size_t
record_words(uint64_t header)
{
    return fxt_bits(header, FXT_HEADER_SIZE);
}

size_t
rb_vm_trace_records_count(const uint64_t *words, size_t count, uint64_t sampled_categories,
                          struct vm_trace_counts *counts)
{
    size_t at = 0;
    while (at < count) {
        size_t size = record_words(words[at]);
        if (size == 0 || size > count - at) break;
        if (fxt_bits(words[at], FXT_HEADER_TYPE) == FXT_RECORD_EVENT) {
            counts->events++;
            /* Known strings have the same index in every chunk. */
            unsigned category = (unsigned)fxt_bits(words[at], FXT_EVENT_CATEGORY);
            counts->sampled += category_in_p(sampled_categories, category);
        }
        at += size;
    }
    return at;
}

/* Every store here is seen after those before it. */
static void
put_padding(uint64_t *words, size_t from, size_t to)
{
    __atomic_store_n(&words[from], fxt_padding_header(to - from), __ATOMIC_RELEASE);
}

/*
 * Runs of records that one padding record can cover: any two neighbours have more than
 * FXT_RECORD_MAX_WORDS.
 */
enum { MAX_RUNS = 2 * (VM_TRACE_CHUNK_WORDS / FXT_RECORD_MAX_WORDS + 1) + 1 };

/* Fills in where each run begins, and behind the last one `count`. Returns how many there are. */
static size_t
find_runs(const uint64_t *words, size_t count, size_t *runs)
{
    size_t run_count = 0, at = 0;
    while (at < count) {
        size_t from = runs[run_count++] = at;
        do at += record_words(words[at]);
        while (at < count && at + record_words(words[at]) - from <= FXT_RECORD_MAX_WORDS);
    }
    runs[run_count] = count;
    return run_count;
}

bool
rb_vm_trace_records_renew(uint64_t *words, size_t count)
{
    struct vm_trace_counts ignored = { 0, 0 };
    if (count > VM_TRACE_CHUNK_WORDS || count % VM_TRACE_PAGE_WORDS != 0) return false;
    if (rb_vm_trace_records_count(words, count, 0, &ignored) != count) return false;

    size_t runs[MAX_RUNS + 1];
    for (size_t run = find_runs(words, count, runs); run-- > 0; ) {
        size_t from = runs[run], to = runs[run + 1];
        size_t page_end = from - from % VM_TRACE_PAGE_WORDS + VM_TRACE_PAGE_WORDS;
        put_padding(words, from, to);
        /*
         * Within it, unseen; the last of these takes what is padding already behind `to` up to the
         * end of its page.
         */
        for (size_t page = page_end; page < to; page += VM_TRACE_PAGE_WORDS)
            put_padding(words, page, page + VM_TRACE_PAGE_WORDS);
        put_padding(words, from, page_end);
    }
    /* Records come where others were: no word of theirs is seen before the padding. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return true;
}
