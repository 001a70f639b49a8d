#ifndef PAGE_DATA_H
#define PAGE_DATA_H
/* page_data.h - what `vm-trace html` shows of traces: one pass, nothing kept of single events.
 *
 *      page_data_init -> page_data_read for each file -> page_data_finish -> the arrays -> page_data_free
 */
#include "analysis/duration_pairs.h"
#include "analysis/profile.h"
#include "analysis/thread_table.h"
#include "analysis/time_histogram.h"
#include "base/row_table.h"
#include "base/status.h"

enum {
    PAGE_ROW_KEYS = 5,
    PAGE_ROWS_MAX = 256 * 1024, /* that are told apart while reading */
    PAGE_ROWS_SHOWN = 1000,     /* the others are summed by reason */
    PAGE_NODES_SHOWN = 8000,    /* of the flame graph */
    PAGE_SETTINGS_MAX = 256,
    PAGE_LOSSES_MAX = 256,
};

/* Exits or fallbacks of one place for one reason. Strings are numbers of the pool. */
struct page_row {
    uint32_t category; /* the key */
    uint32_t reason;
    uint32_t frame;
    uint32_t insn;
    uint32_t outcome;
    uint32_t places;  /* 1, or how many rows were summed: then reason and category say of which, where they are the same */
    uint64_t count;   /* scaled by weight */
    int64_t first_ns; /* times of the first and last */
    int64_t last_ns;
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
    uint64_t events;
    uint64_t exits, fallbacks; /* scaled by weight */
    uint64_t recorded;         /* events that these come from */
    uint64_t lost;             /* as the summaries say */
    uint64_t exact_exits;      /* likewise: whatever was sampled */
    bool ours;                 /* a file has settings */
    bool summarized;           /* and each that has ends with a summary */
    int64_t first_ns, last_ns; /* of all events; first_ns > last_ns where there are none */

    struct row_table gathered; /* of struct page_row; the first one takes what is beyond PAGE_ROWS_MAX */
    struct page_row *rows;     /* once finished: those that are shown, and sums of the others */
    uint32_t row_count;
    struct time_histogram exits_over_time; /* of rows; once finished its cells are sorted by row and bin */

    struct time_histogram compiling; /* row 0: nanoseconds of all that the compiler did; row 1: number of invalidations */
    struct duration_pairs *pairs;   /* of the current file */
    uint64_t compiles, compile_ns; /* of ISEQs */
    uint64_t invalidations;

    struct profile profile; /* of exits */
    struct page_setting settings[PAGE_SETTINGS_MAX];
    unsigned setting_count;
    struct page_loss losses[PAGE_LOSSES_MAX];
    unsigned loss_count;
    struct threads threads;
};

void page_data_init(struct page_data *data, size_t memory_bytes);
void page_data_free(struct page_data *data);
/* Reads a file, says its faults. What could be read of it counts. */
enum status page_data_read(struct page_data *data, const char *file, uint64_t max_faults);
/* After the last file: puts the rows in order, largest first, and sums up those that are not shown. */
void page_data_finish(struct page_data *data);

#endif
