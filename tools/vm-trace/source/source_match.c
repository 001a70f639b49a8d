/* source_match.c - see source_match.h */
#include <stdlib.h>
#include <string.h>

#include "source/source_match.h"

/* The number of names, from the end, that two paths have in common. */
static unsigned
common_names(struct fxt_string a, struct fxt_string b)
{
    unsigned names = 0;
    size_t at = 0; /* bytes from the end that are the same */
    for (;; at++) {
        bool a_ends = at >= a.len, b_ends = at >= b.len;
        bool a_slash = !a_ends && a.ptr[a.len - 1 - at] == '/', b_slash = !b_ends && b.ptr[b.len - 1 - at] == '/';
        if ((a_ends || a_slash) && (b_ends || b_slash)) names++;
        if (a_ends || b_ends || a.ptr[a.len - 1 - at] != b.ptr[b.len - 1 - at]) return names;
    }
}

int64_t
source_match(const struct annotation *annotation, const struct pool *pool, const char *source)
{
    char *whole = realpath(source, NULL);
    struct fxt_string path = text_of(whole != NULL ? whole : source);
    int64_t best = SOURCE_UNMATCHED;
    unsigned most = 0;
    for (uint32_t i = 0; i < annotation->files.count; i++) {
        const struct annotated_file *file = row_table_at(&annotation->files, i);
        struct fxt_string other = pool_string(pool, file->path);
        while (other.len > 2 && memcmp(other.ptr, "./", 2) == 0) other.ptr += 2, other.len -= 2;
        unsigned names = file->path == STRING_NONE ? 0 : common_names(path, other);
        if (names > most) best = i, most = names;
        else if (names == most && names > 0) best = SOURCE_AMBIGUOUS;
    }
    free(whole);
    return best;
}
