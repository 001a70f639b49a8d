#ifndef RUBY_VM_TRACE_BASE_MEMBARRIER_H
#define RUBY_VM_TRACE_BASE_MEMBARRIER_H 1
/*
 * Barriers that this thread has all threads of the process pass, so that those need none of their own
 * (membarrier(2)). Any thread may call these. The first call registers the process, which may take
 * milliseconds; later ones take microseconds. No memory is allocated.
 *
 * False: the kernel has no such call, or a filter of system calls refuses it. Then no barrier was
 * passed, and the caller has to do without.
 */

#include <stdbool.h>

/* Each thread that runs passes a full memory barrier between the caller's accesses before and after. */
bool rb_vm_trace_membarrier(void);

/* The same, and what it runs then was fetched after this began. */
bool rb_vm_trace_membarrier_sync_core(void);

#endif /* RUBY_VM_TRACE_BASE_MEMBARRIER_H */
