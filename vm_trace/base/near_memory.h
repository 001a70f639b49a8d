#ifndef RUBY_VM_TRACE_BASE_NEAR_MEMORY_H
#define RUBY_VM_TRACE_BASE_NEAR_MEMORY_H 1
/*
 * Address space next to compiled code, so that its jumps reach what they are to lead to while it is
 * traced. What JITs call is in vm_trace_jit.h (rb_vm_trace_reserve_code_region and what follows). How
 * far a jump reaches differs: near_memory_arm64.c is arm64's, near_memory.c all others'.
 */

#include <stddef.h>

/*
 * Code will be in `code` and the `bytes` after it: keep memory near it from others, where a jump reaches
 * so little that there may be none later. Called while a JIT starts, by one thread. Nothing happens
 * when there is none even then.
 */
void rb_vm_trace_near_memory_keep(const void *code, size_t bytes);

#endif /* RUBY_VM_TRACE_BASE_NEAR_MEMORY_H */
