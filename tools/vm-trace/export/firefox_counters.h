#ifndef FIREFOX_COUNTERS_H
#define FIREFOX_COUNTERS_H
/* firefox_counters.h - the counters of a profile for the Firefox Profiler: for each value of a counter
 * event its samples, sorted by time.
 *
 *      firefox_counters_init -> firefox_counters_add for each event -> firefox_counters_finish
 *      -> the rows -> firefox_counters_free
 */
#include "base/pool.h"
#include "base/row_table.h"
#include "fxt/reader.h"

enum { FIREFOX_COUNTERS_MAX = 4096 };

struct firefox_count {
    int64_t ts_ns;
    uint64_t offset;
    double value;
};

struct firefox_counter {
    uint32_t process; /* the key: a number of the caller's, */
    uint32_t name;    /* and Perfetto's name of the value, a text of the pool */
    bool bytes;       /* its unit; otherwise it is a number */
    struct firefox_count *counts;
    uint32_t count, capacity;
};

struct firefox_counters {
    struct pool *pool;
    struct budget *budget;
    struct row_table counters; /* of struct firefox_counter */
};

void firefox_counters_init(struct firefox_counters *counters, struct reader *reader);
void firefox_counters_free(struct firefox_counters *counters);
/* Returns false if a value was left out: there are too many counters, or it is no number that JSON can
 * hold. */
bool firefox_counters_add(struct firefox_counters *counters, uint32_t process, const struct fxt_event *event);
/* After the last event: sorts. */
void firefox_counters_finish(struct firefox_counters *counters);

#endif
