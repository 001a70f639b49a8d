#ifndef EXPORT_H
#define EXPORT_H
/* export.h - the formats of `vm-trace export`, each in a file of its own. */
#include <stdio.h>

#include "analysis/profile.h"

/* Lines `outermost;...;innermost COUNT`: https://github.com/brendangregg/FlameGraph and whoever reads "collapsed" stacks. */
void export_folded(FILE *out, const struct profile *profile);
/* https://github.com/jlfwong/speedscope, file-format-schema.json: one profile of the type "sampled", of that name. */
void export_speedscope(FILE *out, const struct profile *profile, const char *name);
/* https://github.com/google/pprof, proto/profile.proto; not compressed yet. Adds names to the profile's pool. */
void export_pprof(FILE *out, const struct profile *profile);

/* Chrome's trace event format, which chrome://tracing and Perfetto read: all events, one after the other as they are read. */
struct chrome {
    FILE *out;
    bool any;
    uint64_t left_out; /* scheduling records: the format has none */
};
void chrome_begin(struct chrome *chrome, FILE *out);
/* For the reader's visitor: context is a struct chrome. */
void chrome_event(void *context, const struct fxt_event *event);
void chrome_object(void *context, const struct fxt_object *object);
void chrome_sched(void *context, const struct fxt_sched *sched);
void chrome_end(struct chrome *chrome);

#endif
