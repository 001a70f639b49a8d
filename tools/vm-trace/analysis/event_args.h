#ifndef EVENT_ARGS_H
#define EVENT_ARGS_H
/* event_args.h - arguments of an event as those who sum want them: numbers, and texts as numbers of a pool. */
#include <stdbool.h>

#include "base/pool.h"
#include "fxt/reader.h"

/* A whole number; `missing` where there is none. `name` is a number of known_strings.h. */
uint64_t event_uint(const struct fxt_event *event, uint32_t name, uint64_t missing);
/*
 * The reason of an exit, a fallback, an invalidation or a site, as all commands count it: addresses
 * do not tell reasons apart.
 */
uint32_t event_reason(struct pool *pool, const struct fxt_event *event);
/* A string; STRING_NONE where there is none. */
uint32_t event_text(struct pool *pool, const struct fxt_event *event, uint32_t name);
/* What the settings of a trace say of compiled versions and of their code. */
struct code_settings {
    bool block_versions; /* YJIT's: versions of a basic block for several states, not recompilations of an ISEQ */
    bool traced_code;    /* the bytes of code have those of the trace points in them */
};
struct code_settings event_code_settings(const struct fxt_event *event);
/* The text of an argument of any type, as people write it. */
uint32_t arg_text(struct pool *pool, const struct fxt_arg *arg);

#endif
