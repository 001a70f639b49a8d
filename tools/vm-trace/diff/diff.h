#ifndef DIFF_H
#define DIFF_H
/* diff.h - compares the exits of two sides, each one run of a program or several. Other streams:
 * diff_streams.h.
 *
 * A row is a reason, a method or a site. In each run it has a count: exact where the trace has
 * exact counts, otherwise an estimate with a margin of twice the standard deviation. Two sides
 * differ if their runs do not overlap: every run of one side, less its margin, lies above every run
 * of the other, plus its margin. Among many processes some always overlap, so there (`by_mean`) the means
 * must differ: each more than two of its standard errors from the other's.
 */
#include "topics/report_data.h"

enum { SIDES = 2 };

enum diff_unit { PER_RUN, PER_SECOND, IN_ALL };

enum verdict { UNCHANGED, WITHIN_SPREAD, NEW, GONE, GREW, SHRANK };

struct diff_settings {
    enum diff_unit unit;
    bool fallbacks;
    bool by_mean;
    const char *side_names[SIDES]; /* instead of the names of their files; NULL: none */
    const struct path_map *map;
};

/* The count of a row over the runs of one side, in the requested unit. */
struct diff_count {
    double value;     /* mean of the runs; for IN_ALL their sum */
    double low, high; /* of the runs, or around their mean; margins included */
};

struct diff_row {
    /* The key; tables of other streams have other names in it (diff_streams.h). Strings are numbers of the
     * pool; 0 where the table does not distinguish them. */
    uint32_t reason;
    uint32_t method; /* `Owner#method (path)` */
    uint32_t insn;
    uint32_t line;
    uint32_t line_after; /* differs from line if it moved on the second side */
    struct diff_count counts[SIDES];
    double per_run[SIDES], per_second[SIDES]; /* whatever the unit; means of the runs */
    enum verdict verdict;
};

/* What a run has of a row. Of thousands of runs, few have a given row. */
struct diff_cell {
    uint32_t row, run; /* the key */
    double count, variance;
};
enum { DIFF_CELL_KEYS = 2 };

struct diff_table {
    struct row_table rows;  /* of struct diff_row */
    struct row_table cells; /* of struct diff_cell */
    const double *unseen; /* by run: the variance of one event more; 0, or NULL: all are recorded */
    uint32_t *order;   /* rows that differ, largest difference first */
    uint32_t changed;
    uint32_t within; /* number of rows that differ within the spread of the runs */
};

struct diff_run {
    unsigned side;
    double seconds;  /* of its time span */
    double scale;    /* factor from a count to the unit */
    double estimate; /* the sampling rate K, where counts are estimates; else 0 */
};

struct diff {
    struct report *report; /* of all files; each file is a run */
    enum diff_unit unit;
    bool fallbacks, by_mean;
    const char *side_names[SIDES];
    const struct path_map *map;
    struct diff_run *runs;
    double *unseen; /* of exits, see struct diff_table */
    double *unseen_lost; /* likewise, of the time that they lost */
    uint32_t run_count;
    uint32_t side_runs[SIDES];
    struct diff_row total;
    struct diff_table reasons, methods, sites;
    bool timed; /* all runs have the stream `states`: then these are compared, in ns */
    struct diff_row lost_total;
    struct diff_table lost_reasons, lost_methods, lost_sites;
    struct map stable_texts; /* text -> without addresses, path mapped */
};

/* Prefixes of paths and their names on the other side. */
struct path_map {
    struct path_prefix {
        const char *from;
        size_t from_bytes;
        const char *to;
        uint32_t witnesses; /* methods that show it; 0: given by the user */
    } *list;
    uint32_t count;
    uint32_t capacity;
};

/* Adds prefixes under which the same files lie on the two sides. They live as long as the
 * report. In diff_map.c. */
void diff_find_map(struct report *report, uint32_t first_side, bool fallbacks, struct path_map *map);

/* Compares the first `first_side` files with the others. */
void diff_init(struct diff *diff, struct report *report, uint32_t first_side, const struct diff_settings *settings);
void diff_free(struct diff *diff);

/* `Owner#method (path)` of a label, as both sides have it: without the line, and with the paths of the map. */
uint32_t diff_method(struct diff *diff, uint32_t label);

/* A table of its own: what each run counts for a key, then the comparison. */
void diff_table_init(struct diff_table *table);
void diff_table_free(struct diff_table *table);
void diff_table_add(const struct diff *diff, struct diff_table *table, const uint32_t key[4], uint32_t run,
                    double count, double variance);
/* Fills in the rows' counts and verdicts, and the order of those that differ. */
void diff_table_compare(const struct diff *diff, struct diff_table *table);

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
