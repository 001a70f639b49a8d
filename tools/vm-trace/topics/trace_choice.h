#ifndef TRACE_CHOICE_H
#define TRACE_CHOICE_H
/* trace_choice.h - stands between the reader and what uses its records, and passes on those of a time and of threads
 * (--since, --until, --thread), and of these the exits, fallbacks, calls and allocations that --reason and --method
 * choose.
 *
 *      trace_filter_init -> trace_filter_visitor (and _bounds) -> for each file: it is read, trace_filter_file_end
 *      (which the bounds call) -> trace_filter_free
 *
 * Times are those of `report`: from the first event of the first file on (since trace_filter_restart). What lies
 * across a border is passed with its part inside; records of scheduling from outside have the time of the border, so
 * that the states there are known.
 * A process with settings ends with an event trace/cut, as in what `vm-trace cut` writes, at its last time. Events
 * about the trace as a whole (settings, host) are passed; sums of the whole trace only if neither a time nor a thread
 * is chosen. Who sums up needs all calls for the own times of some, and all sites, which may lack the class of their
 * method.
 */
#include "topics/choice.h"
#include "analysis/frame_owner.h"
#include "topics/samples/time_samples.h"
#include "base/map.h"
#include "base/row_table.h"
#include "fxt/read_files.h"

struct trace_filter {
    struct trace_choice choice;
    bool cuts, picks;          /* anything is left out: see choice.h */
    bool sums;                 /* by the caller, who sums up: gets all calls and sites, and asks trace_filter_picks */
    uint64_t tid;              /* of the thread, if that is one; else UINT64_MAX */
    struct reader *reader;
    struct glob reason, method;
    struct frame_owners owners;
    struct fxt_visitor inner;  /* who gets the records */
    struct file_bounds bounds; /* likewise */
    bool found;                /* a record of a chosen thread */
    bool begun;                /* the first event was seen, so that these are known: */
    int64_t from_ns, to_ns;
    int64_t first_ns, last_ns; /* of all events, whether they are passed or not */
    struct map wanted_threads; /* of this file, as the next ones: key of a thread -> whether its name fits */
    struct row_table durations;
    struct row_table recorders;
    struct row_table names;    /* of threads: a string of the pool each */
};

/* Has the reader's parts name what is chosen. */
void trace_filter_name(const struct trace_choice *choice, struct reader *reader);
/* The same, and more: `reader` must outlive the filter. */
void trace_filter_init(struct trace_filter *filter, const struct trace_choice *choice, struct reader *reader);
void trace_filter_free(struct trace_filter *filter);
/* The next file's first event is time 0. */
void trace_filter_restart(struct trace_filter *filter);
/* Whether --reason and --method choose it; of a call, reason is STRING_NONE. */
bool trace_filter_picks(struct trace_filter *filter, uint32_t reason, uint32_t label);
/* After all files: choice_check. */
enum status trace_filter_status(const struct trace_filter *filter, const char *command);
/* From the first event to the end of the last one, of those that were read. */
int64_t trace_filter_length_ns(const struct trace_filter *filter);
/* Returns the visitor for the reader; all is passed on to `inner`. */
struct fxt_visitor trace_filter_visitor(struct trace_filter *filter, const struct fxt_visitor *inner);
/* Whether a sample passes, by its time and its thread. */
bool trace_filter_sample(struct trace_filter *filter, const struct time_sample *sample);
/* Has samples pass the filter, too. */
void trace_filter_samples(struct trace_filter *filter, struct time_samples *samples);
/* For a profile that gets the filter's records: it gets all calls, and counts those that are chosen. */
void trace_filter_profile(struct trace_filter *filter, struct profile *profile);
/* For read_files with that visitor: at the end of a file, the filter's end comes first. `inner`: those of its user. */
struct file_bounds trace_filter_bounds(struct trace_filter *filter, const struct file_bounds *inner);
/* Passes what is still open, and the events trace/cut. */
void trace_filter_file_end(struct trace_filter *filter);

#endif
