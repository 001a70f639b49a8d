/* export_folded.c - see export.h */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/xalloc.h"
#include "export/export.h"

/* A semicolon separates frames, so a semicolon in a path is shown by its code, like a control
 * character. */
static void
print_frame(FILE *out, struct fxt_string text)
{
    while (text.len > 0) {
        const char *semicolon = memchr(text.ptr, ';', text.len);
        uint32_t len = semicolon ? (uint32_t)(semicolon - text.ptr) : text.len;
        print_escaped(out, (struct fxt_string){.ptr = text.ptr, .len = len});
        if (semicolon == NULL) break;
        fputs("\\x3B", out);
        text.ptr += len + 1;
        text.len -= len + 1;
    }
}

/* Whether sums are of nanoseconds: they are printed in microseconds. */
static bool
in_us(const struct profile *profile, bool events)
{
    return !events && strcmp(profile_names[profile->kind].unit, "nanoseconds") == 0;
}

void
export_folded(FILE *out, const struct profile *profile, bool events, const char *partial)
{
    const bool us = in_us(profile, events);
    uint64_t sum = 0; /* of the lines so far; each line has what rounding the sum adds to it */
    const struct pool *pool = reader_pool(profile->reader);
    uint32_t *stack = NULL;
    uint32_t depth, capacity = 0;
    if (partial != NULL) fprintf(out, "# partial: %s.\n", partial); /* with no count at its end, it is no stack */
    for (uint32_t leaf = 1; leaf < profile->node_count; leaf++) {
        if (!profile_ends_at(&profile->nodes[leaf])) continue;
        depth = 0;
        for (uint32_t node = leaf; node != 0; node = profile->nodes[node].parent) {
            make_room(stack, depth, capacity);
            stack[depth++] = profile->nodes[node].text;
        }
        while (depth-- > 0) {
            print_frame(out, pool_string(pool, stack[depth]));
            if (depth > 0) putc(';', out);
        }
        uint64_t value = events ? profile->nodes[leaf].events : profile->nodes[leaf].count;
        if (us) {
            uint64_t before = sum;
            sum += value;
            value = (sum + 500) / 1000 - (before + 500) / 1000;
        }
        fprintf(out, " %" PRIu64 "\n", value);
    }
    free(stack);
}
