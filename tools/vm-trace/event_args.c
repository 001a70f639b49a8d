/* event_args.c - see event_args.h. */
#include <inttypes.h>
#include <stdio.h>

#include "event_args.h"

uint64_t
event_uint(const struct fxt_event *event, uint32_t word, uint64_t missing)
{
    uint64_t value;
    return fxt_arg_uint(fxt_event_arg(event, word), &value) ? value : missing;
}

uint32_t
event_text(struct pool *pool, const struct fxt_event *event, uint32_t word)
{
    const struct fxt_arg *arg = fxt_event_arg(event, word);
    return arg == NULL || arg->type != FXT_ARG_STRING ? STRING_NONE : pool_id(pool, arg->string);
}

uint32_t
arg_text(struct pool *pool, const struct fxt_arg *arg)
{
    char text[64];
    int len;
    switch (arg->type) {
      case FXT_ARG_STRING: return pool_id(pool, arg->string);
      case FXT_ARG_INT32:
      case FXT_ARG_INT64: len = snprintf(text, sizeof text, "%" PRId64, arg->i64); break;
      case FXT_ARG_DOUBLE: len = snprintf(text, sizeof text, "%g", arg->f64); break;
      case FXT_ARG_BOOL: len = snprintf(text, sizeof text, "%s", arg->boolean ? "true" : "false"); break;
      default: len = snprintf(text, sizeof text, "%" PRIu64, arg->u64); break;
    }
    return pool_intern(pool, text, (size_t)len);
}
