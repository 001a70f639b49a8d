#ifndef RUBY_VM_TRACE_STREAMS_KERNEL_SYSCALLS_H
#define RUBY_VM_TRACE_STREAMS_KERNEL_SYSCALLS_H 1
/*
 * System calls: each one of the program is a slice on the track of the Ruby thread, fiber or native
 * thread that made it, category `syscall`, with its name, arguments, and result or errno.
 */

#include "vm_trace/capture/stream.h"

extern struct rb_vm_trace_stream rb_vm_trace_syscalls;

#endif /* RUBY_VM_TRACE_STREAMS_KERNEL_SYSCALLS_H */
