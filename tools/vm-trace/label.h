#ifndef LABEL_H
#define LABEL_H
/* label.h - the label of a frame, as the tracer writes it: `Owner#method (path:line)`.
 *
 * Lengths are in bytes. A label of another form is all method.
 */
#include <stddef.h>

#include "pool.h"

/* Of "Owner#method". */
size_t label_method_bytes(struct fxt_string label);
/* Of "Owner#method (path": what the method's labels have in common, whatever the line. */
size_t label_path_end(struct fxt_string label);

#endif
