#ifndef OWN_FRAME_H
#define OWN_FRAME_H
/* own_frame.h - the line of the program in a backtrace. */
#include "fxt/reader.h"

/* Returns the label of the innermost frame outside of Ruby's own files (a method in C has the line of its
 * caller). If all of "0" to "9" are in those, the innermost one; STRING_NONE if there is no frame. */
uint32_t event_own_frame(struct pool *pool, const struct fxt_event *event);

#endif
