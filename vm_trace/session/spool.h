#ifndef RUBY_VM_TRACE_SESSION_SPOOL_H
#define RUBY_VM_TRACE_SESSION_SPOOL_H 1
/*
 * The spool: a folder that gets the flight recorder's recording in pieces, for as long as the program
 * runs. A piece has what came since the one before it: every so often, at a save without a path, at a
 * signal, at the end. Processes and hosts share the folder: HOST-PID-TIME-NUMBER-REASON.fxt. Whoever
 * adds a piece deletes the oldest ones beyond the folder's limits.
 */

#include "vm_trace/session/session_state.h"

#include <limits.h>

/* Pieces are named by that, in the folder (options.h). */
#define VM_TRACE_PIECE_NAME "%h-%p-%t-%n-%r.fxt"

/* A piece each 5 minutes, a GiB, 1000 files. No folder. */
extern const struct rb_vm_trace_spool rb_vm_trace_spool_defaults;

/* What these take, for a message behind the option's name. */
#define VM_TRACE_SPOOL_EVERY_TAKES "takes a time from 1s to 24h, such as 5min"
#define VM_TRACE_SPOOL_LIMIT_TAKES \
    "takes the MiB that the folder may have, from 1 to 1048576, then ',FILES', up to 1000000"

/*
 * A time with its unit, "5min", from a second to a day; MiB and, after a comma, a number of files.
 * False when the value is anything else: nothing is set.
 */
bool rb_vm_trace_spool_take_every(struct rb_vm_trace_spool *spool, const char *value);
bool rb_vm_trace_spool_take_limit(struct rb_vm_trace_spool *spool, const char *value);

/*
 * "zstd", "gzip" or "none", and its library is loaded. NULL, or why not, static: to follow the option's
 * name.
 */
const char *rb_vm_trace_spool_take_compression(struct rb_vm_trace_spool *spool, const char *value);

/*
 * Make the folder if it is not there. NULL, and its absolute path in path_out; or why it can't be
 * written to: static, or strerror's.
 */
const char *rb_vm_trace_spool_make_folder(const char *folder, char path_out[PATH_MAX]);

/* The flags' values. False, and a line on stderr that names the option and what it takes. */
bool rb_vm_trace_parse_spool(const char *option, const char *value);
bool rb_vm_trace_parse_spool_every(const char *option, const char *value);
bool rb_vm_trace_parse_spool_limit(const char *option, const char *value);
bool rb_vm_trace_parse_spool_compress(const char *option, const char *value);

/*
 * Have the recorder write pieces: at the moments at which a spool does, from now on. The memory is
 * the caller's to choose.
 */
void rb_vm_trace_spool_use(struct rb_vm_trace_memory_config *memory, const struct rb_vm_trace_spool *spool);

/* The same with what flags say, if they name a folder. */
void rb_vm_trace_spool_configure(struct rb_vm_trace_memory_config *memory);

/*
 * A copy of a folder's path that stays: threads that write pieces read it without a lock. One for each
 * folder that the process ever names. World stopped. NULL: no memory.
 */
const char *rb_vm_trace_spool_keep_folder(const char *folder);

/* The path of a piece as a template (options.h). malloc'ed; NULL: no memory. */
char *rb_vm_trace_spool_pattern(const struct rb_vm_trace_spool *spool);

/* Whether a reason may be part of a name: 1 to 32 of a to z, 0 to 9, '_' and '-'. */
bool rb_vm_trace_spool_reason_p(const char *reason, size_t bytes);

/*
 * Compress the finished piece at `from`, as the spool says, to `path` with the suffix, and remove it.
 * Returns that path, malloc'ed; or NULL and why not (static, or strerror's): then the piece is still at
 * `from`. On a native thread of the tracer's own, because it takes long.
 */
char *rb_vm_trace_spool_compress(const struct rb_vm_trace_spool *spool, const char *from, const char *path,
                                 const char **why_out);

/*
 * Delete the oldest pieces of this user until the folder is within its limits, compressed ones (.gz,
 * .zst) too, and what killed processes were saving. Only what is named as a piece counts: other traces
 * in the folder stay. Any thread; several processes may do it at once.
 * Allocates.
 */
void rb_vm_trace_spool_trim(const struct rb_vm_trace_spool *spool);

/* The clock that pieces go by: CLOCK_MONOTONIC, in ns. */
uint64_t rb_vm_trace_spool_now_ns(void);

/*
 * When the next piece is due, in ns of CLOCK_MONOTONIC, after `now_ns`. Processes that start together
 * are due at different times.
 */
uint64_t rb_vm_trace_spool_next_ns(const struct rb_vm_trace_spool *spool, uint32_t pid, uint64_t now_ns);

#endif /* RUBY_VM_TRACE_SESSION_SPOOL_H */
