#ifndef MODEL_H
#define MODEL_H
/* model.h - a trace as Perfetto's trace processor sees it: slices on tracks, argument sets,
 * threads, counters, flows, scheduling.
 *
 * The model does the same as Perfetto's importer, in the same order and with the same numbers, so
 * queries give the same answers in both. Names of processes and threads apply in the order of the
 * file; everything else is sorted by time.
 *
 * It differs where Perfetto would give one process the events of another: equal pids of two recordings
 * (fxt/spool_names.h) are two processes, and a context switch belongs to the processes that it names.
 *
 *      model_new -> model_visitor for read_files -> model_finish -> the arrays -> model_free
 */
#include "base/map.h"
#include "fxt/piece_ends.h"
#include "fxt/read_files.h"
#include "fxt/reader.h"

#define MODEL_NONE UINT32_MAX /* NULL in SQL */

struct model_slice {
    int64_t ts;
    int64_t dur; /* -1 while it is open */
    uint32_t track;
    uint32_t category; /* strings are numbers of the pool */
    uint32_t name;
    uint32_t depth;
    uint32_t parent;  /* slice, or MODEL_NONE */
    uint32_t arg_set; /* or MODEL_NONE */
};

enum model_value { MODEL_INT, MODEL_STRING, MODEL_REAL, MODEL_POINTER, MODEL_BOOL };

struct model_arg {
    uint32_t set;
    uint32_t key;
    enum model_value type;
    union {
        int64_t integer;
        uint32_t string;
        double real;
    };
};

/* A pid of one recording. Until their processes get rows, items have its number. */
struct model_pid {
    uint32_t pid;
    uint32_t recording;
};

struct model_process {
    uint32_t pid;
    uint32_t name; /* or MODEL_NONE */
};

struct model_thread {
    uint32_t tid;
    uint32_t upid; /* or MODEL_NONE */
    uint32_t name; /* or MODEL_NONE */
    bool main;
};

enum model_track_kind { MODEL_THREAD_TRACK, MODEL_ASYNC_TRACK, MODEL_COUNTER_TRACK, MODEL_SAMPLE_TRACK };

struct model_track {
    enum model_track_kind kind;
    uint32_t name;  /* or MODEL_NONE */
    uint32_t owner; /* utid of a thread track, upid of a counter track, row of that of stack samples */
};

struct model_counter {
    int64_t ts;
    double value;
    uint32_t track;
};

struct model_flow {
    uint32_t out; /* slices */
    uint32_t in;
    uint64_t id;
};

struct model_sched {
    int64_t ts;
    int64_t dur; /* -1 while it runs */
    uint32_t cpu;
    uint32_t utid;
    const char *end_state; /* or NULL */
    int32_t priority;
};

struct model_state {
    int64_t ts;
    int64_t dur;
    uint32_t cpu;
    uint32_t utid;
    const char *state; /* or NULL */
    uint32_t waker;    /* utid, or MODEL_NONE */
    uint32_t waker_state;
};

/* Why Perfetto drops a slice. */
enum model_drop { MODEL_TOO_DEEP, MODEL_OVERLAPS, MODEL_DROPS };

struct model_items; /* items that wait to be sorted by time */
struct model_scheduling;
struct model_asyncs;
struct model_flow_state;
struct samples;
struct trace_filter;

/* The slices of a track that later events may end or nest in. */
struct model_stack {
    uint32_t *slices;
    uint32_t depth;
    uint32_t capacity;
};

struct model {
    struct reader *reader;
    struct pool *pool;

    ARRAY_OF(struct model_slice) slices;
    ARRAY_OF(struct model_arg) args;      /* grouped by set, in the order of the sets */
    ARRAY_OF(uint32_t) arg_sets;          /* first argument of each set */
    ARRAY_OF(struct model_process) processes; /* by upid */
    ARRAY_OF(struct model_thread) threads;    /* by utid */
    ARRAY_OF(struct model_track) tracks;
    ARRAY_OF(struct model_counter) counters;
    ARRAY_OF(struct model_flow) flows;
    ARRAY_OF(struct model_sched) scheds;
    ARRAY_OF(struct model_state) states;
    uint64_t faults[FXT_FAULT_CODES]; /* over all files */
    uint64_t dropped_slices[MODEL_DROPS];

    struct hash_index set_index; /* of arg_sets */
    ARRAY_OF(struct model_pid) pids;
    struct map pid_numbers;    /* recording and pid -> index of pids */
    struct map upid_of_pid;    /* by index of pids */
    struct map utid_of_thread; /* upid and tid -> utid */
    struct map last_of_tid;    /* recording and tid -> utid seen last, in any process */
    struct map track_of_thread;
    struct map track_of_counter;
    ARRAY_OF(struct model_stack) stacks; /* by track */

