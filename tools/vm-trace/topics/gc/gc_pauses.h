#ifndef GC_PAUSES_H
#define GC_PAUSES_H
/* gc_pauses.h - garbage collections by kind and reason, their pauses, and what they did in them.
 *
 *      gc_pauses_init -> gc_pauses_add for every pair of edges of category `gc` -> the rows
 *      -> gc_pauses_free
 *
 * A collection may have several pauses. Its first one names the reason, and all have its number, which
 * ractors with a heap of their own count each. If the first one is not in the trace, the others have the
 * reason GC_NO_REASON, and there is no collection to count.
 */
#include "analysis/duration_pairs.h"
#include "analysis/durations.h"
#include "base/pool.h"
#include "base/row_table.h"

#define GC_NO_REASON "(not recorded)"

enum { GC_ROWS_MAX = 4096, GC_PROCESSES_MAX = 64 * 1024, GC_RECENT = 16 };

struct gc_reason {
    uint32_t kind; /* the key: STRING_GC_MINOR, STRING_GC_MAJOR */
    uint32_t reason;
    uint32_t major_by;
    uint64_t collections;
    struct durations pauses;
};
enum { GC_REASON_KEYS = 3 };

/* The same by process, to compare runs. */
struct gc_process_reason {
    uint32_t piece; /* the key */
    uint32_t kind, reason, major_by;
    uint64_t collections;
    uint64_t total_ns; /* of the pauses */
};
enum { GC_PROCESS_REASON_KEYS = 4, GC_PROCESS_REASONS_MAX = 256 * 1024 };

struct gc_phase {
    uint32_t name; /* the key */
    struct durations durations;
    uint64_t freed_slots;
};

/* The last collections of a process. */
struct gc_process {
    uint32_t process; /* the key */
    uint32_t next;
    struct gc_recent {
        bool known;
        uint32_t kind;
        uint32_t thread; /* the caller's number, as in edges */
        uint32_t row;    /* of struct gc_reason, or NO_GC_ROW: there are too many */
        uint64_t number;
    } recent[GC_RECENT];
};
enum { NO_GC_ROW = UINT32_MAX };

struct gc_pauses {
    struct row_table reasons;   /* of struct gc_reason */
    struct row_table process_reasons; /* of struct gc_process_reason */
    struct row_table phases;    /* of struct gc_phase */
    struct row_table processes; /* of struct gc_process */
    uint32_t last_row;          /* of the pause that was added last, or NO_GC_ROW; */
    bool last_first;            /* whether it is the first one of its collection */
    uint64_t uncounted;         /* pauses and phases without a row, because there are too many names */
    uint32_t no_reason;          /* GC_NO_REASON in the pool */
};

void gc_pauses_init(struct gc_pauses *gc, struct pool *pool);
void gc_pauses_free(struct gc_pauses *gc);
/* Takes a pair of edges of category `gc`, both not NULL. `piece`: the process as process_reasons tells it apart, in
 * one file; a collection may have pauses in several. If not `wanted`, it does not count; nor does what began before a
 * cut. */
void gc_pauses_add(struct gc_pauses *gc, uint32_t process, uint32_t piece, const struct duration_edge *begin,
                   const struct duration_edge *end, bool wanted);

#endif
