#ifndef PLACES_H
#define PLACES_H
/* places.h - exits and fallbacks, summed by the place where they happen: how many, when, and what came of them.
 *
 * Nothing is kept of a single event: memory grows with distinct places.
 */
#include <stdbool.h>

#include "group.h"
#include "words.h"

enum {
    PLACES_MAX = 256 * 1024,
    PLACE_KEYS = 8,
    PLACE_BINS = 64,
    /*
     * Outcomes of recompile exits: that of word WORD_PROFILING + i - 1 at i, anything else at 0; at
     * the last those that no event tells.
     */
    PLACE_OUTCOMES = WORD_VERSION_LIMIT - WORD_PROFILING + 3,
    PLACE_UNRECORDED = PLACE_OUTCOMES - 1,
};

struct place {
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
    uint64_t outcomes[PLACE_OUTCOMES]; /* weighted; once settled they sum up to the count */
    float bins[PLACE_BINS]; /* weighted, over time: see places_rate */
};

struct places {
    struct group group; /* of struct place */
    unsigned shift;     /* a bin is 2**shift ns */
    int64_t first_bin;  /* bin 0 begins at first_bin << shift */
    bool has_bins;
    uint64_t untold;    /* weighted events of more places than are told apart */
    uint64_t untold_hits; /* likewise: hits of sites */
};

void places_init(struct places *places);
void places_free(struct places *places);
/* The place of a key, made if need be; NULL when there are too many. Good until the next call. */
struct place *places_get(struct places *places, const uint32_t key[PLACE_KEYS]);
/* Counts an event at a place. */
void places_add(struct places *places, struct place *place, int64_t ts_ns, uint64_t weight);
/* Adds what one row has to another, the key left out. Their bins are of the same places. */
void place_merge(struct place *into, const struct place *from);
/* Leaves nothing but the key. */
void place_clear(struct place *place);
/* What happened in each of `count` equal parts of a span of time. A bin is spread evenly over the parts it lies in. */
void places_rate(const struct places *places, const struct place *place, int64_t first_ns, int64_t last_ns, unsigned count,
                 float *rate_out);

#endif