    struct piece_ends piece_ends;
    struct model_items *items;
    struct model_scheduling *scheduling;
    struct model_asyncs *asyncs;
    struct model_flow_state *flow_state;
    struct samples *samples; /* samples.h */
    struct trace_filter *filter; /* by the caller: only samples that pass it are taken; NULL: all */
};

/* make_room and map_set for the model, charged to the reader's budget. */
#define model_room(model, array, count, capacity) \
    make_room_within(reader_budget((model)->reader), array, count, capacity)

static inline void
model_map_set(struct model *model, struct map *map, uint64_t key, uint32_t value)
{
    map_set_within(reader_budget(model->reader), map, key, value);
}

struct model *model_new(struct reader *reader);
void model_free(struct model *model);
/* A visitor for read_files. */
struct fxt_visitor model_visitor(struct model *model);
/* For read_files. Paths must live until all files are read. */
extern const struct file_bounds model_file_bounds;
/* Sorts and builds the tables. Returns the number of events, the last ones, that are missing for
 * lack of memory: 0 unless almost every event has its own thread, process or track. */
uint32_t model_finish(struct model *model);

/* --- what the files of the model share --------------------------------------------------- */

/* model_args.c: returns a set with the arguments of the set `base` (or MODEL_NONE) and these;
 * MODEL_NONE if there are none. */
uint32_t model_arg_set(struct model *model, uint32_t base, const struct model_arg *args, unsigned count);
unsigned model_args_of(const struct model *model, uint32_t set, const struct model_arg **args_out);
void model_arg_from(struct model *model, const struct fxt_arg *arg, struct model_arg *arg_out);

/* model_threads.c */
void model_threads_begin(struct model *model);
void model_threads_end(struct model *model);
uint32_t model_pid(struct model *model, uint32_t recording, uint32_t pid); /* its number */
uint32_t model_process(struct model *model, uint32_t number);              /* returns a upid, added if necessary */
uint32_t model_thread(struct model *model, uint32_t tid, uint32_t number); /* likewise a utid */
uint32_t model_any_thread(struct model *model, uint32_t recording, uint32_t tid); /* of any process of it */

/* model_slices.c: a track's stack of slices. Returns MODEL_NONE if Perfetto drops the slice. */
uint32_t model_track(struct model *model, enum model_track_kind kind, uint32_t name, uint32_t owner);
uint32_t model_thread_track(struct model *model, uint32_t utid);
uint32_t model_slice_begin(struct model *model, uint32_t track, int64_t ts, int64_t dur, uint32_t category,
                           uint32_t name, uint32_t arg_set);
/* With category and name STRING_NONE, ends the innermost open slice. */
void model_slice_end(struct model *model, uint32_t track, int64_t ts, uint32_t category, uint32_t name,
                     uint32_t arg_set);
uint32_t model_top_slice(const struct model *model, uint32_t track);

/* model_async.c: returns the track of an async event. */
uint32_t model_async_track(struct model *model, enum fxt_event_type type, uint32_t recording, uint32_t name, uint64_t id);
void model_async_end(struct model *model);

/* model_flows.c */
void model_flow(struct model *model, enum fxt_event_type type, uint32_t track, uint32_t pid, uint64_t id);
void model_flows_end(struct model *model);

/* samples.c: stack samples out of blob records. _finish builds their tables. */
struct samples *model_samples_new(struct reader *reader);
void model_samples_free(struct samples *samples);
void model_samples_read(struct model *model, const struct fxt_blob *blob);
void model_samples_finish(struct model *model);

/* model_sched.c */
struct model_switch {
    enum fxt_sched_type type;
    unsigned out_state;
    uint32_t cpu;
    bool dropped;      /* its arguments have wrong types */
    bool has_waker;
    int32_t in, out;   /* priorities, or weights */
    uint64_t out_tid;
    uint64_t in_tid;   /* of a wake-up: the waker */
    uint32_t recording, provider;
    uint32_t out_pid, in_pid; /* numbers; FXT_SCHED_LEGACY_SWITCH */
};
/* What is kept of a record until it is sorted. */
struct model_switch model_switch_from(struct model *model, const struct fxt_sched *sched);
void model_scheduled(struct model *model, int64_t ts, const struct model_switch *sched);
void model_thread_process(struct model *model, const struct fxt_object *object);
void model_sched_begin(struct model *model);
void model_sched_end(struct model *model);

#endif
