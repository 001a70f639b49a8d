#ifndef RUBY_VM_TRACE_PLATFORM_PERF_NAMES_H
#define RUBY_VM_TRACE_PLATFORM_PERF_NAMES_H 1
/* Names of system calls and of errors, from the headers of the system that this was built on. Any thread. */

#include <stdint.h>

/* "read"; NULL: the headers have none of that number. Static. */
const char *rb_vm_trace_system_call_name(int64_t number);

/* "EAGAIN"; NULL: none. `error` is an errno, or one of those that only the kernel itself sees. Static. */
const char *rb_vm_trace_error_name(int64_t error);

#endif /* RUBY_VM_TRACE_PLATFORM_PERF_NAMES_H */
