#ifndef RUBY_VM_TRACE_STREAMS_ALLOCATIONS_ALLOCATIONS_H
#define RUBY_VM_TRACE_STREAMS_ALLOCATIONS_ALLOCATIONS_H 1
/*
 * Allocations: samples one object per number of bytes of slots. Records its class, its backtrace and
 * how many collections it survives. Allocators call the hooks that vm_trace.h declares.
 */

#include "vm_trace/capture/event.h"

#define ALLOCATIONS_DEFAULT_BYTES (UINT64_C(512) << 10)
#define ALLOCATIONS_LEAST_BYTES (UINT64_C(1) << 10) /* but for 1: each object */
#define ALLOCATIONS_MOST_BYTES (UINT64_C(1) << 30)

extern struct rb_vm_trace_stream rb_vm_trace_allocations;

/*
 * NULL, or why collections cannot be recorded: only CRuby's own collector calls their hooks. It registers itself
 * before any trace begins.
 */
const char *rb_vm_trace_why_no_collections(void);

#endif /* RUBY_VM_TRACE_STREAMS_ALLOCATIONS_ALLOCATIONS_H */
