#ifndef FIREFOX_PROFILE_H
#define FIREFOX_PROFILE_H
/* firefox_profile.h - what a profile for the Firefox Profiler holds: for each thread its events and
 * states, sorted by time.
 *
 *      firefox_profile_new -> firefox_profile_read -> firefox_profile_finish -> the threads
 *      -> firefox_profile_free
 *
 * Everything of a thread lies together in the file, so all of it is kept until the end, charged to the
 * reader's budget.
 */
#include <stdio.h>

#include "analysis/thread_table.h"
#include "topics/samples/time_samples.h"
#include "topics/threads/thread_tracks.h"
#include "base/row_table.h"
#include "base/status.h"
#include "export/export.h"
#include "export/firefox_counters.h"
#include "export/firefox_stacks.h"

enum { FIREFOX_SCHEMAS_MAX = 1024, FIREFOX_FIELDS_MAX = 4096 };

/* A category of events: one of the profile's types of markers. */
struct firefox_schema {
    uint32_t category; /* the key: a string of the pool */
};

struct firefox_field {
    uint32_t schema; /* the key */
    uint32_t name;
};

struct firefox_record {
    int64_t ts_ns, end_ns;
    uint64_t offset;
    enum fxt_event_type type; /* FXT_EVENT_INSTANT, _DURATION_BEGIN, _DURATION_END or _DURATION_COMPLETE */
    uint32_t schema;
    uint32_t name;
    uint32_t args;        /* text of the pool: members of a JSON object */
    uint32_t outer_stack; /* all frames but the innermost */
    uint32_t innermost;   /* its label, or STRING_NONE */
    uint32_t woken_by;    /* of a blocked duration: text of the pool */
    uint64_t weight;      /* exits that an exit stands for */
};

/* A sample of time, a state of the thread, an exit, or own time of a call. */
struct firefox_sample {
    int64_t ts_ns;
    uint64_t weight; /* ns, or exits */
    uint32_t stack;
};

struct firefox_thread {
    struct firefox_record *records;
    struct track_piece *pieces;
    struct firefox_sample *samples;
    uint32_t record_count, piece_count, sample_count;
    uint32_t record_capacity, piece_capacity, sample_capacity;
    bool counts; /* it wrote values of counters */
};

struct firefox_profile {
    struct reader *reader;
    struct pool *pool;
    struct budget *budget;
    enum firefox_samples wanted;
    bool with_reasons;
    struct frame_owners owners;
    bool states; /* the trace has states of threads */
    bool samples_time; /* once finished: samples are weighted by time */
    struct profile profile; /* stacks of samples of time */
    struct time_samples time_samples;
    struct trace_filter filter;
    struct map stack_of_node; /* of that profile -> stack */
    struct thread_tracks tracks;
    struct threads names;
    struct firefox_stacks stacks;
    struct row_table schemas, fields;
    struct firefox_thread *threads; /* by their number in `tracks` */
    uint32_t thread_count;
    uint32_t thread_capacity;
    int64_t first_ns, last_ns;
    uint32_t command, ruby; /* of the settings */
    struct firefox_counters counters;
    uint64_t left_out;      /* async events, flows, and counters that the format cannot hold */
    FILE *args;             /* a buffer in memory */
    char *args_text;
    size_t args_bytes;
    uint32_t state_frames[FIREFOX_CATEGORIES]; /* texts of the pool */
};

struct firefox_profile *firefox_profile_new(size_t memory_bytes, const struct trace_choice *choice,
                                            enum firefox_samples samples, bool with_reasons);
void firefox_profile_free(struct firefox_profile *firefox);
/* Reads a file and prints its faults. */
enum status firefox_profile_read(struct firefox_profile *firefox, const char *file, uint64_t max_faults);
/* After the last file: makes one record of each duration, and samples. */
void firefox_profile_finish(struct firefox_profile *firefox);

/* The category of a schema, a string of the pool. */
uint32_t firefox_schema_category(const struct firefox_profile *firefox, uint32_t schema);
/* The stack of a record, or FIREFOX_NO_STACK. */
uint32_t firefox_record_stack(struct firefox_profile *firefox, const struct firefox_record *record);
/* The name of an argument as a member of a marker's data; malloc'ed. The profiler gives some members a
 * meaning of its own, so the names have a prefix. */
struct fxt_string firefox_arg_name(const struct pool *pool, uint32_t name);

#endif
