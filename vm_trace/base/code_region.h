#ifndef RUBY_VM_TRACE_BASE_CODE_REGION_H
#define RUBY_VM_TRACE_BASE_CODE_REGION_H 1
/* Which addresses belong to compiled code: those in the regions that a JIT reserved (rb_vm_trace_code_region). */

#include <stdbool.h>
#include <stdint.h>

/* Async-signal-safe, as the next one. */
bool rb_vm_trace_code_p(uintptr_t address);

/* Whether a word on the native stack, from `from` up to `to`, is such an address. */
bool rb_vm_trace_code_between_p(uintptr_t from, uintptr_t to);

#endif /* RUBY_VM_TRACE_BASE_CODE_REGION_H */
