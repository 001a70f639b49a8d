#ifndef RUBY_VM_TRACE_CAPTURE_METHOD_FILTER_H
#define RUBY_VM_TRACE_CAPTURE_METHOD_FILTER_H 1
/*
 * Which methods are traced, where a flag names some.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * Parse globs of methods ("Owner#method") and files, with commas between them: only what is in one
 * of these is traced. They are kept for ever, by the last call. False, and a line on stderr that
 * names the option and what it takes, when it is anything else.
 */
bool rb_vm_trace_parse_methods(const char *option, const char *value);

/*
 * Whether code with this label, "Owner#method (path:line)", is to be traced
 * (rb_vm_trace_parse_methods). A glob is tried on the method, for a block or a rescue body that
 * around it, and on the path. A label may lack the owner: then that of the glob counts for nothing.
 */
bool rb_vm_trace_method_requested_p(const char *label, size_t bytes);

/* The globs as they were given, or NULL. */
const char *rb_vm_trace_methods(void);

#endif /* RUBY_VM_TRACE_CAPTURE_METHOD_FILTER_H */
