#ifndef SUMMARY_H
#define SUMMARY_H
/* summary.h - what `vm-trace summary` gathers of one trace, and prints. Memory grows with distinct names, not with events. */
#include "reader.h"
#include "spans.h"
#include "tally.h"
#include "thread_table.h"

enum { SUMMARY_SETTINGS_MAX = 64 };

/* One argument of trace/settings; its strings are in the pool. */
struct setting {
    uint32_t name;
    enum fxt_arg_type type;
    uint32_t string;
    uint64_t number;
};

struct summary {
    struct reader *reader;

    struct setting settings[SUMMARY_SETTINGS_MAX];
    unsigned setting_count;

    int64_t first_ns, last_ns; /* of all events; first_ns > last_ns where there are none */
    struct threads threads;

    /* Exits of both kinds. Counts are scaled: an event that stands for K exits counts K. */
    struct tally reasons;   /* category, reason */
    struct tally frames;    /* innermost frame */
    struct tally outcomes;  /* of recompile exits */
    struct tally fallbacks; /* reason */
    bool scaled;            /* some event stood for more than one */

    struct spans *open_spans;
    struct tally compiles;      /* whole compilations: one row */
    struct tally phases;        /* phase: what lies within a compilation */
    struct tally invalidations; /* reason */
    struct tally durations;     /* category, name: of other traces */
    uint64_t unended;

    struct tally sites;  /* kind, reason, location, insn, version: exact hits */
    struct tally exact;  /* category, reason: exact hits */
    struct tally losses; /* reason: events lost */
    bool summarized;     /* has trace/summary: the program ended in good order and the site counts are whole */
    uint64_t lost;       /* as trace/summary says */
};

void summary_init(struct summary *summary, size_t memory_bytes);
/* For the reader's visitor: context is the summary. */
void summary_event(void *context, const struct fxt_event *event);
void summary_object(void *context, const struct fxt_object *object);
/* After the last event. */
void summary_finish(struct summary *summary);
void summary_free(struct summary *summary);
/* One readable screen. Sorts the tallies. */
void summary_print(struct summary *summary, const char *file, uint64_t top);

#endif
