#ifndef SCHEMA_CHECK_H
#define SCHEMA_CHECK_H
/* schema_check.h - checks that a trace of our tracer keeps the event contract (doc/internals/events.md).
 *
 * A file may hold several processes: each has its settings, its summary and its sites, and is checked by itself. One is ours when
 * it has a trace/settings or trace/summary event; nothing is asked of others. What the contract does not
 * speak of (more arguments, more kinds of trace events) is let pass.
 */
#include "fxt/reader.h"

struct schema_check;

struct schema_check *schema_check_new(struct reader *reader);
void schema_check_free(struct schema_check *check);
/* A new chunk begins: what comes may be older than what was. */
void schema_check_chunk(struct schema_check *check);
/* Each event of the file, in the file's order. Reports faults through the reader. */
void schema_check_event(struct schema_check *check, const struct fxt_event *event);
/* What can only be said at the end: counts, order. */
void schema_check_finish(struct schema_check *check);
/* True when there are processes of ours and all of them ended in good order: nothing may be left open then. */
bool schema_check_ended(const struct schema_check *check);
/* True when events may be missing in the middle: some were lost, or gave way in a file that keeps its newest. */
bool schema_check_gaps(const struct schema_check *check);

#endif
