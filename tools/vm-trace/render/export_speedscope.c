/* export_speedscope.c - see export.h */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/label.h"
#include "base/escape.h"
#include "base/xalloc.h"
#include "render/export.h"

static void
print_frame(FILE *out, struct pool *pool, const struct profile_node *node)
{
    struct fxt_string text = pool_string(pool, node->text);
    struct label_parts parts = node->reason ? (struct label_parts){.method = text} : label_parts(text);
    fputs("{\"name\":", out);
    print_json(out, parts.method);
    if (parts.path.len > 0) {
        fputs(",\"file\":", out);
        print_json(out, parts.path);
    }
    if (parts.line > 0) fprintf(out, ",\"line\":%" PRId64, parts.line);
    putc('}', out);
}

/* Prints each distinct frame once. Fills in frame_of: node -> number of its frame. */
static void
print_frames(FILE *out, const struct profile *profile, uint32_t *frame_of)
{
    struct map frames = {0};
    for (uint32_t i = 1; i < profile->node_count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        uint64_t key = (uint64_t)node->reason << 32 | node->text;
        frame_of[i] = map_get(&frames, key);
        if (frame_of[i] != MAP_NONE) continue;
        frame_of[i] = (uint32_t)frames.used;
        fputs(frames.used == 0 ? "\n" : ",\n", out);
        print_frame(out, reader_pool(profile->reader), node);
        map_set(&frames, key, frame_of[i]);
    }
    map_free(&frames);
}

static void
print_samples(FILE *out, const struct profile *profile, const uint32_t *frame_of)
{
    uint32_t *stack = NULL;
    uint32_t depth, capacity = 0;
    const char *before = "\n";
    for (uint32_t leaf = 1; leaf < profile->node_count; leaf++) {
        if (!profile_ends_at(&profile->nodes[leaf])) continue;
        depth = 0;
        for (uint32_t node = leaf; node != 0; node = profile->nodes[node].parent) {
            make_room(stack, depth, capacity);
            stack[depth++] = frame_of[node];
        }
        fprintf(out, "%s[", before);
        while (depth-- > 0) fprintf(out, "%" PRIu32 "%s", stack[depth], depth > 0 ? "," : "]");
        before = ",\n";
    }
    free(stack);
}

void
export_speedscope(FILE *out, const struct profile *profile, const char *name, bool events, const char *partial)
{
    char *text = xformat("%s%s", partial != NULL ? "(partial) " : "", name);
    struct fxt_string title = text_of(text);
    uint32_t *frame_of = xcalloc(profile->node_count, sizeof *frame_of);
    fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"vm-trace\",", out);
    if (partial != NULL) fputs("\"partial\":", out), print_json(out, text_of(partial)), putc(',', out);
    fputs("\"name\":", out);
    print_json(out, title);
    fputs(",\n\"shared\":{\"frames\":[", out);
    print_frames(out, profile, frame_of);
    fputs("\n]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":", out);
    print_json(out, title);
    const char *unit = profile_names[profile->kind].unit;
    fprintf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\n\"samples\":[",
            events || strcmp(unit, "count") == 0 ? "none" : unit, events ? profile->events : profile->count);
    print_samples(out, profile, frame_of);
    fputs("\n],\n\"weights\":[", out);
    const char *before = "";
    for (uint32_t leaf = 1; leaf < profile->node_count; leaf++) {
        if (!profile_ends_at(&profile->nodes[leaf])) continue;
        fprintf(out, "%s%" PRIu64, before, events ? profile->nodes[leaf].events : profile->nodes[leaf].count);
        before = ",";
    }
    fputs("]}]}\n", out);
    free(frame_of);
    free(text);
}
