#ifndef RUBY_VM_TRACE_STREAMS_COMPILES_COUNTERS_H
#define RUBY_VM_TRACE_STREAMS_COMPILES_COUNTERS_H 1
/*
 * Counter tracks beside compilations: bytes of code, versions, and the exits a second of each
 * ractor.
 */

#include "vm_trace/capture/event.h"

/* The stream of compilations, whose counters these are. */
extern struct rb_vm_trace_stream rb_vm_trace_compiles;

/* Count a compilation, an invalidation. capture.lock held. */
void rb_vm_trace_count_compiled(uint64_t code_bytes, bool version);
void rb_vm_trace_count_invalidated(void);

/*
 * Write them, and the exits a second of this ractor when their last sample is some time ago. Takes
 * capture.lock.
 */
void rb_vm_trace_counters_write(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* A chunk was begun in `ractor`: a sample of its exits a second goes there. Takes no lock. */
void rb_vm_trace_counters_chunk(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* Count from 0. */
void rb_vm_trace_counters_clear(void);

#endif /* RUBY_VM_TRACE_STREAMS_COMPILES_COUNTERS_H */
