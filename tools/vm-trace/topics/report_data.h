#ifndef REPORT_DATA_H
#define REPORT_DATA_H
/* report_data.h - what `vm-trace report` and `vm-trace info` gather from traces, in one pass and
 * without keeping events.
 *
 *      report_new -> report_read_all -> the tables (report_tables.h) -> report_free
 *
 * A row of `processes` is what one file has of one process: its settings, its summary and its sites.
 * A file may have several of them (see `merge`), also with equal pids. And a process may have several rows, for a spool
 * has a file for each piece of its recording (fxt/spool_names.h): they name the first one as `whole`.
 * Threads belong to the whole, exits and losses to the piece.
 */
#include "topics/allocations/allocations.h"
#include "topics/calls/calls.h"
#include "topics/compiles/compilations.h"
#include "analysis/duration_pairs.h"
#include "analysis/durations.h"
#include "topics/markers/endpoints.h"
#include "analysis/event_args.h"
#include "topics/states/execution.h"
#include "topics/exits/exit_table.h"
#include "analysis/frame_owner.h"
#include "topics/fibers/fibers.h"
#include "topics/gc/gc_pauses.h"
#include "analysis/glob.h"
#include "topics/kernel/kernel_sums.h"
#include "analysis/profile.h"
#include "topics/counters/jit_counters.h"
#include "topics/samples/sample_sums.h"
#include "topics/exits/seen_table.h"
#include "topics/exits/throws.h"
#include "topics/topic.h"
#include "topics/trace_choice.h"
#include "analysis/trace_host.h"
#include "topics/compiles/version_history.h"
#include "base/map.h"
#include "base/status.h"
#include "fxt/reader.h"

enum {
    REPORT_PROCESSES_MAX = 64 * 1024,
    REPORT_THREADS_MAX = 256 * 1024,
    REPORT_BLOCKED_MAX = 64 * 1024, /* distinct threads, names and classes of what blocked */
    REPORT_SETTINGS_MAX = 64,     /* per process */
    REPORT_NO_THREAD = UINT32_MAX,
};

struct report_file {
    const char *name;
    struct fxt_counts counts; /* without faults and padding records */
    int64_t first_ns, last_ns; /* of all its events; first_ns > last_ns: there are none */
    bool stopped;              /* only its beginning was read */
};

struct report_process {
    uint32_t trace; /* the key: number of the trace that was read */
    uint32_t recording;
    uint32_t pid;
    uint32_t file;
    uint32_t whole;  /* number of the first piece of the same recording: mostly its own */
    uint32_t latest; /* of a whole: number of its last piece so far */
    uint32_t setting_count;
    uint32_t first_setting, last_setting; /* number + 1 in `settings`; 0: it has none */
    bool shown;      /* has settings, a summary, or an event besides names */
    bool summarized; /* ended in good order */
    bool cut;        /* a part of a trace, without its summary */
    bool snapshot;   /* of a flight recorder: missing older events are no loss */
    bool sampled;    /* events have weights above 1, or could have */
    struct code_settings code;
    struct trace_host host;
    bool exact;      /* the hits of its sites count, not the events: they know more, and all are there */
    bool timed;      /* the trace has the stream `states`: exits have lost time */
    uint64_t summary_sites; /* in the summary; UINT64_MAX: not given */
    uint64_t summary_lost;
    uint64_t calls_replaced; /* by compiled code, in the summary */
    uint64_t samples_unhandled; /* looks of the sampler while the program had its signal, in the summary */
    uint64_t suspensions, without_callers; /* of threads, in the summary; 0: there were none, or it does not say */
    uint64_t sites;
    uint64_t lost; /* sum of loss events */
    uint64_t exits, fallbacks; /* the final counts, once everything is read */
    uint64_t recorded; /* events of exits and fallbacks */
    struct shown_origin origin;
    int64_t first_ns, last_ns; /* of all its events and scheduling records; first_ns > last_ns: there are none */
};

enum { REPORT_PROCESS_KEYS = 3 };

/* What a thread blocked in. */
struct report_blocked {
    uint32_t thread; /* the key: number of the thread */
    uint32_t name;
    uint32_t class_name;
    struct durations durations; /* until it was woken */
};
enum { REPORT_BLOCKED_KEYS = 3 };

/* Where a thread was when its time slice ended. */
struct report_preempted {
    uint32_t thread; /* the key: number of the thread */
    uint32_t frame;  /* the innermost one outside of Ruby's own files */
    uint64_t count;
};
enum { REPORT_PREEMPTED_KEYS = 2, REPORT_PREEMPTED_MAX = 64 * 1024 };

struct report_setting {
    uint32_t process;
    uint32_t name;
    uint32_t value; /* as text, even for numbers */
    uint32_t next;  /* number + 1 of the next one of the process, or 0 */
};

struct report_loss {
    uint32_t process; /* the key */
    uint32_t reason;
    uint64_t events;
};

/* A native thread. Or a Ruby thread that shares native threads: its events name it, and count
 * only for it. */
