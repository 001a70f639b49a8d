#ifndef RUBY_VM_TRACE_BASE_TEXT_CACHE_H
#define RUBY_VM_TRACE_BASE_TEXT_CACHE_H 1
/*
 * Interned texts that were needed last. Finding one of them again takes no lock, although its text is
 * made anew each time: what it names (a class) may get another name, or its address another owner.
 */

#include "vm_trace/base/strings.h"

#define TEXT_CACHE_SIZE 256 /* a power of two */

/* Zeroed at first. For one thread at a time. */
struct vm_trace_text_cache {
    struct vm_trace_string *texts[TEXT_CACHE_SIZE];
};

/*
 * The text that `make` writes of `what`, and its place in the cache. Valid until the next call; what
 * is at that place with the same serial later is the same text. NULL: no memory.
 */
const struct vm_trace_string *rb_vm_trace_text_cache_find(struct vm_trace_text_cache *cache, vm_trace_text_maker *make,
                                                          const void *what, size_t *place_out);

/* Give all texts back. */
void rb_vm_trace_text_cache_free(struct vm_trace_text_cache *cache);

#endif /* RUBY_VM_TRACE_BASE_TEXT_CACHE_H */
