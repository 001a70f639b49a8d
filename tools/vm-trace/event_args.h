#ifndef EVENT_ARGS_H
#define EVENT_ARGS_H
/* event_args.h - arguments of an event as those who sum want them: numbers, and texts as numbers of a pool. */
#include "pool.h"
#include "reader.h"

/* A whole number; `missing` where there is none. word is a number of words.h. */
uint64_t event_uint(const struct fxt_event *event, uint32_t word, uint64_t missing);
/* A string; STRING_NONE where there is none. */
uint32_t event_text(struct pool *pool, const struct fxt_event *event, uint32_t word);
/* The text of an argument of any type, as people write it. */
uint32_t arg_text(struct pool *pool, const struct fxt_arg *arg);

#endif
