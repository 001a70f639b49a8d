#ifndef RUBY_VM_TRACE_STREAMS_ALLOCATIONS_H
#define RUBY_VM_TRACE_STREAMS_ALLOCATIONS_H 1
/*
 * Allocations: samples one object per number of bytes of slots. Records its class, its backtrace and
 * how many collections it survives. Allocators call the hooks that vm_trace.h declares.
 */

#include "vm_trace/capture/event.h"

#define ALLOCATIONS_DEFAULT_BYTES (UINT64_C(512) << 10)
#define ALLOCATIONS_LEAST_BYTES (UINT64_C(1) << 10) /* but for 1: each object */
#define ALLOCATIONS_MOST_BYTES (UINT64_C(1) << 30)

extern struct rb_vm_trace_stream rb_vm_trace_allocations;

/* Whether the collector is CRuby's own, which calls the hooks of collections. It says so before any trace begins. */
bool rb_vm_trace_default_gc_p(void);

#endif /* RUBY_VM_TRACE_STREAMS_ALLOCATIONS_H */
