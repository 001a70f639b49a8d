#ifndef COMPILATIONS_H
#define COMPILATIONS_H
/* compilations.h - how a JIT's compiler spent its time: compilations of ISEQs, their phases, and
 * other work.
 *
 *      compilations_init -> compilations_pair for every pair of edges of category `compile`
 *      -> compilations_file_end after each file -> the rows -> compilations_free
 *
 * A compilation of an ISEQ is an outermost duration whose end names the ISEQ. Any other outermost
 * duration is other work, such as making code executable or compiling a stub, and includes the
 * durations within it. ZJIT writes several of these per ISEQ, so they must not count as
 * compilations.
 *
 * Memory grows with the number of distinct ISEQs and names, and with the phases of open
 * compilations, up to a limit.
 */
#include "analysis/duration_pairs.h"
#include "analysis/durations.h"
#include "base/row_table.h"

enum {
    COMPILATIONS_ISEQS_MAX = 256 * 1024,
    COMPILATIONS_PENDING_MAX = 64 * 1024,
};

struct compiled_iseq {
    uint32_t iseq; /* the key: the number of its label */
    uint32_t without_code; /* compilations that made no code */
    uint64_t count;
    uint64_t total_ns, longest_ns;
    uint64_t code_bytes; /* including trace points */
};

/* A phase whose outermost duration is still open. */
struct pending_phase {
    uint32_t name;
    uint32_t next; /* of the same thread, or of the free list: index + 1; 0: the last */
    uint64_t ns;
};

struct compilations {
    struct durations whole; /* of ISEQs */
    uint64_t code_bytes;
    uint64_t without_code; /* compilations that made no code */
    struct row_table iseqs; /* of struct compiled_iseq */
    struct row_table phases; /* of struct named_durations: within compilations of ISEQs */
    struct row_table other; /* of struct named_durations: outermost durations without an ISEQ */
    uint64_t uncounted; /* durations without a row, because there are too many ISEQs or names */

    struct pending_phase *pending;
    uint32_t pending_count, pending_capacity, pending_used, free_pending;
    uint32_t *pending_of; /* by thread: index + 1 of the first */
    uint32_t pending_of_count;
};

void compilations_init(struct compilations *compilations);
void compilations_free(struct compilations *compilations);
/* Takes a pair of edges as the visitor of duration_pairs.h gets it; end may be NULL. If not
 * `wanted`, neither the duration nor what it contains counts. */
void compilations_pair(struct compilations *compilations, const struct duration_edge *begin,
                       const struct duration_edge *end, bool wanted);
/* Takes an outermost duration that is a single record. */
void compilations_single(struct compilations *compilations, const struct duration_edge *edge, uint64_t ns);
/* Drops what is still open: it belongs to the file that ended. */
void compilations_file_end(struct compilations *compilations);

#endif
