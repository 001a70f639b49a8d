#ifndef VERSION_HISTORY_H
#define VERSION_HISTORY_H
/* version_history.h - the history of the compiled versions of each ISEQ: compilations,
 * invalidations, and profiling in between.
 *
 *      zeroed struct version_history -> version_history_event for every event
 *      -> version_history_file_end after each file -> version_history_sort -> steps in order
 *
 * It keeps a step for each of these; they are few compared with exits.
 */
#include "analysis/label.h"
#include "base/map.h"
#include "fxt/reader.h"

enum { VERSION_STEPS_MAX = 1024 * 1024 };

enum step_kind { STEP_COMPILED, STEP_FAILED, STEP_INVALIDATED, STEP_PROFILED };

struct version_step {
    uint32_t process; /* a number of the caller's */
    uint32_t iseq;    /* its label; a string of the pool, like all below */
    enum step_kind kind;
    uint32_t version; /* compiled or invalidated; 0 for a failed compilation */
    int64_t ts_ns;
    int64_t end_ns; /* of a compilation, or of profiling (INT64_MIN: it has not ended) */
    uint32_t order; /* in the file */
    uint32_t reason; /* of an invalidation; or the error of a compilation */
    uint32_t location; /* the innermost frame; STRING_NONE: unknown */
    uint32_t inlined;
    uint64_t code_bytes, exit_bytes, exits;
};

/* What an ISEQ shares with the labels of its exits: method and path. */
struct known_iseq {
    uint32_t process, iseq;
    uint32_t method; /* the label without its line */
    int64_t line;
    uint32_t order;  /* the order in which ISEQs were seen */
};

struct version_history {
    struct version_step *steps;
    uint32_t count, capacity;
    struct known_iseq *iseqs;
    uint32_t iseq_count, iseq_capacity;
    struct map iseq_of_label;   /* process and label -> index of iseqs */
    struct map iseqs_of_method; /* once sorted: process and method -> the first of its ISEQs, by line */
    struct map open_compiles;   /* thread -> index into compiling */
    struct {
        int64_t begin_ns; /* of the outermost open one */
        uint32_t depth;   /* 0: none is open */
    } *compiling;
    uint32_t compiling_count, compiling_capacity;
    uint32_t violated_at;       /* location of the last invalidation, which may include several versions */
    struct map open_profiles;   /* key of the async event -> step */
    uint64_t uncounted;            /* steps beyond VERSION_STEPS_MAX */
};

void version_history_free(struct version_history *history);
void version_history_event(struct version_history *history, struct pool *pool, uint32_t process,
                           const struct fxt_event *event);
/* Drops what is still open: it belongs to the file that ended. */
void version_history_file_end(struct version_history *history);
/* Sorts the steps by process and ISEQ, then by time; and the ISEQs. No steps can be added
 * afterwards. */
void version_history_sort(struct version_history *history);
/* Returns the label of the ISEQ that an exit's code belongs to: the one that the event names
 * (`iseq`), or else, of the known ISEQs of that method and path, the one with the last first
 * line at or before the exit. STRING_NONE if none is known. The history must be sorted. */
uint32_t version_history_owner(const struct version_history *history, struct pool *pool, uint32_t process,
                               uint32_t iseq, uint32_t location);

#endif
