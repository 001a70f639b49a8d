/*
 * Texts that were needed last. See text_cache.h.
 */
#include "vm_trace/base/text_cache.h"

#include <stdlib.h>
#include <string.h>

const struct vm_trace_string *
rb_vm_trace_text_cache_find(struct vm_trace_text_cache *cache, vm_trace_text_maker *make, const void *what,
                            size_t *place_out)
{
    char buffer[256];
    size_t bytes;
    char *text = rb_vm_trace_text_whole(make, what, buffer, sizeof(buffer), &bytes);
    uint32_t hash = rb_vm_trace_text_hash(text, bytes);
    *place_out = (hash ^ hash >> 16) & (TEXT_CACHE_SIZE - 1);
    struct vm_trace_string **at = &cache->texts[*place_out], *known = *at;
    if (!known || known->bytes != bytes || memcmp(known->text, text, bytes) != 0) {
        struct vm_trace_string *string = rb_vm_trace_string_intern(text, bytes);
        if (string) {
            rb_vm_trace_string_release(known);
            *at = string;
        }
        known = string;
    }
    if (text != buffer) free(text);
    return known;
}

void
rb_vm_trace_text_cache_free(struct vm_trace_text_cache *cache)
{
    for (size_t i = 0; i < TEXT_CACHE_SIZE; i++) {
        rb_vm_trace_string_release(cache->texts[i]);
        cache->texts[i] = NULL;
    }
}
