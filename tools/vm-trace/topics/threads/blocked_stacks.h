#ifndef BLOCKED_STACKS_H
#define BLOCKED_STACKS_H
/* blocked_stacks.h - where threads blocked: a report's `blocked_stacks`, if its caller wants them. */
#include "topics/report_data.h"

/* What to keep of an edge: `stack` of struct duration_pair_visitor, whose context is the report. */
uint32_t blocked_stack_of(void *context, const struct fxt_event *event, uint32_t row, bool end);
/* Takes a `blocked` duration; end may be NULL. ns: what of it counts. */
void blocked_stack_add(struct report *report, const struct duration_edge *begin, const struct duration_edge *end,
                       struct interval time, uint64_t ns);

#endif
