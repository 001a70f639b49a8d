#ifndef DIFF_H
#define DIFF_H
/* diff.h - what `vm-trace diff` compares: exits of two sides, each one run of a program or several.
 *
 * A row is a reason, a method or a site. In each run it has a count, exact where the trace tells it, otherwise an estimate with a
 * margin: twice the standard deviation of a sampled count. Two sides differ when their runs do not overlap: every run of one
 * side, less its margin, lies above every run of the other, plus its margin.
 */
#include "analysis/report_data.h"

enum { SIDES = 2 };

enum diff_unit { PER_RUN, PER_SECOND, IN_ALL };

enum verdict { UNCHANGED, WITHIN_SPREAD, NEW, GONE, GREW, SHRANK };

/* The count of a row over the runs of one side, in the unit that was asked for. */
struct diff_count {
    double value;     /* mean of the runs; for IN_ALL their sum */
    double low, high; /* of the runs, margins included */
};

struct diff_row {
    /* The key. Strings are numbers of the pool; what a table does not tell apart is 0. */
    uint32_t reason;
    uint32_t method; /* `Owner#method (path)` */
    uint32_t insn;
    uint32_t line;
    uint32_t line_after; /* where the line is another one on the second side */
    struct diff_count counts[SIDES];
    enum verdict verdict;
};

struct diff_table {
    struct row_table rows; /* of struct diff_row */
    double *counts;    /* by rows, for each run: what was counted */
    double *variances;
    uint32_t capacity; /* rows that they have room for */
    uint32_t *order;   /* rows that differ, largest difference first */
    uint32_t changed;
    uint32_t within; /* rows that differ within the spread of the runs */
};

struct diff_run {
    unsigned side;
    double scale;    /* from a count to the unit */
    double estimate; /* K of the sampling where counts are estimated; 0 where all are exact */
};

struct diff {
    struct report *report; /* of all files: each is a run */
    enum diff_unit unit;
    bool fallbacks;
    const struct path_map *map;
    struct diff_run *runs;
    uint32_t run_count;
    uint32_t side_runs[SIDES];
    struct diff_row total;
    struct diff_table reasons, methods, sites;
    struct map stable_texts; /* text -> without addresses, path mapped */
};

/* Prefixes of paths and what they are called on the other side. */
struct path_map {
    struct {
        const char *from;
        size_t from_bytes;
        const char *to;
        uint32_t witnesses; /* methods that it was found by; 0: the user gave it */
    } *list;
    uint32_t count;
    uint32_t capacity;
};

/* diff_map.c: adds prefixes that the same files have on the two sides. They live as long as the report. */
void diff_find_map(struct report *report, uint32_t first_side, bool fallbacks, struct path_map *map);

/* Compares what was read: the first `first_side` files with the others. */
void diff_init(struct diff *diff, struct report *report, uint32_t first_side, enum diff_unit unit, bool fallbacks,
               const struct path_map *map);
void diff_free(struct diff *diff);

static inline double
diff_delta(const struct diff_row *row)
{
    return row->counts[1].value - row->counts[0].value;
}

static inline bool
diff_called(enum verdict verdict)
{
    return verdict > WITHIN_SPREAD;
}

#endif
