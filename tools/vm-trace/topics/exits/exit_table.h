#ifndef EXIT_TABLE_H
#define EXIT_TABLE_H
/* exit_table.h - exits and fallbacks, summed up by where and why they happen: how many, when, and
 * with what outcome.
 *
 * It keeps no single event: memory grows with the number of distinct exits.
 */
#include <stdbool.h>

#include "analysis/durations.h"
#include "base/row_table.h"
#include "fxt/known_strings.h"

enum {
    EXIT_ROWS_MAX = 256 * 1024,
    EXIT_ROW_KEYS = 8,
    EXIT_ROW_BINS = 64,
    /* Outcomes of recompile exits. Index i is that of STRING_PROFILING + i - 1, index 0 any
     * other one; the last one is for exits whose events are not in the trace. */
    EXIT_OUTCOMES = STRING_VERSION_LIMIT - STRING_PROFILING + 3,
    OUTCOME_UNRECORDED = EXIT_OUTCOMES - 1,
};
#define REPORT_UNRECORDED "(none recorded)" /* in place of the name of a callee, or an outcome */

struct exit_row {
    /* The key. Strings are numbers of the pool. */
    uint32_t process; /* a number of the caller's */
    uint32_t category;
    uint32_t reason;
    uint32_t location; /* the innermost frame */
    uint32_t insn;
    uint32_t version;
    uint32_t iseq;    /* the ISEQ that the exit's frame is inlined into, else STRING_NONE */
    uint32_t callee;  /* of a fallback: the name that it calls; else STRING_NONE */

    uint64_t records;  /* events in the trace */
    uint64_t weighted; /* the sum of their weights */
    uint64_t hits;     /* hits of the sites */
    uint64_t count;    /* hits or weighted, whichever counts; set by the caller */
    int64_t first_ns, last_ns; /* of the events */
    uint64_t outcomes[EXIT_OUTCOMES]; /* weighted; in the end they sum up to the count */
    float bins[EXIT_ROW_BINS]; /* weighted, over time: see exit_row_rate */

    /* Time in the interpreter because of these exits. */
    uint64_t recorded_lost_ns; /* of the events, weighted */
    double lost_variance;      /* of that sum; 0 if all exits are recorded */
    uint64_t site_lost_ns;     /* exact, of the sites */
    uint64_t lost_ns;          /* one of both, whichever counts; set by the caller */
    uint64_t lost_max_ns;      /* of a single exit, by sites and events */
    struct durations lost;     /* of the events that know it; in rows of tables only */
};

struct exit_table {
    struct row_table rows; /* of struct exit_row */
    unsigned shift;     /* a bin is 2**shift ns */
    int64_t first_bin;  /* bin 0 begins at first_bin << shift */
    bool has_bins;
    uint64_t uncounted;    /* weight of the events that have no row, because the table is full */
    uint64_t uncounted_hits; /* likewise: hits of sites */
};

void exit_table_init(struct exit_table *exits);
void exit_table_free(struct exit_table *exits);
/* Returns the row of a key, and adds it if necessary; NULL if the table is full. Valid until the
 * next call. */
struct exit_row *exit_table_row(struct exit_table *exits, const uint32_t key[EXIT_ROW_KEYS]);
/* Frees a table of such rows, also one of a caller's that groups them. */
void exit_rows_free(struct row_table *rows);
/* Counts an event in a row of the table. */
void exit_table_add(struct exit_table *exits, struct exit_row *row, int64_t ts_ns, uint64_t weight);
/* Adds the time that one exit lost; 0 if that is not known. */
void exit_row_add_lost(struct exit_row *row, uint64_t lost_ns, uint64_t weight);
/* Adds everything but the key and `lost` from one row to another. Both must belong to one table. */
void exit_row_merge(struct exit_row *into, const struct exit_row *from);
/* Clears everything but the key. */
void exit_row_clear(struct exit_row *row);
/* Splits a time span into `count` equal parts, and computes what happened in each. A bin is
 * spread evenly over the parts that it overlaps. */
void exit_row_rate(const struct exit_table *exits, const struct exit_row *row, int64_t first_ns, int64_t last_ns,
                   unsigned count, float *rate_out);

#endif
