#ifndef RUBY_VM_TRACE_OPTIONS_H
#define RUBY_VM_TRACE_OPTIONS_H 1
/*
 * Values of trace options, common to all JITs. See also rb_vm_trace_parse_... in vm_trace.h.
 */

#include <stdint.h>

/* Limits of a file's limit: less has no room to keep anything beside what is being written; more is no disk's. */
#define VM_TRACE_LEAST_MIB 4
#define VM_TRACE_MOST_MIB (1 << 20)

/*
 * The path of process `pid` from a template: %p is the pid, %% a per cent sign. NULL is
 * /tmp/perfetto-%p.fxt. `child` is for a process forked from a traced one: where the template
 * has no %p, ".PID" is added, for the parent's file is not ours. malloc'ed; NULL: no memory.
 */
char *rb_vm_trace_expand_path(const char *pattern, uint32_t pid, int child);

/*
 * The path made absolute, for a program may change its folder before it forks. Copies NULL as
 * NULL. malloc'ed; NULL also when there is no memory or no current folder.
 */
char *rb_vm_trace_absolute_path(const char *path);

#endif /* RUBY_VM_TRACE_OPTIONS_H */
