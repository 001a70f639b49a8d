#ifndef FRAMES_H
#define FRAMES_H
/* frames.h - the backtrace of an exit.
 *
 * An event names its ten innermost frames in the arguments "0" to "9"; "10+" joins those beyond by " < ", where "LABEL x12" is a
 * frame that repeats and "34 more frames" at the end stands for what did not fit (doc/internals/events.md).
 */
#include "fxt/reader.h"

struct frame {
    uint32_t label; /* a string of the pool */
    uint32_t run;   /* how many times it stands there, from 1 */
};

struct frames {
    struct frame *list; /* innermost first */
    uint32_t count;
    uint32_t capacity;
    uint32_t left_out; /* frames beyond them that the trace does not name */
};

/* Replaces what was in frames by those of an argument "10+". A zeroed struct frames is an empty one; free its list. */
void frames_of_rest(struct frames *frames, struct pool *pool, struct fxt_string rest);

#endif
