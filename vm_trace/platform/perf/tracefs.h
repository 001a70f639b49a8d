#ifndef RUBY_VM_TRACE_PLATFORM_PERF_TRACEFS_H
#define RUBY_VM_TRACE_PLATFORM_PERF_TRACEFS_H 1
/* What tracefs says of tracepoints. Reads files; any thread. */

#include "vm_trace/platform/perf/records.h"

/* An argument of a system call. */
struct vm_trace_call_argument {
    char name[32];
    enum { VM_TRACE_ARGUMENT_UNSIGNED, VM_TRACE_ARGUMENT_SIGNED, VM_TRACE_ARGUMENT_POINTER } kind;
    unsigned bytes;  /* of its type: 4 (int, mode_t, ...) or 8 */
};

/*
 * Find the tracepoints with their ids, and where their fields are. 0, or an errno: ENOENT where
 * tracefs is not mounted, EACCES where this user may not read it. `wanted` has a bit for each.
 */
int rb_vm_trace_tracefs_find(unsigned wanted, struct vm_trace_tracepoints *tracepoints_out);

/*
 * The arguments of a system call, by its name. Returns how many it has; -1: tracefs does not say
 * (CONFIG_FTRACE_SYSCALLS).
 */
int rb_vm_trace_tracefs_arguments(const char *call,
                                  struct vm_trace_call_argument arguments_out[VM_TRACE_SYSCALL_ARGUMENTS]);

#endif /* RUBY_VM_TRACE_PLATFORM_PERF_TRACEFS_H */
