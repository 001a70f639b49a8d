/* own_frame.c - see own_frame.h */
#include <string.h>

#include "analysis/own_frame.h"
#include "fxt/known_strings.h"

/* Whether a frame is in Ruby's own files: "Integer#times (<internal:numeric>:262)". */
static bool
internal_frame(struct fxt_string frame)
{
    static const char place[] = "(<internal:";
    const size_t length = sizeof place - 1;
    for (size_t at = 0; at + length <= frame.len; at++) {
        if (memcmp(frame.ptr + at, place, length) == 0) return true;
    }
    return false;
}

uint32_t
event_own_frame(struct pool *pool, const struct fxt_event *event)
{
    uint32_t frame = STRING_NONE;
    for (uint32_t name = STRING_FRAME_0; name <= STRING_FRAME_9; name++) {
        const struct fxt_arg *arg = fxt_event_arg(event, name);
        if (arg == NULL || arg->type != FXT_ARG_STRING) break;
        bool own = internal_frame(arg->string);
        if (own && frame != STRING_NONE) continue;
        frame = pool_id(pool, arg->string);
        if (!own) break;
    }
    return frame;
}
