#ifndef MINUTE_PROFILES_H
#define MINUTE_PROFILES_H
/* minute_profiles.h - the stacks of many traces, merged by service, version and minute of the wall clock, as tools
 * that collect profiles want them.
 *
 *      minute_profiles_new -> minute_profiles_read for each trace -> the rows -> minute_profiles_free
 *
 * A trace is read three times: for its first and last minute; for what threads blocked in, which is known only with
 * their states; and for all else. Memory has the stacks of all its minutes at a time.
 */
#include "topics/choice.h"
#include "analysis/profile.h"
#include "base/row_table.h"
#include "base/status.h"

enum minute_value { MINUTE_EXITS, MINUTE_LOST, MINUTE_ALLOCATED, MINUTE_BLOCKED, MINUTE_OWN_TIME };
enum { MINUTE_VALUES = MINUTE_OWN_TIME + 1, MINUTE_KEYS = 3, MINUTES_OF_A_TRACE_MAX = 24 * 60 };

struct minute_profile {
    uint32_t service, version; /* the key, with the next one: strings of the pool */
    uint32_t minute;           /* since 1970 */
    struct profile *values;    /* MINUTE_VALUES of them */
};

struct minute_profiles {
    struct reader *reader;  /* only its pool and its budget are used */
    struct row_table rows;  /* of struct minute_profile */
    struct fxt_parts parts; /* of all traces */
    const struct trace_choice *choice;
    size_t memory_bytes;
    uint64_t max_faults;
};

/* `choice`: of each trace, from its own first event on; it must live as long. */
struct minute_profiles *minute_profiles_new(const struct trace_choice *choice, size_t memory_bytes,
                                            uint64_t max_faults);
void minute_profiles_free(struct minute_profiles *profiles);
/* Reads a trace, prints its faults, and adds what happened in each of its minutes. Without an event
 * trace/host, service and version are `unknown`, and the trace ends at the time of its file. */
enum status minute_profiles_read(struct minute_profiles *profiles, char *file);
/* Whether all of it had room within the limit. */
bool minute_profiles_complete(const struct minute_profiles *profiles);

#endif
