#ifndef RUBY_VM_TRACE_STORE_CHUNK_SCAN_H
#define RUBY_VM_TRACE_STORE_CHUNK_SCAN_H 1
/*
 * Reads the records of a written chunk: counts events, and makes the chunk fresh for others.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Events, and how many of them are of the requested categories. */
struct vm_trace_counts {
    uint64_t events, sampled;
};

/*
 * Count the events among the whole records at the start of `words`, adding to *counts; those of the
 * categories in `sampled_categories` (bits by their known index) a second time. Returns
 * the words that these records have: less than `count` where the last is cut off, or where
 * words are no record.
 */
size_t rb_vm_trace_records_count(const uint64_t *words, size_t count, uint64_t sampled_categories,
                                 struct vm_trace_counts *counts);

/*
 * Whether a category, by its index in the chunk's strings, is one of a set: bits by index, below
 * 64.
 */
static inline bool
category_in_p(uint64_t categories, unsigned index)
{
    return index < 64 && (categories >> index & 1);
}

/*
 * Make padding of a mapped chunk, a record of VM_TRACE_PAGE_WORDS a page, as a new chunk is. It begins
 * at the end, so that killed at any instruction it leaves a chunk that can be read: the first
 * records, which define what the others use, go last. False, and nothing is changed, when the
 * chunk does not consist of whole records.
 *
 *   before  | string | event | event ..... | event | pad(512) |
 *   first   | string | event | pad ..................| pad(512) |    one store, for up to 4,095 words
 *   then    | string | event | pad | pad(512) | pad(512) .......|    the last store is that of the first header
 */
bool rb_vm_trace_records_renew(uint64_t *words, size_t count);

#endif /* RUBY_VM_TRACE_STORE_CHUNK_SCAN_H */
