/* glob.c - see glob.h */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/glob.h"
#include "analysis/label.h"
#include "base/nearest.h"
#include "base/xalloc.h"

bool
glob_matches(struct glob *glob, const struct pool *pool, uint32_t id)
{
    if (glob->pattern == NULL) return true;
    if (id >= glob->size) {
        uint32_t size = pool_size(pool) * 2;
        glob->known = xrealloc(glob->known, size, 1);
        memset(glob->known + glob->size, GLOB_UNTRIED, size - glob->size);
        glob->size = size;
    }
    uint8_t *known = &glob->known[id];
    if (*known == GLOB_UNTRIED)
        *known = glob->matches(glob->pattern, pool_string(pool, id)) ? GLOB_MATCHES : GLOB_FAILS;
    return *known == GLOB_MATCHES;
}

bool
glob_matched_any(const struct glob *glob)
{
    return glob->pattern == NULL || (glob->known != NULL && memchr(glob->known, GLOB_MATCHES, glob->size) != NULL);
}

void
glob_free(struct glob *glob)
{
    free(glob->known);
    *glob = (struct glob){0};
}

bool
label_matches(const char *pattern, struct fxt_string label)
{
    if (fnmatch(pattern, label.ptr, 0) == 0) return true;
    size_t len = label_method_bytes(label);
    char *method = xcalloc(len + 1, 1);
    memcpy(method, label.ptr, len);
    bool matches = fnmatch(pattern, method, 0) == 0 || strcmp(pattern, method) == 0;
    free(method);
    return matches;
}

/* Compares `block in Owner#method` of a label, `Owner#method`, and `method` alone. */
static void
try_label(struct nearest *nearest, struct fxt_string label)
{
    char *method = xformat("%.*s", (int)label_method_bytes(label), label.ptr);
    struct label_owner owner = label_owner(text_of(method));
    nearest_try_as(nearest, method, label.ptr);
    nearest_try_as(nearest, method + owner.at, label.ptr);
    nearest_try_as(nearest, method + owner.at + owner.bytes, label.ptr);
    free(method);
}

struct fxt_string
glob_nearest_method(const struct glob *glob, const struct pool *pool)
{
    struct nearest nearest = nearest_to(glob->pattern);
    for (uint32_t id = 0; id < glob->size; id++) {
        if (glob->known[id] == GLOB_FAILS) try_label(&nearest, pool_string(pool, id));
    }
    struct fxt_string name = text_of(nearest.name != NULL ? nearest.name : "");
    name.len = (uint32_t)label_method_bytes(name);
    return name;
}
