#ifndef COUNTER_VALUES_H
#define COUNTER_VALUES_H
/* counter_values.h - a counter event holds a value for each of its arguments that is a number. */
#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "fxt/reader.h"

/* Returns false if the argument is no number. */
bool counter_value(const struct fxt_arg *arg, double *value_out);
/* Returns "name:argument:id", Perfetto's name for the track of a value, as a text of the pool. */
uint32_t counter_name(struct pool *pool, const struct fxt_event *event, const struct fxt_arg *arg);

#endif
