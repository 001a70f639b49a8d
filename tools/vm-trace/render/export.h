#ifndef EXPORT_H
#define EXPORT_H
/* export.h - the formats of `vm-trace export`, each in its own file. */
#include <stdio.h>

#include "analysis/profile.h"

/* Lines `outermost;...;innermost COUNT`, for https://github.com/brendangregg/FlameGraph and
 * other readers of "collapsed" stacks. `events`: COUNT is the number of events, not the sum of their
 * weights. Blocked time is in microseconds; the lines add up to the sum, rounded once. */
void export_folded(FILE *out, const struct profile *profile, bool events);
/* https://github.com/jlfwong/speedscope, file-format-schema.json: one profile of the type
 * "sampled" with that name. Blocked time is in nanoseconds. */
void export_speedscope(FILE *out, const struct profile *profile, const char *name, bool events);
/* https://github.com/google/pprof, proto/profile.proto, not yet compressed. Adds names to the
 * profile's pool. */
void export_pprof(FILE *out, const struct profile *profile);

/* Chrome's trace event format, for chrome://tracing and Perfetto: all events, in the order of
 * reading. */
struct chrome {
    FILE *out;
    bool any;
    uint64_t left_out; /* scheduling records, which the format does not have */
};
void chrome_begin(struct chrome *chrome, FILE *out);
/* For the reader's visitor; context is a struct chrome. */
void chrome_event(void *context, const struct fxt_event *event);
void chrome_object(void *context, const struct fxt_object *object);
void chrome_sched(void *context, const struct fxt_sched *sched);
void chrome_end(struct chrome *chrome);

#endif
