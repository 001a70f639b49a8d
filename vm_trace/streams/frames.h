#ifndef RUBY_VM_TRACE_STREAMS_FRAMES_H
#define RUBY_VM_TRACE_STREAMS_FRAMES_H 1
/* Which streams the VM's reports of frames go to (vm_trace.h). */

#include "vm_trace/vm_trace.h"

/* One of them (RB_VM_TRACE_FRAMES_...) is recorded from now on, or not. World stopped. */
void rb_vm_trace_frames_report(int stream, bool on);

/* The hook rb_vm_trace_fiber_switched, while one is recorded. */
void rb_vm_trace_frames_switched(struct rb_execution_context_struct *from, struct rb_execution_context_struct *to);

#endif /* RUBY_VM_TRACE_STREAMS_FRAMES_H */
