#ifndef EXPORT_H
#define EXPORT_H
/* export.h - the formats of `vm-trace export`, each in its own file. */
#include <stdio.h>

#include "analysis/profile.h"
#include "topics/trace_choice.h"
#include "base/json.h"
#include "base/status.h"

/* `partial` is for all formats: which part of the traces is exported (fxt_parts_line); NULL: all. */

/* Lines `outermost;...;innermost COUNT`, for https://github.com/brendangregg/FlameGraph and
 * other readers of "collapsed" stacks. `events`: COUNT is the number of events, not the sum of their
 * weights. Blocked time is in microseconds; the lines add up to the sum, rounded once. */
void export_folded(FILE *out, const struct profile *profile, bool events, const char *partial);
/* https://github.com/jlfwong/speedscope, file-format-schema.json: one profile of the type
 * "sampled" with that name. Blocked time is in nanoseconds. */
void export_speedscope(FILE *out, const struct profile *profile, const char *name, bool events, const char *partial);
/* https://github.com/google/pprof, proto/profile.proto, not yet compressed. Adds names to the
 * profile's pool. */
void export_pprof(FILE *out, const struct profile *profile, const char *partial);
/* Likewise several profiles of one reader, each as a value of its own. */
struct pprof_origin {
    int64_t unix_ns, duration_ns;
    const char *comment;
    const char *partial;
};
void export_pprof_together(FILE *out, const struct profile *profiles, unsigned count,
                           const struct pprof_origin *origin);

/* The Firefox Profiler's format: threads with the markers of all their events and waits for the GVL. */
enum firefox_samples {
    FIREFOX_SAMPLES_BEST,   /* samples of time if they were recorded; else states; else exits */
    FIREFOX_SAMPLES_STATES, /* of threads, weighted by time; exits if no states were recorded */
    FIREFOX_SAMPLES_TIME,   /* of the stream `samples`, weighted by time */
    FIREFOX_SAMPLES_EXITS,  /* weighted by their number, as below */
    FIREFOX_SAMPLES_FALLBACKS,
    FIREFOX_SAMPLES_CALLS,  /* weighted by own time */
    FIREFOX_SAMPLES_LOST, /* of exits, weighted by the time that they lost, times their weight */
};
/* Reads the files and writes the profile, unless they are of no use. Prints faults, and what the format
 * has no place for. choice->app_only: without the frames of others (frame_owner.h). Returns the worst status. */
enum status export_firefox(FILE *out, size_t memory_bytes, const struct trace_choice *choice, uint64_t max_faults,
                           enum firefox_samples samples, bool with_reasons, int file_count,
                           char **files);

/* Chrome's trace event format, for chrome://tracing and Perfetto: all events, in the order of
 * reading. */
struct chrome {
    struct json json;
    uint64_t left_out; /* scheduling records, which the format does not have */
    struct map process_of_pid;
    uint32_t twice; /* a pid of several processes, which the format cannot tell apart; 0: none */
};
void chrome_begin(struct chrome *chrome, FILE *out);
/* For the reader's visitor; context is a struct chrome. */
void chrome_event(void *context, const struct fxt_event *event);
void chrome_object(void *context, const struct fxt_object *object);
void chrome_sched(void *context, const struct fxt_sched *sched);
void chrome_end(struct chrome *chrome, const char *partial);

#endif
