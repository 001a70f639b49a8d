#ifndef PAGE_DATA_H
#define PAGE_DATA_H
/* page_data.h - what `vm-trace html` shows: sums that are computed in one pass, without keeping
 * events.
 *
 *      page_data_init -> page_data_read for each file -> page_data_finish -> the arrays -> page_data_free
 */
#include "source/annotation.h"
#include "topics/calls/call_slices.h"
#include "topics/kernel/kernel_sums.h"
#include "analysis/origin.h"
#include "page/page_series.h"
#include "analysis/profile.h"
#include "analysis/thread_table.h"
#include "topics/exits/exit_page.h"
#include "topics/samples/time_samples.h"
#include "topics/states/execution_page.h"
#include "topics/threads/thread_page.h"
#include "topics/trace_choice.h"
#include "topics/compiles/compiled_texts.h"
#include "base/row_table.h"
#include "base/status.h"

enum {
    PAGE_ROWS_SHOWN = 1000,     /* of other tables */
    PAGE_NODES_SHOWN = 8000,    /* of the flame graph */
    PAGE_SETTINGS_MAX = 256,
    PAGE_LOSSES_MAX = 256,
    PAGE_CALLS_SHOWN = 2 * 1000 * 1000, /* unless the caller sets another limit */
};

struct page_setting {
    uint32_t name;
    uint32_t value;
};

struct page_loss {
    uint32_t reason;
    uint64_t events;
};

struct page_data {
    struct reader *reader;
    struct pool *pool;
    struct trace_filter filter;
    uint64_t events;
    uint64_t lost;             /* from the summaries */
    uint64_t exact_exits;      /* likewise: exact even if exits were sampled */
    bool has_settings;         /* a file has them */
    bool summarized;           /* each file with settings ends with a summary */
    bool cut;                  /* a file is a part of a trace (vm-trace cut) */
    bool stopped;              /* of a file, only the beginning was read */
    struct shown_origin origin; /* of the last settings */
    int64_t first_ns, last_ns; /* of all events; first_ns > last_ns: there are none */

    struct page_exits exits;
    struct page_series series; /* what follows a window; its rows of exits are the gathered ones */

    bool timed;      /* the trace has the stream `states` */
    struct page_execution execution;
    struct version_history history; /* of all processes; recorded with the stream `states`, too */

    struct compiled_texts texts;

    uint64_t compiles, compile_ns; /* of ISEQs */
    uint64_t invalidations;

    struct profile profile; /* of exits */
    struct time_samples samples;
    struct profile sampled; /* their stacks, each with its state */
    struct page_setting settings[PAGE_SETTINGS_MAX];
    unsigned setting_count;
    struct page_loss losses[PAGE_LOSSES_MAX];
    unsigned loss_count;
    struct threads threads;
    struct page_threads over_time; /* threads and garbage collections */
    struct call_slices calls;      /* once finished: those to show, and the sums of all */
    struct kernel_sums kernel;     /* of the whole trace; its threads and processes are those of over_time.tracks */
    struct page_data *before;      /* another run, whose stacks the flame graphs compare; NULL: none */
    uint32_t calls_shown_max;      /* the longest are shown; the caller may change it before page_data_finish */
};

/* `data` must stay where it is. */
void page_data_init(struct page_data *data, size_t memory_bytes, const struct trace_choice *choice);
void page_data_free(struct page_data *data);
/* Reads a file and prints its faults. What it could read counts. */
enum status page_data_read(struct page_data *data, const char *file, uint64_t max_faults);
/* What the rows cost by source line. After page_data_finish; adds strings to the pool. Returns the number of the
 * reason (see struct annotated_reason) of each gathered row, or 0; the caller frees it. */
uint32_t *page_data_annotate(struct page_data *data, struct annotation *annotation);
/* After the last file: sorts the rows, largest first, and sums up those that are not shown. */
void page_data_finish(struct page_data *data);
/* Has flame graphs compare with another run. Both are finished; the stacks of `before` get the strings of `data`'s
 * pool, so nothing else of it may be used then. It must outlive `data`. */
void page_data_compare(struct page_data *data, struct page_data *before);

#endif
