#ifndef FRAMES_H
#define FRAMES_H
/* frames.h - decodes the backtrace of an exit.
 *
 * An event has its ten innermost frames in the arguments "0" to "9". "10+" joins the others with
 * " < ": "LABEL x12" is a repeated frame, and "34 more frames" at the end stands for those that did
 * not fit (doc/internals/events.md). In a trace with stack samples it is only their number.
 */
#include "fxt/reader.h"

struct frame {
    uint32_t label; /* a string of the pool */
    uint32_t run;   /* number of repetitions, at least 1 */
};

struct frames {
    struct frame *list; /* innermost first */
    uint32_t count;
    uint32_t capacity;
    uint32_t left_out; /* frames beyond them, which the trace does not name */
};

/* In place of frames that the trace does not name. */
#define FRAMES_LEFT_OUT "(more frames)"

/* The text of an argument "10+": "34 more frames" if it is a number, which is written into the
 * buffer. Returns false if it is neither a string nor a number. */
enum { REST_TEXT_BYTES = 40 };
bool frames_rest_text(const struct fxt_arg *rest, char buffer[REST_TEXT_BYTES], struct fxt_string *text_out);

/* Takes the first label off the text of such an argument. *run_out: how often it is repeated. */
struct fxt_string frames_take_label(struct fxt_string *rest, uint32_t *run_out);

/* Replaces the contents of `frames` by the frames of an argument "10+". A zeroed struct frames
 * is empty; free its list. */
void frames_of_rest(struct frames *frames, struct pool *pool, struct fxt_string rest);

#endif
