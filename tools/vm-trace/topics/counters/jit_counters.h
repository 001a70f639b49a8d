#ifndef JIT_COUNTERS_H
#define JIT_COUNTERS_H
/* jit_counters.h - the stream `counters`: what compiled code incremented the counters of ZJIT's statistics by, at
 * each line.
 */
#include "base/row_table.h"
#include "fxt/reader.h"

enum { COUNTER_ROWS_MAX = 1024 * 1024, COUNTER_ROW_KEYS = 3, METHOD_COUNTER_KEYS = 2 };

/* What a counter counted at a line, over all compiled versions. */
struct counter_row {
    uint32_t counter; /* the key: its name */
    uint32_t location; /* label of the frame, with the line */
    uint32_t run;      /* a number of the caller's, such as that of the file */
    uint64_t hits;
};

/* The same of a method, over all its lines; or of a counter, over all methods. */
struct method_counter {
    uint32_t counter; /* the key */
    uint32_t method;  /* label without a line; of a counter, of the method that has most of it */
    uint64_t hits;
    uint32_t lines;    /* with hits */
    uint32_t location; /* the line that has most of it; */
    uint64_t most;     /* so much */
};

struct jit_counters {
    struct row_table rows; /* of struct counter_row */
    uint64_t uncounted;    /* hits without a row, because there are too many */
};

void jit_counters_init(struct jit_counters *counters);
void jit_counters_free(struct jit_counters *counters);
/* Takes an event `trace` `counter`. */
void jit_counters_add(struct jit_counters *counters, struct pool *pool, const struct fxt_event *event, uint32_t run);
/* Sums by counter and method, the largest first. The caller frees them with row_table_free. */
struct row_table jit_counters_by_method(const struct jit_counters *counters, struct pool *pool);
/* Likewise, of such rows, by counter. */
struct row_table jit_counters_by_name(const struct row_table *methods, const struct pool *pool);
/* Whether the counter counts what compiled code could not do itself, or not any more: sends, accesses of variables, and
 * calls that it leaves to the VM; exits. Only these compare with each other: some count instructions, some bytes. */
bool jit_counter_slow_p(struct fxt_string name);

#endif
