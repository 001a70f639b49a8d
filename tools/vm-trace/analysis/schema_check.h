#ifndef SCHEMA_CHECK_H
#define SCHEMA_CHECK_H
/* schema_check.h - checks that a trace of our tracer keeps the event contract (doc/internals/events.md).
 *
 * A file may hold several processes: each has its settings, its summary and its sites, and is checked by itself. One is ours when
 * it has a trace/settings or trace/summary event; nothing is asked of others. What the contract does not
 * speak of (more arguments, more kinds of trace events) is let pass.
 */
#include "fxt/reader.h"

struct contract;

struct contract *contract_new(struct reader *reader);
void contract_free(struct contract *contract);
/* A new chunk begins: what comes may be older than what was. */
void contract_chunk(struct contract *contract);
/* Each event of the file, in the file's order. Reports faults through the reader. */
void contract_event(struct contract *contract, const struct fxt_event *event);
/* What can only be said at the end: counts, order. */
void contract_finish(struct contract *contract);
/* True when there are processes of ours and all of them ended in good order: nothing may be left open then. */
bool contract_ended(const struct contract *contract);
/* True when events may be missing in the middle: some were lost, or gave way in a file that keeps its newest. */
bool contract_gaps(const struct contract *contract);

#endif
