#ifndef SCRUB_ROLE_H
#define SCRUB_ROLE_H
/* scrub_role.h - what a text of a trace is, by where it is used: this decides how it is scrubbed. doc/internals/events.md
 * has the schema. */
#include "fxt/record_rewrite.h"

enum scrub_role {
    SCRUB_FREE,        /* any text: a name that the program gave, or of a trace that is not known */
    SCRUB_WORD,        /* of the schema; not the program's */
    SCRUB_LABEL,       /* Owner#method (path:line), or several of them */
    SCRUB_COMPILATION, /* method@path:line */
    SCRUB_CODE,        /* lines: the first one is a compilation */
    SCRUB_PATH,
    SCRUB_COMMAND,
    SCRUB_HOST,
    SCRUB_SERVICE,     /* or its version */
    SCRUB_ROLES
};

enum scrub_role scrub_role_of(const struct text_use *use, struct fxt_string text);
/* The role of an event's argument. */
enum scrub_role scrub_role_of_value(struct fxt_string category, struct fxt_string argument, struct fxt_string value);

#endif
