#ifndef RUBY_VM_TRACE_STREAMS_GC_GC_H
#define RUBY_VM_TRACE_STREAMS_GC_GC_H 1
/*
 * Garbage collections: each pause as a duration, its phases inside, and counters of the heap. The
 * GC calls the hooks that vm_trace.h declares.
 */

#include "vm_trace/capture/event.h"

extern struct rb_vm_trace_stream rb_vm_trace_gc;

#endif /* RUBY_VM_TRACE_STREAMS_GC_GC_H */
