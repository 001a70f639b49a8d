/*
 * The texts of known strings. See known_strings.h.
 */
#include "vm_trace/base/known_strings.h"

#include <string.h>

static const struct {
    const char *text;
    size_t bytes;
} words[W_COUNT] = {
    { "", 0 },
#define X(name, text) { text, sizeof(text) - 1 },
    VM_TRACE_WORDS(X)
#undef X
};

const char *
rb_vm_trace_word_text(enum vm_trace_word word, size_t *bytes_out)
{
    *bytes_out = words[word].bytes;
    return words[word].text;
}

enum vm_trace_word
rb_vm_trace_word_of(const char *text)
{
    int word = W_COUNT - 1;
    while (word > W_NONE && strcmp(words[word].text, text) != 0) word--;
    return (enum vm_trace_word)word;
}
