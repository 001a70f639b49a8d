#ifndef LABEL_H
#define LABEL_H
/* label.h - the label of a frame, as the tracer writes it: `Owner#method (path:line)`.
 *
 * Lengths are in bytes. A label of another form is only a method.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/pool.h"

/* `Foo#bar (/app/foo.rb:3)` has the method `Foo#bar`, the path `/app/foo.rb` and the line 3. A C
 * method without a Ruby caller has the path `<cfunc>` and no line. The parts point into the
 * label. */
struct label_parts {
    struct fxt_string method;
    struct fxt_string path;
    int64_t line; /* 0: none */
};
struct label_parts label_parts(struct fxt_string label);
/* Whether the label ends with a place, `(path:line)` or `(<cfunc>)`, or with the note that it was cut before it. */
bool label_has_place(struct fxt_string label);

/* The length of "Owner#method". */
size_t label_method_bytes(struct fxt_string label);
/* Finds the owner in a method: "Foo::Bar#" in "block in Foo::Bar#baz", "Foo." in "Foo.bar".
 * bytes is 0 if there is none, and `at` is where it would be. "<main>" and "<class:Foo>" cannot
 * have an owner. */
struct label_owner {
    size_t at;
    size_t bytes;
    bool possible;
};
struct label_owner label_owner(struct fxt_string method);
/* The length of "Owner#method (path", which is the same for all lines of a method. */
size_t label_path_end(struct fxt_string label);
/* The " (path:line)" of a label, as a number of the pool: what the labels of one place have in common. */
uint32_t label_path_and_line(struct pool *pool, uint32_t label);
/* The label without its line, as a number of the pool: a method of that name may be in several files. */
uint32_t label_without_line(struct pool *pool, uint32_t label);

#endif
