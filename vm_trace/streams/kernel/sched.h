#ifndef RUBY_VM_TRACE_STREAMS_KERNEL_SCHED_H
#define RUBY_VM_TRACE_STREAMS_KERNEL_SCHED_H 1
/*
 * The kernel's scheduler: on which CPU each thread of the program runs, and when it waits for one.
 * Each native thread has a track for that, "NAME CPU", beside that of its Ruby thread: so it is seen
 * when a thread has the GVL and no CPU. Category `sched`:
 *   CPU 3     it runs there (argument: cpu)
 *   runnable  it waits for a CPU: since it was preempted, or was woken (arguments: cpu, that it ran on
 *             last or runs on then; why; other, the task that has the CPU meanwhile; waker)
 * Between them it sleeps. Wake-ups need a privilege (perf/rings.h); without it only preemptions are
 * known.
 */

#include "vm_trace/capture/stream.h"

extern struct rb_vm_trace_stream rb_vm_trace_sched;

#endif /* RUBY_VM_TRACE_STREAMS_KERNEL_SCHED_H */
