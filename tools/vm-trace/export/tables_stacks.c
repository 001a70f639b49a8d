/* tables_stacks.c - see tables_stacks.h */
#include <stdlib.h>

#include "analysis/event_args.h"
#include "analysis/label.h"
#include "analysis/profile.h"
#include "fxt/known_strings.h"
#include "export/tables_stacks.h"

enum { REPEATS_MAX = 4096 }; /* of one frame in a row: a damaged trace may claim any number */

void
table_stacks_init(struct table_stacks *stacks, struct pool *pool, struct fxt_string process,
                  struct rows *stack_rows, struct rows *frame_rows)
{
    *stacks = (struct table_stacks){.pool = pool, .process = process, .stacks = stack_rows, .frames = frame_rows};
}

void
table_stacks_free(struct table_stacks *stacks)
{
    map_free(&stacks->known_frames);
    map_free(&stacks->known_stacks);
    free(stacks->frame_ids.list);
    free(stacks->stack.list);
    free(stacks->rest.list);
}

/* Positive, and never 0. */
static int64_t
id_of(uint64_t hash)
{
    return (int64_t)(hash >> 1 | 1);
}

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ : part of the schema, as ids must stay the same. */
static uint64_t
text_hash(struct fxt_string text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < text.len; i++) hash = (hash ^ (unsigned char)text.ptr[i]) * UINT64_C(0x100000001b3);
    return mix64(hash);
}

static void
write_frame(struct table_stacks *stacks, int64_t id, struct fxt_string label)
{
    struct label_parts parts = label_parts(label);
    rows_begin(stacks->frames, stacks->process);
    rows_integer(stacks->frames, id);
    rows_text(stacks->frames, label);
    rows_text(stacks->frames, parts.method);
    rows_text(stacks->frames, parts.path);
    rows_integer(stacks->frames, parts.line);
    rows_end(stacks->frames);
}

int64_t
table_frame_id(struct table_stacks *stacks, uint32_t label)
{
    if (label == STRING_NONE) return 0;
    uint32_t index = map_get(&stacks->known_frames, label);
    if (index != MAP_NONE) return stacks->frame_ids.list[index];
    struct fxt_string text = pool_string(stacks->pool, label);
    int64_t id = id_of(text_hash(text));
    make_room(stacks->frame_ids.list, stacks->frame_ids.count, stacks->frame_ids.capacity);
    map_set(&stacks->known_frames, label, stacks->frame_ids.count);
    stacks->frame_ids.list[stacks->frame_ids.count++] = id;
    write_frame(stacks, id, text);
    return id;
}

static void
add_frame(struct table_stacks *stacks, uint32_t label)
{
    make_room(stacks->stack.list, stacks->stack.count, stacks->stack.capacity);
    stacks->stack.list[stacks->stack.count++] = table_frame_id(stacks, label);
}

static void
add_rest(struct table_stacks *stacks, const struct fxt_event *event)
{
    const struct fxt_arg *rest = fxt_event_arg(event, STRING_FRAME_REST);
    char buffer[REST_TEXT_BYTES];
    struct fxt_string text;
    if (rest == NULL || !frames_rest_text(rest, buffer, &text)) return;
    frames_of_rest(&stacks->rest, stacks->pool, text);
    for (uint32_t i = 0; i < stacks->rest.count; i++) {
        const struct frame *frame = &stacks->rest.list[i];
        for (uint32_t run = 0; run < frame->run && run < REPEATS_MAX; run++) add_frame(stacks, frame->label);
    }
    if (stacks->rest.left_out > 0)
        add_frame(stacks, pool_intern(stacks->pool, PROFILE_LEFT_OUT, sizeof PROFILE_LEFT_OUT - 1));
}

static void
write_stack(struct table_stacks *stacks, int64_t id)
{
    for (uint32_t depth = 0; depth < stacks->stack.count; depth++) {
        rows_begin(stacks->stacks, stacks->process);
        rows_integer(stacks->stacks, id);
        rows_integer(stacks->stacks, depth);
        rows_integer(stacks->stacks, stacks->stack.list[depth]);
        rows_end(stacks->stacks);
    }
}

int64_t
table_stack_id(struct table_stacks *stacks, const struct fxt_event *event)
{
    uint64_t hash = 0;
    stacks->stack.count = 0;
    for (uint32_t name = STRING_FRAME_0; name <= STRING_FRAME_9; name++) {
        uint32_t label = event_text(stacks->pool, event, name);
        if (label == STRING_NONE) break;
        add_frame(stacks, label);
    }
    if (stacks->stack.count == 0) return 0;
    add_rest(stacks, event);
    for (uint32_t i = stacks->stack.count; i-- > 0;) hash = mix64(hash ^ (uint64_t)stacks->stack.list[i]);
    int64_t id = id_of(hash);
    if (map_get(&stacks->known_stacks, (uint64_t)id) == MAP_NONE) {
        map_set(&stacks->known_stacks, (uint64_t)id, 1);
        write_stack(stacks, id);
    }
    return id;
}
