#ifndef RUBY_VM_TRACE_SESSION_SPOOL_H
#define RUBY_VM_TRACE_SESSION_SPOOL_H 1
/*
 * The spool: a folder that gets the flight recorder's recording in pieces, for as long as the program
 * runs. A piece has what came since the one before it: every so often, at a save without a path, at a
 * signal, at the end. Processes and hosts share the folder: HOST-PID-TIME-NUMBER-REASON.fxt. Whoever
 * adds a piece deletes the oldest ones beyond the folder's limits.
 */

#include "vm_trace/session/session_state.h"

/* Pieces are named by that, in the folder (options.h). */
#define VM_TRACE_PIECE_NAME "%h-%p-%t-%n-%r.fxt"

/*
 * Parse the options: a folder, which is made if it is not there; a time with its unit, "5min", from a
 * second to a day; MiB and, after a comma, a number of files. False, and a line on stderr that names
 * the option and what it takes, when the value is anything else.
 */
bool rb_vm_trace_parse_spool(const char *option, const char *value);
bool rb_vm_trace_parse_spool_every(const char *option, const char *value);
bool rb_vm_trace_parse_spool_limit(const char *option, const char *value);

/*
 * If options name a folder: make it part of the recorder's configuration, with as much memory and
 * as many moments as nobody has chosen.
 */
void rb_vm_trace_spool_configure(struct rb_vm_trace_memory_config *memory);

/* The path of a piece as a template (options.h). malloc'ed; NULL: no memory. */
char *rb_vm_trace_spool_pattern(const struct rb_vm_trace_spool *spool);

/* Whether a reason may be part of a name: 1 to 32 of a to z, 0 to 9, '_' and '-'. */
bool rb_vm_trace_spool_reason_p(const char *reason, size_t bytes);

/*
 * Delete the oldest pieces of this user until the folder is within its limits, compressed ones (.gz,
 * .zst) too, and what killed processes were saving. Any thread; several processes may do it at once.
 * Allocates.
 */
void rb_vm_trace_spool_trim(const struct rb_vm_trace_spool *spool);

/*
 * When the next piece is due, in ns of CLOCK_MONOTONIC, after `now_ns`. Processes that start together
 * are due at different times.
 */
uint64_t rb_vm_trace_spool_next_ns(const struct rb_vm_trace_spool *spool, uint32_t pid, uint64_t begin_ns,
                                   uint64_t now_ns);

#endif /* RUBY_VM_TRACE_SESSION_SPOOL_H */
