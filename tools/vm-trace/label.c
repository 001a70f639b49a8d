/* label.c - see label.h */
#define _GNU_SOURCE /* memrchr */
#include <string.h>

#include "label.h"

size_t
label_method_bytes(struct fxt_string label)
{
    if (label.len < 4 || label.ptr[label.len - 1] != ')') return label.len;
    /* The last " (": a method can be "block (2 levels) in foo". */
    for (size_t at = label.len - 2; at > 0; at--) {
        if (label.ptr[at] == '(' && label.ptr[at - 1] == ' ') return at - 1;
    }
    return label.len;
}

size_t
label_path_end(struct fxt_string label)
{
    size_t method = label_method_bytes(label);
    if (method == label.len) return label.len;
    const char *colon = memrchr(label.ptr + method, ':', label.len - method);
    return colon == NULL ? label.len - 1 : (size_t)(colon - label.ptr);
}
