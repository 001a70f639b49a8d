#ifndef LABEL_H
#define LABEL_H
/* label.h - the label of a frame, as the tracer writes it: `Owner#method (path:line)`.
 *
 * Lengths are in bytes. A label of another form is all method.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/pool.h"

/* `Foo#bar (/app/foo.rb:3)`: method `Foo#bar`, path `/app/foo.rb`, line 3. A method in C without a caller in Ruby has the path
 * `<cfunc>` and no line. Points into the label. */
struct label_parts {
    struct fxt_string method;
    struct fxt_string path;
    int64_t line; /* 0 where there is none */
};
struct label_parts label_parts(struct fxt_string label);

/* Of "Owner#method". */
size_t label_method_bytes(struct fxt_string label);
/* Where the owner stands in a method: "Foo::Bar#" in "block in Foo::Bar#baz", "Foo." in "Foo.bar". No bytes where there is none,
 * then at is where it would stand; "<main>" and "<class:Foo>" can't have one. */
struct label_owner {
    size_t at;
    size_t bytes;
    bool possible;
};
struct label_owner label_owner(struct fxt_string method);
/* Of "Owner#method (path": what the method's labels have in common, whatever the line. */
size_t label_path_end(struct fxt_string label);

#endif