struct report_thread {
    uint32_t process; /* the key: a whole */
    uint32_t tid;     /* 0: it has no native thread of its own */
    uint32_t runs;    /* its name in that case, else STRING_NONE */
    uint32_t name;    /* STRING_NONE: unnamed */
    int8_t wanted; /* by --thread: -1 unknown, 0 no, 1 yes */
    uint64_t events;
    uint64_t exits, fallbacks; /* sums of the weights */
    int64_t first_ns, last_ns; /* of a native thread, of all its events; first_ns > last_ns: there are none */
    int64_t seen_ns;           /* of those that it wrote itself (fxt_event_seen_ns), the last time */
};

/* Samples of time of one file that were taken in one place, in one state. */
struct sample_place {
    uint32_t file; /* the key */
    uint32_t label; /* of the innermost frame */
    uint32_t state; /* enum time_sample_state */
    uint64_t ns;
};
enum { SAMPLE_PLACE_KEYS = 3 };

/* Samples of time that the filter passes. */
struct report_samples {
    struct time_samples all;
    struct profile profile;   /* their stacks, each with its state */
    struct row_table threads; /* of struct sample_thread */
    struct row_table places;  /* of struct sample_place */
};

/* The first piece of a process. */
struct report_whole {
    uint32_t recording; /* the key */
    uint32_t pid;
    uint32_t process;
};

struct report_provider {
    uint32_t file; /* the key */
    uint32_t id;
    uint32_t name;
    uint64_t chunks;
};

struct report {
    struct reader *reader;
    struct pool *pool;
    uint32_t title; /* name of the setting that has the title of a process */
    struct trace_choice filter;
    struct glob reason_glob, method_glob;
    struct frame_owners owners;
    struct trace_filter choice; /* see report_new_chosen */

    struct report_file *files;
    uint32_t file_count, file_capacity;
    uint32_t traces;            /* that were read */
    struct row_table wholes;    /* of struct report_whole */
    struct row_table processes; /* of struct report_process */
    struct report_setting *settings;
    uint32_t setting_count, setting_capacity;
    struct row_table losses;    /* of struct report_loss */
    struct row_table providers; /* of struct report_provider */
    struct row_table threads;   /* of struct report_thread */
    uint32_t last_thread;   /* the native thread of the last event */
    uint32_t last_recording; /* likewise */

    bool has_events;
    bool has[KNOWN_STRINGS_END]; /* events of a category, whether or not they pass */
    bool recorded[TOPICS_COUNT]; /* the files have its events, whether or not they pass; of topics that note it */
    int64_t start_ns;          /* time 0: the first event of the first file */
    int64_t first_ns, last_ns; /* of what counts; first_ns > last_ns: nothing does */

    struct exit_table exits;
    struct throws throws;
    struct jit_counters counters;
    struct seen_table seen;
    uint64_t unnamed; /* exits at sites of unknown owner, which may match --method */
    bool windowed; /* --since or --until */
    bool times_only; /* --since, --until or --thread, which sites do not record */
    bool exits_only; /* --reason or --method, which durations do not have */
    bool alive_of_any_age; /* also what was allocated before the time that is wanted, if it is described */
    bool chooses;    /* `choice` passes only a part */

    struct duration_pairs *pairs;       /* of the current file */
    struct compilations compilations;
    struct row_table invalidations; /* of struct named_durations */
    struct row_table durations;     /* likewise, for other categories */
    struct thread_states states;
    struct row_table preempted; /* of struct report_preempted */
    struct row_table blocked; /* of struct report_blocked */
    bool by_gem;      /* by the caller: `endpoints` are to know their costs by gem */
    bool each_thread; /* by the caller: tables have a row for each thread of a pool */
    bool silent; /* by the caller: the files were read before, so their faults were printed */
    struct profile *blocked_stacks; /* the caller's, to be filled in with the same times; NULL: not needed */
    /* NULL, or a function of the caller: something that began then blocked at a node of these, all in all for this time,
     * whatever the window. */
    void (*blocked_added)(void *context, uint32_t node, int64_t begin_ns, struct interval time);
    void *blocked_context;
    struct endpoints *endpoints; /* the caller's, to be filled in; NULL: not needed */
    struct fibers fibers;
    struct gc_pauses gc;
    struct allocations allocations;
    struct execution execution; /* of threads that the filter passes; nothing if it has times */
    struct calls calls;
    struct kernel_sums kernel;
    struct report_samples samples;
    struct version_history history;
    uint64_t unended;
    uint64_t uncounted; /* durations without a row, because there are too many names */
};

struct report *report_new(size_t memory_bytes, const struct trace_choice *filter);
/* The same, but each file, or what report_read reads as one, counts only as far as its time and thread are chosen, as
 * if `vm-trace cut` had made it. Times are from its own first event on. */
struct report *report_new_chosen(size_t memory_bytes, const struct trace_choice *choice);
void report_free(struct report *report);
/* Reads files and prints their faults; what it could read counts. Pieces of one recording, one after the other, are of
 * the same process. Returns the worst status. Names must live as long as the report. */
