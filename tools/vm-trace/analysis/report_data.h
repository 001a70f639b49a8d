#ifndef REPORT_DATA_H
#define REPORT_DATA_H
/* report_data.h - what `vm-trace report` and `vm-trace info` gather of traces: one pass, nothing kept of a single event.
 *
 *      report_new -> report_read_all -> the tables (report_tables.h) -> report_free
 *
 * A process is one of a file: a file may hold several (see `merge`), and each has its settings, its summary, its sites.
 */
#include "analysis/compilations.h"
#include "analysis/duration_pairs.h"
#include "analysis/durations.h"
#include "analysis/event_args.h"
#include "analysis/exit_table.h"
#include "analysis/glob.h"
#include "analysis/version_history.h"
#include "base/map.h"
#include "base/status.h"
#include "fxt/reader.h"

enum {
    REPORT_PROCESSES_MAX = 64 * 1024,
    REPORT_THREADS_MAX = 256 * 1024,
    REPORT_DURATIONS_MAX = 4096,      /* different names of durations */
    REPORT_SETTINGS_MAX = 64,     /* of a process */
};

/* What is to be counted. A zeroed one with since_ns INT64_MIN and until_ns INT64_MAX lets all through. */
struct report_filter {
    int64_t since_ns, until_ns; /* from the first event of the first file */
    const char *reason;         /* globs, or NULL */
    const char *method;
    const char *thread; /* a glob of the name, or a tid */
};

struct report_file {
    const char *name;
    struct fxt_counts counts;
    int64_t first_ns, last_ns; /* of all its events; first_ns > last_ns where there are none */
};

struct report_process {
    uint32_t file; /* the key */
    uint32_t pid;
    uint32_t setting_count;
    bool ours;       /* has settings, a summary, or an event that is not only a name */
    bool summarized; /* ended in good order */
    bool cut;        /* a part of a trace: its summary is left out */
    bool snapshot;   /* of a flight recorder: events that are not there were not asked for */
    bool sampled;    /* some events stand for more than one, or would */
    struct code_settings code;
    bool exact;      /* sites tell more than events, and all of them are there: they are counted in place of the events */
    uint64_t summary_sites; /* by the summary; UINT64_MAX where it does not say */
    uint64_t summary_lost;
    uint64_t sites;
    uint64_t lost; /* sum of loss events */
    uint64_t exits, fallbacks; /* as they count in the end; set when all is read */
    uint64_t recorded; /* exits and fallbacks */
};

struct report_setting {
    uint32_t process;
    uint32_t name;
    uint32_t value; /* a text, also of numbers */
};

struct report_loss {
    uint32_t process; /* the key */
    uint32_t reason;
    uint64_t events;
};

/* A native thread; or a Ruby thread that shares native ones, which its events name: these count for it alone. */
struct report_thread {
    uint32_t process; /* the key */
    uint32_t tid;     /* 0 where it has none of its own */
    uint32_t runs;    /* its name then, else STRING_NONE */
    uint32_t name;    /* STRING_NONE where no record names it */
    int8_t wanted; /* by --thread: -1 not known, 0, 1 */
    uint64_t events;
    uint64_t exits, fallbacks; /* weighted */
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
    struct report_filter filter;
    struct glob reason_glob, method_glob;

    struct report_file *files;
    uint32_t file_count;
    struct row_table processes; /* of struct report_process */
    struct report_setting *settings;
    uint32_t setting_count, setting_capacity;
    struct row_table losses;    /* of struct report_loss */
    struct row_table providers; /* of struct report_provider */
    struct row_table threads;   /* of struct report_thread */
    uint32_t last_thread;   /* the native one of the last event */

    bool has_events;
    int64_t start_ns;          /* time 0: the first event of the first file */
    int64_t first_ns, last_ns; /* of what is counted; first_ns > last_ns where nothing is */

    struct exit_table exits;
    uint64_t unnamed; /* exits at sites whose owner the trace does not tell, which --method might ask for */
    bool times_only; /* --since, --until or --thread: the sites do not know of these */
    bool exits_only; /* --reason or --method: durations have none */

    struct duration_pairs *pairs;       /* of the current file */
    struct compilations compilations;
    struct row_table invalidations; /* of struct named_durations */
    struct row_table durations;     /* likewise, of other categories */
    struct version_history history;
    uint64_t unended;
    uint64_t uncounted; /* durations of more names than are told apart */
};

struct report *report_new(size_t memory_bytes, const struct report_filter *filter);
void report_free(struct report *report);
/* Reads files and says their faults; what could be read of them counts. Returns the worst status. Names must live as long as
 * the report. */
enum status report_read_all(struct report *report, uint64_t max_faults, int file_count, char **files);
/* False when none of the files is a trace: then there is nothing to print. */
bool report_readable(const struct report *report);

/* Whether --reason and --method let a place through. */
bool report_exit_wanted(struct report *report, const struct exit_row *exit_row);
/* Whether what became of an ISEQ counts, by its time and its label. */
bool report_step_wanted(struct report *report, const struct version_step *step);

static inline struct report_process *
report_process(const struct report *report, uint32_t number)
{
    return row_table_at(&report->processes, number);
}

static inline struct report_thread *
report_thread(const struct report *report, uint32_t number)
{
    return row_table_at(&report->threads, number);
}

#endif
