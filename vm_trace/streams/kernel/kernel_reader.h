#ifndef RUBY_VM_TRACE_STREAMS_KERNEL_KERNEL_READER_H
#define RUBY_VM_TRACE_STREAMS_KERNEL_KERNEL_READER_H 1
/*
 * The kernel reader: a native thread of the tracer that reads what the kernel records of this process
 * (perf/rings.h), and has the streams `syscalls` and `sched` write it. There is one for both.
 *
 * It has a ractor state of its own, in the list of all, for its writer and its counts. So its events
 * need no GVL and no lock, and resets, snapshots and limits are those of any other state. It writes a
 * little later than things happen, up to 20 ms, which a process that is killed loses.
 */

#include "vm_trace/capture/event.h"
#include "vm_trace/streams/kernel/native_threads.h"

/* What a stream does with records. Called by the reader, which has the state `ractor`. */
struct rb_vm_trace_kernel_stream {
    struct rb_vm_trace_stream *stream;
    unsigned what;  /* VM_TRACE_PERF_... */
    bool (*begin)(void); /* before the first record. False: no memory */
    void (*record)(struct rb_vm_trace_ractor *ractor, struct vm_trace_native_thread *thread,
                   const struct vm_trace_perf_record *record);
    /* Nothing more is read: write what is open. `ns`: now. */
    void (*finish)(struct rb_vm_trace_ractor *ractor, struct vm_trace_native_thread *thread, uint64_t ns);
};

/* One that is static. Before any session. */
void rb_vm_trace_kernel_register(const struct rb_vm_trace_kernel_stream *stream);

/* What a ractor keeps for such a stream: only the reader's state has any. Counters 0 and 1 of the stream. */
struct vm_trace_kernel_counts {
    uint64_t written, left_out;
};

/*
 * Write a slice, as `write` does with `what`, and count it; unless it ended before the last reset, or is
 * shorter than the stream's `min`, which is counted, too.
 */
void rb_vm_trace_kernel_slice(const struct rb_vm_trace_stream *stream, struct rb_vm_trace_ractor *ractor,
                              uint64_t begin_ns, uint64_t end_ns, vm_trace_event_writer *write, const void *what);

/* Functions of streams (stream.h). Of the first ones, the first call does it for both streams. */
const char *rb_vm_trace_kernel_start(bool by_flags);
void rb_vm_trace_kernel_stop(void);
void rb_vm_trace_kernel_flush(void);
void rb_vm_trace_kernel_after_fork(void);
void rb_vm_trace_kernel_forget(void);
void rb_vm_trace_kernel_count_from_0(const struct rb_vm_trace_stream *stream, struct rb_vm_trace_ractor *ractor);
void rb_vm_trace_kernel_add_counts(const struct rb_vm_trace_stream *stream, const struct rb_vm_trace_ractor *ractor,
                                   struct vm_trace_totals *totals);
bool rb_vm_trace_kernel_write_settings(const struct rb_vm_trace_stream *stream, const char *min_name,
                                       struct vm_trace_event *event);

/* Members of struct rb_vm_trace_stream that are the same in both streams. */
#define KERNEL_STREAM \
    .takes_min = true, \
    .without_jit = true, \
    .start = rb_vm_trace_kernel_start, \
    .starts_in_children = true, \
    .stop = rb_vm_trace_kernel_stop, \
    .end_threads = rb_vm_trace_kernel_stop, \
    .flush = rb_vm_trace_kernel_flush, \
    .after_fork = rb_vm_trace_kernel_after_fork, \
    .forget = rb_vm_trace_kernel_forget, \
    .ractor_bytes = sizeof(struct vm_trace_kernel_counts), \
    .thread_renamed = rb_vm_trace_native_renamed

#endif /* RUBY_VM_TRACE_STREAMS_KERNEL_KERNEL_READER_H */