enum status report_read_all(struct report *report, uint64_t max_faults, int file_count, char **files);
/* The same in parts: one file, or several traces as one file of that name, which begins a recording; and then the end
 * of all reading. */
enum status report_read_one(struct report *report, uint64_t max_faults, const char *file);
enum status report_read(struct report *report, uint64_t max_faults, const char *name, int path_count, char **paths);
void report_read_end(struct report *report);
/* Why requests cannot be told apart in these files, or NULL. */
const char *report_why_no_requests(const struct trace_choice *filter, int file_count, char **files);
/* After report_read_all with `endpoints`, which have all spans: reads the files again for what happened in requests, if
 * there is any. report_why_no_requests has no objection. */
void report_read_requests(struct report *report, size_t memory_bytes, int file_count, char **files);
/* False if none of the files is a trace: then there is nothing to print. */
bool report_readable(const struct report *report);

/* Whether an exit passes --reason and --method. */
bool report_exit_wanted(struct report *report, uint32_t reason, uint32_t location);
/* Whether a step of an ISEQ passes the filter, by its time and its label. */
bool report_step_wanted(struct report *report, const struct version_step *step);

/* Whether a process has the stream `states`. */
bool report_timed(const struct report *report);
/* Whether an ISEQ passes --method, and there is no filter that ISEQs cannot pass. */
bool report_iseq_wanted(struct report *report, uint32_t iseq);

/* The frame that an event counts for: the innermost one, or that of the application; and the same outside of Ruby's own
 * files. */
uint32_t report_frame(struct report *report, const struct fxt_event *event);
uint32_t report_own_frame(struct report *report, const struct fxt_event *event);

/* While files are read. The number of a process, of a native thread, and of a Ruby thread of a process (a whole) that
 * shares native ones: with too many, the last one collects the rest. */
uint32_t report_process_of(struct report *report, uint32_t recording, uint32_t pid);
uint32_t report_thread_of(struct report *report, uint32_t recording, uint32_t pid, uint32_t tid);
uint32_t report_thread_running(struct report *report, uint32_t whole, uint32_t runs);
/* Takes the time of an event, of a native thread, whatever the filter: it ends at `end_ns`, and the thread wrote it at
 * `seen_ns`. Returns the thread's number. */
uint32_t report_note(struct report *report, uint32_t recording, uint32_t pid, uint32_t tid, struct interval time,
                     int64_t seen_ns);
/* The same of a moment. */
uint32_t report_moment(struct report *report, uint32_t recording, uint32_t pid, uint32_t tid, int64_t ts_ns);
/* Whether a thread is the one that --thread names. */
bool report_thread_matches(struct report *report, struct report_thread *thread);

/* The first setting of a process with this name (an enum known_string), or NULL. */
struct report_setting *report_setting_of(const struct report *report, uint32_t process, uint32_t name);

/* The part of a native thread's time that lies in the window: from its first event or record of any stream to its last
 * one. It is the whole to which each stream relates what it has of the thread: at least that, which is `of_stream_ns`. */
uint64_t report_thread_ns(const struct report *report, uint32_t number, uint64_t of_stream_ns);

static inline struct report_process *
report_process(const struct report *report, uint32_t number)
{
    return row_table_at(&report->processes, number);
}

/* Whether the process's file goes on behind what was read. */
static inline bool
report_ends_unread(const struct report *report, const struct report_process *process)
{
    return report->files[process->file].stopped;
}

static inline uint32_t
report_whole(const struct report *report, uint32_t number)
{
    return report_process(report, number)->whole;
}

/* Of a whole: its piece in the file that is being read, or was last. */
static inline uint32_t
report_piece(const struct report *report, uint32_t whole)
{
    return report_process(report, whole)->latest;
}

static inline struct report_thread *
report_thread(const struct report *report, uint32_t number)
{
    return row_table_at(&report->threads, number);
}

/* Whether a row of a thread, or the thread with this number, passes --thread. */
static inline bool
report_thread_passes(struct report *report, struct report_thread *thread)
{
    return report->filter.thread == NULL || report_thread_matches(report, thread);
}

static inline bool
report_thread_wanted(struct report *report, uint32_t number)
{
    return report->filter.thread == NULL || report_thread_matches(report, report_thread(report, number));
}

/* Whether a time passes --since and --until. */
static inline bool
report_time_wanted(const struct report *report, int64_t ts_ns)
{
    int64_t ns = ts_ns - report->start_ns;
    return ns >= report->filter.since_ns && (ns < report->filter.until_ns || report->filter.until_ns == INT64_MAX);
}

/* Something in this time passes the filter. */
static inline void
report_counts_in(struct report *report, int64_t from_ns, int64_t to_ns)
{
    if (from_ns < report->first_ns) report->first_ns = from_ns;
    if (to_ns > report->last_ns) report->last_ns = to_ns;
}

#endif
