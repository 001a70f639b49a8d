#ifndef RUBY_VM_TRACE_SESSION_OPTIONS_H
#define RUBY_VM_TRACE_SESSION_OPTIONS_H 1
/*
 * Values of trace options, common to all JITs and to RubyVM::Trace. The names of flags are in
 * flags.c.
 */

#include "vm_trace/vm_trace_jit.h"
#include "vm_trace/base/numbers.h"
#include "vm_trace/capture/method_filter.h"

/*
 * Limits of a file's limit: less has no room to keep anything beside what is being written; more is
 * no disk's.
 */
#define VM_TRACE_LEAST_MIB 4
#define VM_TRACE_MOST_MIB (1 << 20)
/* Of the flight recorder's memory, and of the seconds that a saved trace covers. */
#define VM_TRACE_MOST_MEMORY_MIB (1 << 16)
/* Size of its memory if only --zjit-trace-save-at requests one. */
#define VM_TRACE_DEFAULT_MEMORY_MIB 16
#define VM_TRACE_MOST_SECONDS (1 << 20)
/* Of the frames that are kept of each stack. */
#define VM_TRACE_MOST_FRAMES (1 << 20)

/* Where the flight recorder saves by default: each trace into a file of its own. */
#define VM_TRACE_SNAPSHOT_PATH "/tmp/perfetto-%p-%n.fxt"

/*
 * The path of process `pid` from a template: %p is the pid, %h the host's name, %t the time (UTC, as
 * 20261122T174501), %n `number`, %r `why` it is saved, %% a per cent sign. NULL is
 * /tmp/perfetto-%p.fxt. With `number` 0, %t and %n stay as they are; with `why` NULL, %r does. `child`
 * is for a process forked from a traced one: where the template has no %p, ".PID" is added, for the
 * parent's file is not ours. malloc'ed; NULL: no memory.
 */
char *rb_vm_trace_expand_path(const char *pattern, uint32_t pid, int child, uint64_t number, const char *why);

/*
 * The path made absolute, for a program may change its folder before it forks. Copies NULL as
 * NULL. malloc'ed; NULL also when there is no memory or no current folder.
 */
char *rb_vm_trace_absolute_path(const char *path);

/*
 * Parse the limit of a file's size: MiB, from 4 on, and which events are kept, "newest" (also when
 * nothing is said) or "oldest": "64", "64,oldest". False, and a line on stderr that names the
 * option and what it takes, when it is anything else.
 */
bool rb_vm_trace_parse_max_size(const char *option, const char *value, struct rb_vm_trace_max_size *size_out);

/*
 * Parse the size of the flight recorder's memory, MiB, and the seconds that a saved trace covers if
 * not all: "16", "16,5". Failure is as above.
 */
bool rb_vm_trace_parse_memory(const char *option, const char *value);

/*
 * Parse when the flight recorder saves without a call: "exit", "exception" (one that ends the
 * program), "crash", the name of a signal; several separated by commas. Failure is as above.
 */
bool rb_vm_trace_parse_save_at(const char *option, const char *value);

/*
 * Parse how many MiB of the disk stay free: recording stops there. 0: it does not. Failure is as
 * above.
 */
bool rb_vm_trace_parse_min_free(const char *option, const char *value);

/*
 * Parse how many innermost frames of each stack are recorded: "30". Kept in
 * rb_vm_trace_capture.stack_frames. Failure is as above.
 */
bool rb_vm_trace_parse_stack(const char *option, const char *value);

/*
 * Parse an option without a value: no lines on stderr but about failures and losses. Failure is as
 * above.
 */
bool rb_vm_trace_parse_quiet(const char *option, const char *value);

/*
 * Parse "no": nobody will trace exits or calls of code that is compiled without trace points, so
 * compiling keeps no notes of where they are. Failure is as above.
 */
bool rb_vm_trace_parse_late(const char *option, const char *value);

/* The bit (session_state.h) of "exit", "exception" or "crash"; 0: it is none of these. */
unsigned rb_vm_trace_moment(const char *name, size_t bytes);

#endif /* RUBY_VM_TRACE_SESSION_OPTIONS_H */
