#ifndef TRACE_CHOICE_H
#define TRACE_CHOICE_H
/* trace_choice.h - stands between the reader and what uses its records, and passes on those of a time and of threads
 * (--since, --until, --thread).
 *
 *      trace_filter_init -> trace_filter_visitor (and _bounds) -> for each file: it is read, trace_filter_file_end
 *      (which the bounds call) -> trace_filter_free
 *
 * Times are those of `report`: from the first event of the first file on (since trace_filter_restart). What lies
 * across a border is passed with its part inside; records of scheduling from outside have the time of the border, so
 * that the states there are known.
 * A process with settings ends with an event trace/cut, as in what `vm-trace cut` writes, at its last time. Events
 * about the trace as a whole (settings, host) are passed, sums of the whole trace are not.
 */
#include "analysis/time_samples.h"
#include "base/map.h"
#include "base/row_table.h"
#include "fxt/read_files.h"

struct trace_choice {
    int64_t since_ns, until_ns; /* INT64_MIN, INT64_MAX: all */
    const char *thread;         /* a glob of the name, or a tid; NULL: all */
};

#define TRACE_CHOICE_ALL {.since_ns = INT64_MIN, .until_ns = INT64_MAX}

struct trace_filter {
    struct trace_choice choice;
    uint64_t tid;              /* if that is one; else UINT64_MAX */
    struct reader *reader;
    struct fxt_visitor inner;  /* who gets the records */
    void (*inner_end)(void *context); /* NULL: nobody wants to know */
    bool found;                /* a record of a chosen thread */
    bool begun;                /* the first event was seen, so that these are known: */
    int64_t from_ns, to_ns;
    int64_t first_ns, last_ns; /* of all events, whether they are passed or not */
    struct map wanted_threads; /* of this file, as the next ones: key of a thread -> whether its name fits */
    struct row_table durations;
    struct row_table recorders;
};

/* Whether anything is left out. */
bool trace_choice_any(const struct trace_choice *choice);
/* "from 3 s to 5 s, thread web*"; malloc'ed. NULL: all is chosen. */
char *trace_choice_text(const struct trace_choice *choice);

/* `reader` must outlive the filter. */
void trace_filter_init(struct trace_filter *filter, const struct trace_choice *choice, struct reader *reader);
void trace_filter_free(struct trace_filter *filter);
/* The next file's first event is time 0. */
void trace_filter_restart(struct trace_filter *filter);
/* Whether the window lies in a trace of this length. Prints a message if not. */
bool trace_filter_window_in(const char *command, int64_t since_ns, int64_t length_ns);
/* After all files: STATUS_USAGE, with a message, if nothing of them was chosen. */
enum status trace_filter_status(const struct trace_filter *filter, const char *command);
/* From the first event to the end of the last one, of those that were read. */
int64_t trace_filter_length_ns(const struct trace_filter *filter);
/* Returns the visitor for the reader; all is passed on to `inner`. */
struct fxt_visitor trace_filter_visitor(struct trace_filter *filter, const struct fxt_visitor *inner);
/* Has samples pass the filter, too. */
void trace_filter_samples(struct trace_filter *filter, struct time_samples *samples);
/* For read_files with that visitor: at the end of a file, the filter's end comes first. */
struct file_bounds trace_filter_bounds(struct trace_filter *filter, void (*end)(void *context));
/* Passes what is still open, and the events trace/cut. */
void trace_filter_file_end(struct trace_filter *filter);

#endif
