#ifndef RUBY_VM_TRACE_SESSION_FLAGS_H
#define RUBY_VM_TRACE_SESSION_FLAGS_H 1
/*
 * The table of trace flags: what follows "--zjit-trace-", "--yjit-trace-" and "--vm-trace-". Those
 * of JITs are parsed by functions of vm_trace_jit.h, those of the VM in vm_options.c.
 */

#include <stdbool.h>
#include <stddef.h>

struct vm_trace_flag;

/*
 * The flag of that name, if --vm-trace- takes it, too: it says how to trace, not what. Else NULL.
 */
const struct vm_trace_flag *rb_vm_trace_common_flag(const char *name);

/* "methods, -file, ...": the names of these, each but the first with a dash before it. */
void rb_vm_trace_list_common_flags(char *text_out, size_t bytes);

/* Take a flag's value. False: a line on stderr says what `option`, as the user wrote it, takes. */
bool rb_vm_trace_parse_flag(const struct vm_trace_flag *flag, const char *option, const char *value);

#endif /* RUBY_VM_TRACE_SESSION_FLAGS_H */
