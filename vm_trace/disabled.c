/*
 * The module built out (configure --disable-vm-trace): the stubs of vm_trace.h and vm_trace_jit.h
 * as real functions, for callers that can't include a C header. Compiled instead of all the rest.
 */
#ifndef USE_VM_TRACE
# include "ruby/config.h"
#endif
#if !defined(USE_VM_TRACE) || USE_VM_TRACE
# error "the other files of CRuby call the module, which only GNU make can build: use it, or configure --disable-vm-trace"
#endif
#define RB_VM_TRACE_STUB extern
#include "vm_trace/vm_trace_jit.h"

/* inits.c calls it whatever is built. */
void
Init_VM_Trace(void)
{
}

/* Extensions include vm_trace/include/ruby/vm_trace.h. */
#include "vm_trace/include/ruby/vm_trace.h"

int rb_vm_trace_markers_on;

const rb_vm_trace_marker *
rb_vm_trace_marker_name(const char *name)
{
    return NULL;
}

void
rb_vm_trace_marker_instant_slow(const rb_vm_trace_marker *name)
{
}

rb_vm_trace_span
rb_vm_trace_marker_begin_slow(const rb_vm_trace_marker *name)
{
    return 0;
}

void
rb_vm_trace_marker_end_slow(const rb_vm_trace_marker *name, rb_vm_trace_span span)
{
}

void
rb_vm_trace_marker_counter_slow(const rb_vm_trace_marker *name, int64_t value)
{
}
