/* counter_values.c - see counter_values.h */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "fxt/counter_values.h"

bool
counter_value(const struct fxt_arg *arg, double *value_out)
{
    switch (arg->type) {
      case FXT_ARG_INT32:
      case FXT_ARG_INT64: *value_out = (double)arg->i64; return true;
      case FXT_ARG_UINT32:
      case FXT_ARG_UINT64: *value_out = (double)arg->u64; return true;
      case FXT_ARG_DOUBLE: *value_out = arg->f64; return true;
      default: return false;
    }
}

uint32_t
counter_name(struct pool *pool, const struct fxt_event *event, const struct fxt_arg *arg)
{
    size_t size = (size_t)event->name.len + arg->name.len + 32;
    char *text = xrealloc(NULL, size, 1);
    memcpy(text, event->name.ptr, event->name.len);
    size_t used = event->name.len;
    text[used++] = ':';
    memcpy(text + used, arg->name.ptr, arg->name.len);
    used += arg->name.len;
    used += (size_t)snprintf(text + used, size - used, ":%" PRIu64, event->id);
    uint32_t name = pool_intern(pool, text, used);
    free(text);
    return name;
}
