#ifndef RUBY_VM_TRACE_PLATFORM_PERF_RINGS_H
#define RUBY_VM_TRACE_PLATFORM_PERF_RINGS_H 1
/*
 * The rings that the kernel writes into: one a CPU, for all threads of this process. Events of a
 * thread are inherited by the threads that it creates, so a new thread is recorded from its first
 * instruction, and a forked child is not.
 *
 * All functions but the first and the last are for the one thread that has opened them. That thread
 * gets a table of file descriptors for itself: the program sees none of the descriptors here, and can
 * close none.
 */

#include "vm_trace/platform/perf/records.h"

struct rb_vm_trace_perf;

/* What to record: bits. */
enum { VM_TRACE_PERF_SYSCALLS = 1, VM_TRACE_PERF_CPUS = 2 };

/*
 * Why that can't be recorded here: a sentence without its end, which names the remedy. NULL: it can.
 * Valid until the next call. Opens and closes an event of the calling thread.
 */
const char *rb_vm_trace_perf_refused(unsigned what);

/*
 * Open the rings, and attach all threads of the process but the calling one. `keep_fd`, when not -1,
 * is the descriptor that the calling thread keeps of the program's. NULL: not possible, *error_out is
 * the errno.
 */
struct rb_vm_trace_perf *rb_vm_trace_perf_open(unsigned what, int keep_fd, int *error_out);

/* How many threads could not be attached, for want of descriptors or memory. */
uint64_t rb_vm_trace_perf_unattached(const struct rb_vm_trace_perf *perf);

/*
 * Call function(data, record) for what is there, in the order of its times. Without `all` the newest
 * millisecond is left for the next time: another CPU may still be writing what is older. Returns how
 * many there were.
 */
size_t rb_vm_trace_perf_read(struct rb_vm_trace_perf *perf, bool all,
                             void (*function)(void *data, const struct vm_trace_perf_record *record), void *data);

/*
 * How many ends of system calls and switches were lost so far, because a ring was full (before Linux
 * 6.0: how many records). A ring itself tells of it only when it
 * has room again, and something happens; the kernel counts at once, since Linux 6.0.
 */
uint64_t rb_vm_trace_perf_lost(const struct rb_vm_trace_perf *perf);

/* Wait until a ring is a quarter full, for rb_vm_trace_perf_wake, or so many ms. */
void rb_vm_trace_perf_wait(struct rb_vm_trace_perf *perf, int ms);

void rb_vm_trace_perf_close(struct rb_vm_trace_perf *perf);

/* Have the thread `tid`, which may be in rb_vm_trace_perf_wait, go on. Any thread. */
void rb_vm_trace_perf_wake(uint32_t tid);

#endif /* RUBY_VM_TRACE_PLATFORM_PERF_RINGS_H */
