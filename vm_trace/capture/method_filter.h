#ifndef RUBY_VM_TRACE_CAPTURE_METHOD_FILTER_H
#define RUBY_VM_TRACE_CAPTURE_METHOD_FILTER_H 1
/*
 * Which methods are traced, where a flag names some (rb_vm_trace_parse_methods in vm_trace.h).
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether code with this label, "Owner#method (path:line)", is to be traced (rb_vm_trace_parse_methods). A glob is tried on
 * the method, for a block or a rescue body that around it, and on the path. A label may lack the owner: then that
 * of the glob counts for nothing.
 */
bool rb_vm_trace_method_requested_p(const char *label, size_t bytes);

/* The globs as they were given, or NULL. */
const char *rb_vm_trace_methods(void);

#endif /* RUBY_VM_TRACE_CAPTURE_METHOD_FILTER_H */
