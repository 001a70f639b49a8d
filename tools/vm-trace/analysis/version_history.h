#ifndef VERSION_HISTORY_H
#define VERSION_HISTORY_H
/* version_history.h - what became of the compiled versions of each ISEQ: compilations, invalidations, and profiling in between.
 *
 *      zeroed struct version_history -> version_history_event for every event -> version_history_file_end after each file -> version_history_sort -> steps in order
 *
 * A step is kept for each of these; they are few beside exits.
 */
#include "analysis/label.h"
#include "base/map.h"
#include "fxt/reader.h"

enum { VERSION_STEPS_MAX = 1024 * 1024 };

enum step_kind { STEP_COMPILED, STEP_FAILED, STEP_INVALIDATED, STEP_PROFILED };

struct version_step {
    uint32_t process; /* the caller's number */
    uint32_t iseq;    /* its label, a string of the pool, like all below */
    enum step_kind kind;
    uint32_t version; /* that was made, or invalidated; 0 of a failed compilation */
    int64_t ts_ns;
    int64_t end_ns; /* of a compilation, and of profiling (INT64_MIN where it has not ended) */
    uint32_t order; /* in the file */
    uint32_t reason; /* why it was invalidated, or the error of a compilation */
    uint32_t location; /* the innermost frame; STRING_NONE: unknown */
    uint32_t inlined;
    uint64_t code_bytes, exit_bytes, exits;
};

/* What an ISEQ has in common with the labels of its exits: method and path. */
struct known_iseq {
    uint32_t process, iseq;
    uint32_t method; /* the label without its line */
    int64_t line;
    uint32_t order;  /* in which it was seen */
};

struct version_history {
    struct version_step *steps;
    uint32_t count, capacity;
    struct known_iseq *iseqs;
    uint32_t iseq_count, iseq_capacity;
    struct map iseq_of_label;   /* process and label -> index of iseqs */
    struct map iseqs_of_method; /* once settled: process and method -> the first of them, by line */
    struct map open_compiles;   /* thread -> index into compiling */
    struct {
        int64_t begin_ns; /* of the outermost one that is open */
        uint32_t depth;   /* 0: none is */
    } *compiling;
    uint32_t compiling_count, compiling_capacity;
    uint32_t violated_at;       /* where the last invalidation happened that may take several versions */
    struct map open_profiles;   /* number of the span -> step */
    uint64_t uncounted;            /* steps that there was no room for */
};

void version_history_free(struct version_history *history);
void version_history_event(struct version_history *history, struct pool *pool, uint32_t process, const struct fxt_event *event);
/* What is open belongs to that file. */
void version_history_file_end(struct version_history *history);
/* Sorts the steps: by process and ISEQ, then by time; and the ISEQs. None can be added after it. */
void version_history_sort(struct version_history *history);
/* The label of the ISEQ that the code of an exit belongs to: that which the event says (`iseq`), or else the one of the known
 * ISEQs of that method and path whose first line is the last one before that of the exit. STRING_NONE: none is known.
 * They must be settled. */
uint32_t version_history_owner(const struct version_history *history, struct pool *pool, uint32_t process, uint32_t iseq, uint32_t location);

/* The label without its line, as a number of the pool. */
uint32_t label_without_line(struct pool *pool, uint32_t label);

#endif
