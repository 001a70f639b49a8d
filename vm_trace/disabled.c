/*
 * The module built out (configure --disable-vm-trace): the stubs of vm_trace.h as real
 * functions, for callers that can't include a C header. Compiled instead of all the rest.
 */
#undef USE_VM_TRACE
#define USE_VM_TRACE 0
#define RB_VM_TRACE_STUB extern
#include "vm_trace/vm_trace.h"

/* inits.c calls it whatever is built. */
void
Init_VM_Trace(void)
{
}
