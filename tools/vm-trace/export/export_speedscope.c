/* export_speedscope.c - see export.h */
#include <stdlib.h>
#include <string.h>

#include "analysis/label.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "export/export.h"

static void
put_frame(struct json *json, struct pool *pool, const struct profile_node *node)
{
    struct fxt_string text = pool_string(pool, node->text);
    struct label_parts parts = node->reason ? (struct label_parts){.method = text} : label_parts(text);
    json_object(json_line(json));
    json_text(json_key(json, "name"), parts.method);
    if (parts.path.len > 0) json_text(json_key(json, "file"), parts.path);
    if (parts.line > 0) json_integer(json_key(json, "line"), parts.line);
    json_end(json);
}

/* Writes each distinct frame once. Fills in frame_of: node -> number of its frame. */
static void
put_frames(struct json *json, const struct profile *profile, uint32_t *frame_of)
{
    struct map frames = {0};
    for (uint32_t i = 1; i < profile->node_count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        uint64_t key = (uint64_t)node->reason << 32 | node->text;
        frame_of[i] = map_get(&frames, key);
        if (frame_of[i] != MAP_NONE) continue;
        frame_of[i] = (uint32_t)frames.used;
        put_frame(json, reader_pool(profile->reader), node);
        map_set(&frames, key, frame_of[i]);
    }
    map_free(&frames);
}

static void
put_samples(struct json *json, const struct profile *profile, const uint32_t *frame_of)
{
    uint32_t *stack = NULL;
    uint32_t depth, capacity = 0;
    for (uint32_t leaf = 1; leaf < profile->node_count; leaf++) {
        if (!profile_ends_at(&profile->nodes[leaf])) continue;
        depth = 0;
        for (uint32_t node = leaf; node != 0; node = profile->nodes[node].parent) {
            make_room(stack, depth, capacity);
            stack[depth++] = frame_of[node];
        }
        json_array(json_line(json));
        while (depth-- > 0) json_unsigned(json, stack[depth]);
        json_end(json);
    }
    free(stack);
}

void
export_speedscope(FILE *out, const struct profile *profile, const char *name, bool events, const char *partial)
{
    char *title = xformat("%s%s", partial != NULL ? "(partial) " : "", name);
    const char *unit = profile_names[profile->kind].unit;
    uint32_t *frame_of = xcalloc(profile->node_count, sizeof *frame_of);
    struct json json = json_to(out);
    json_object(&json);
    json_texts(&json, "$schema", "https://www.speedscope.app/file-format-schema.json", "exporter", "vm-trace");
    if (partial != NULL) json_texts(&json, "partial", partial);
    json_texts(&json, "name", title);
    json_object(json_key(json_line(&json), "shared"));
    json_array(json_key(&json, "frames"));
    put_frames(&json, profile, frame_of);
    json_end(json_line(&json));
    json_end(&json);
    json_array(json_key(json_line(&json), "profiles"));
    json_object(&json);
    json_texts(&json, "type", "sampled", "name", title,
               "unit", events || strcmp(unit, "count") == 0 ? "none" : unit);
    json_counts(&json, {"startValue", 0}, {"endValue", events ? profile->events : profile->count});
    json_array(json_key(json_line(&json), "samples"));
    put_samples(&json, profile, frame_of);
    json_end(json_line(&json));
    json_array(json_key(json_line(&json), "weights"));
    for (uint32_t leaf = 1; leaf < profile->node_count; leaf++) {
        if (!profile_ends_at(&profile->nodes[leaf])) continue;
        json_unsigned(&json, events ? profile->nodes[leaf].events : profile->nodes[leaf].count);
    }
    json_end(&json);
    json_end(&json);
    json_end(&json);
    json_end(&json);
    putc('\n', out);
    free(frame_of);
    free(title);
}
