#ifndef REASON_H
#define REASON_H
/* reason.h - the three names of a reason: in traces (GuardLess), in --zjit-stats (guard_less_failure), and of the counter that
 * --zjit-trace-exits=COUNTER takes (exit_guard_less_failure). Those of fallbacks are counted as send_fallback_NAME. */
#include <stdbool.h>
#include <stddef.h>

#include "base/nearest.h"
#include "base/pool.h"

/* Whether a glob is that of a reason in a trace, by any of its names, or by what stands before its parentheses. */
bool reason_matches(const char *glob, struct fxt_string reason);

/*
 * The counter of an exit that is called so, in `counter`; false for a name that is none of ZJIT's,
 * or one of several counters.
 */
enum { REASON_COUNTER = 80 };
bool reason_counter(const char *name, char counter[REASON_COUNTER]);

/* Looks among all names that are known. */
void reason_nearest(struct nearest *nearest);

struct reason_names {
    const char *trace; /* a glob, where the text has more in parentheses */
    const char *stats;
    char counter[REASON_COUNTER];
    bool fallback;
};
/* The reasons one after the other; false past the last one. */
bool reason_at(size_t index, struct reason_names *names_out);

#endif
