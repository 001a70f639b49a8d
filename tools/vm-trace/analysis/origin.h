#ifndef ORIGIN_H
#define ORIGIN_H
/* origin.h - where a trace comes from: its events `host` (doc/internals/events.md). */
#include <stdbool.h>

#include "base/pool.h"
#include "fxt/reader.h"

enum { UNIX_TIME_BYTES = sizeof "2026-11-26T12:38:45Z" };

/* Of one process. Texts are numbers of the pool, STRING_NONE where it does not say. */
struct origin {
    uint32_t host, service, version;
    int64_t unix_offset_ns; /* Unix time less the trace's, in ns */
};

bool origin_event_p(const struct fxt_event *event);
struct origin origin_read(struct pool *pool, const struct fxt_event *event);

/* Writes a Unix time in UTC, to the second: "2026-11-26T12:38:45Z". One before 1970 or after 9999 becomes "". Returns `text`. */
const char *unix_time_text(char text[UNIX_TIME_BYTES], int64_t unix_ns);

/* What a report shows of an origin among the settings of a process. */
struct shown_origin {
    int64_t settings_ns; /* time of the settings: the trace begins there */
    bool shown;
};

/* Takes an event `settings`. */
void shown_origin_settings(struct shown_origin *shown, const struct fxt_event *settings);
/* Takes an event `host`. If it is the first one after the settings, calls `add` with host, service, service version,
 * and when the trace began; not with what is unknown. */
typedef void add_origin_setting(void *context, uint32_t name, uint32_t value);
void shown_origin_host(struct shown_origin *shown, struct pool *pool, const struct fxt_event *host,
                       add_origin_setting *add, void *context);

#endif
