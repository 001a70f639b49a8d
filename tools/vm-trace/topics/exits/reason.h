#ifndef REASON_H
#define REASON_H
/* reason.h - the names of a reason: in traces (GuardLess), in --zjit-stats (guard_less_failure),
 * and as the counter for --zjit-trace-exits=COUNTER (exit_guard_less_failure). Counters of
 * fallbacks are called send_fallback_NAME. */
#include <stdbool.h>
#include <stddef.h>

#include "base/nearest.h"
#include "base/pool.h"

/* Whether a glob matches a reason in a trace: any of its names, or the text before its
 * parentheses. */
bool reason_matches(const char *glob, struct fxt_string reason);

/* Finds the counter of a reason by any of its names. Returns false if ZJIT has no such reason,
 * or if the name stands for several counters. */
enum { REASON_COUNTER = 80 };
bool reason_counter(const char *name, char counter[REASON_COUNTER]);

/* Compares all known names. */
void reason_nearest(struct nearest *nearest);

struct reason_names {
    const char *trace; /* a glob if the text has details in parentheses */
    const char *stats;
    char counter[REASON_COUNTER];
    bool fallback;
};
/* Returns the reasons by number; false past the last one. */
bool reason_at(size_t index, struct reason_names *names_out);
/* Finds the names of a reason in a trace. Returns false if ZJIT has no such reason. */
bool reason_find(const char *reason, struct reason_names *names_out);

#endif
