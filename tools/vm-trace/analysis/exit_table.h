#ifndef EXIT_TABLE_H
#define EXIT_TABLE_H
/* exit_table.h - exits and fallbacks, summed by the place where they happen: how many, when, and what came of them.
 *
 * Nothing is kept of a single event: memory grows with distinct exits.
 */
#include <stdbool.h>

#include "base/row_table.h"
#include "fxt/known_strings.h"

enum {
    EXIT_ROWS_MAX = 256 * 1024,
    EXIT_ROW_KEYS = 8,
    EXIT_ROW_BINS = 64,
    /*
     * Outcomes of recompile exits: that of word STRING_PROFILING + i - 1 at i, anything else at 0; at
     * the last those that no event tells.
     */
    EXIT_OUTCOMES = STRING_VERSION_LIMIT - STRING_PROFILING + 3,
    OUTCOME_UNRECORDED = EXIT_OUTCOMES - 1,
};

struct exit_row {
    /* The key. Strings are numbers of the pool. */
    uint32_t process; /* the caller's number */
    uint32_t category;
    uint32_t reason;
    uint32_t location; /* the innermost frame */
    uint32_t insn;
    uint32_t version;
    uint32_t iseq;    /* whose code it is, where that is another method than the frame's: it is inlined there. Else STRING_NONE */
    uint32_t callee;  /* of a fallback: the name that it calls; else STRING_NONE */

    uint64_t records;  /* events */
    uint64_t weighted; /* what these stand for */
    uint64_t hits;     /* what the place's sites counted */
    uint64_t count;    /* the one of them that holds: set by the caller */
    int64_t first_ns, last_ns; /* of the events */
    uint64_t outcomes[EXIT_OUTCOMES]; /* weighted; once settled they sum up to the count */
    float bins[EXIT_ROW_BINS]; /* weighted, over time: see exit_row_rate */
};

struct exit_table {
    struct row_table rows; /* of struct exit_row */
    unsigned shift;     /* a bin is 2**shift ns */
    int64_t first_bin;  /* bin 0 begins at first_bin << shift */
    bool has_bins;
    uint64_t uncounted;    /* weighted events of more places than are told apart */
    uint64_t uncounted_hits; /* likewise: hits of sites */
};

void exit_table_init(struct exit_table *exits);
void exit_table_free(struct exit_table *exits);
/* The place of a key, made if need be; NULL when there are too many. Good until the next call. */
struct exit_row *exit_table_row(struct exit_table *exits, const uint32_t key[EXIT_ROW_KEYS]);
/* Counts an event at a place. */
void exit_table_add(struct exit_table *exits, struct exit_row *row, int64_t ts_ns, uint64_t weight);
/* Adds what one row has to another, the key left out. Their bins are of the same exits. */
void exit_row_merge(struct exit_row *into, const struct exit_row *from);
/* Leaves nothing but the key. */
void exit_row_clear(struct exit_row *row);
/* What happened in each of `count` equal parts of a span of time. A bin is spread evenly over the parts it lies in. */
void exit_row_rate(const struct exit_table *exits, const struct exit_row *row, int64_t first_ns, int64_t last_ns, unsigned count,
                 float *rate_out);

#endif
