#ifndef TIME_SAMPLES_H
#define TIME_SAMPLES_H
/* time_samples.h - the samples of the stream `samples` (source ruby.samples): what threads did at regular
 * times, each with the time that it represents. Their stacks become a profile, which ends each with its
 * state.
 *
 *      time_samples_init -> time_samples_blob for each blob -> time_samples_file_end -> time_samples_free
 *
 * Memory grows with the number of definitions in the trace and of different stacks, and is charged to the
 * reader's budget.
 */
#include "analysis/profile.h"
#include "base/map.h"
#include "base/row_table.h"
#include "fxt/sample_packets.h"

/* X(name, text of the trace, title) */
#define TIME_SAMPLE_STATES_OF(X) \
    X(COMPILED, "compiled", "compiled") X(INTERPRETED, "interpreted", "interpreted") \
    X(COMPILING, "compiling", "compiling") X(GC, "gc", "GC") X(BLOCKED, "blocked", "blocked") \
    X(WAITING, "waiting", "waiting") X(NO_CPU, "no_cpu", "no CPU") \
    X(WITHOUT_GVL, "without_gvl", "without GVL")

enum time_sample_state {
#define TIME_SAMPLE_STATE(name, text, title) TIME_SAMPLE_##name,
    TIME_SAMPLE_STATES_OF(TIME_SAMPLE_STATE)
#undef TIME_SAMPLE_STATE
    TIME_SAMPLE_STATES
};

/* As in the trace; and for people. */
extern const char *const time_sample_names[TIME_SAMPLE_STATES];
extern const char *const time_sample_titles[TIME_SAMPLE_STATES];

/* Whether the thread was blocked, or waited for the GVL. */
static inline bool
time_sample_waits(enum time_sample_state state)
{
    return state == TIME_SAMPLE_BLOCKED || state == TIME_SAMPLE_WAITING;
}

struct time_sample {
    int64_t ts_ns;
    uint64_t ns;     /* what it represents */
    uint32_t recording, pid, tid;
    enum time_sample_state state;
    uint32_t node;   /* of the profile: its innermost frame; 0 in `wanted` */
};

struct time_samples {
    struct reader *reader;
    struct sample_packets *packets; /* of the current file */
    struct profile *profile;        /* the caller's */
    struct row_table stacks;        /* of this file, with their nodes */
    struct map label_of_frame;      /* generation and frame of this file -> string */
    uint32_t source;                /* strings: */
    uint32_t states[TIME_SAMPLE_STATES];
    uint32_t recording;             /* of the current blob */
    uint64_t unknown;               /* of a state or a stack that is not known: left out */
    uint64_t period_ns;             /* in the settings; the longest of several processes */
    bool cpu;                       /* CPU time, in the settings of a process */
    void *filter;                   /* for `passes`; NULL: all samples do */
    bool (*passes)(void *filter, const struct time_sample *sample);
    /* NULL, or functions of the caller: */
    void *context;
    void (*packet)(void *context, const struct packet_sample *packet); /* gets each sample as it is */
    bool (*wanted)(void *context, const struct time_sample *sample);   /* whether it counts */
    void (*added)(void *context, const struct time_sample *sample);    /* it was added to the profile */
};

/* Adds to the profile, of the kind PROFILE_SAMPLES, which must outlive the samples; NULL: samples only go
 * to `packet`. The caller may set `context` and its functions afterwards. */
void time_samples_init(struct time_samples *samples, struct reader *reader, struct profile *profile);
void time_samples_free(struct time_samples *samples);
/* The event trace/settings. */
void time_samples_settings(struct time_samples *samples, const struct fxt_event *event);
void time_samples_blob(struct time_samples *samples, const struct fxt_blob *blob);
/* What samples of the next file refer to is defined there. */
void time_samples_file_end(struct time_samples *samples);

/* The state of a node that ends a stack; TIME_SAMPLE_STATES for another node. */
enum time_sample_state time_samples_state(const struct time_samples *samples, const struct profile_node *node);

/* Decodes the state of a sample: TIME_SAMPLE_STATES if it has none that is known. */
enum time_sample_state time_samples_state_of(const struct time_samples *samples, const struct packet_sample *sample,
                                             uint64_t *ns_out);

#endif
