#ifndef SCHEMA_CHECK_H
#define SCHEMA_CHECK_H
/* schema_check.h - checks a trace of CRuby's tracer against the schema of its events
 * (doc/internals/events.md).
 *
 * A file may hold several processes. Each has its own settings, summary and sites, and is checked
 * separately. Only processes with a trace/settings or trace/summary event are checked. Unless it is
 * strict, the check accepts what the schema does not mention: further arguments, further events.
 */
#include "fxt/reader.h"

struct schema_check;

/* What is checked beyond the schema. */
struct check_rules {
    bool strict;      /* all processes have their settings and summary, and nothing that the schema lacks */
    bool unended;     /* with strict: the summary may be missing */
    uint64_t ractors; /* at most so many of a process exited; 0: unknown */
};

struct schema_check *schema_check_new(struct reader *reader, const struct check_rules *rules);
void schema_check_free(struct schema_check *check);
/* A new chunk begins: its events may be older than those before. */
void schema_check_chunk(struct schema_check *check);
/* Takes each event, in the order of the file. Reports faults through the reader. */
void schema_check_event(struct schema_check *check, const struct fxt_event *event);
/* Likewise, Perfetto's packets. */
void schema_check_blob(struct schema_check *check, const struct fxt_blob *blob);
/* Checks what is known only at the end: counts and order. */
void schema_check_finish(struct schema_check *check);
/* True if there are processes to check and all of them ended in good order: then nothing may be
 * open. */
bool schema_check_ended(const struct schema_check *check);
/* True if events may be missing in the middle: lost, or overwritten in a file that keeps its
 * newest events. */
bool schema_check_gaps(const struct schema_check *check);
/* True if the process has said what it is: its events are checked. */
bool schema_check_covers(const struct schema_check *check, uint32_t process);
/* True if the file has only a later part of the process's events. */
bool schema_check_begins_late(const struct schema_check *check, uint32_t process);

#endif
