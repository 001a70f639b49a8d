#ifndef RUBY_VM_TRACE_STREAMS_KERNEL_NATIVE_THREADS_H
#define RUBY_VM_TRACE_STREAMS_KERNEL_NATIVE_THREADS_H 1
/*
 * Native threads, and which Ruby thread or fiber each of them runs when. What the kernel records is of
 * native threads; its slices belong on the track of what ran there.
 *
 * A thread that has the GVL notes that it runs another Ruby thread or fiber from now on, in memory of
 * its own, and the kernel reader (kernel_reader.h) takes the notes. No lock is taken. What runs no
 * Ruby has a track of its own, with the name that the system knows.
 */

#include "vm_trace/vm_trace.h"
#include "vm_trace/host/host.h"
#include "vm_trace/platform/perf/records.h"

#include <pthread.h>

/* A track that slices are written on. */
struct vm_trace_native_track {
    struct vm_trace_thread_id id;  /* name_id: another one for another name */
    const char *name;
    size_t name_bytes;
};

/* What is known of a native thread. For the kernel reader alone. */
struct vm_trace_native_thread {
    struct vm_trace_native_thread *next; /* in its bucket */
    uint32_t tid;
    char comm[VM_TRACE_COMM_BYTES]; /* its name in the system */
    bool own;                  /* of the tracer: not recorded */
    bool ruby;                 /* it runs, or has run, Ruby */
    struct vm_trace_native_track track; /* what it runs */
    struct vm_trace_native_track own_track; /* where it runs nothing of Ruby */
    struct vm_trace_native_track cpu_track; /* beside it, for the CPU that it has */
    struct vm_trace_notes *notes; /* NULL: it has none yet */
    /* A system call that has begun; ns 0: none. */
    struct {
        uint64_t ns;
        bool seen;             /* one has ended already; the first one may have begun before the recording */
        int64_t number;
        uint64_t arguments[VM_TRACE_SYSCALL_ARGUMENTS];
        struct vm_trace_native_track track;
    } call;
    /* Since when it has a CPU (on_ns), or waits for one (runnable_ns); 0: it does not. */
    struct {
        uint64_t on_ns, runnable_ns;
        uint32_t number;       /* of the CPU */
        bool preempted;
        uint64_t switch_ns;         /* 0: not known */
        struct vm_trace_task other; /* of that switch */
        struct vm_trace_task place; /* that took its CPU, or woke it; tid 0: not known */
    } cpu;
};

/* Name of a track, for rb_vm_trace_event_begin_on: `track` is a struct vm_trace_native_track. */
size_t rb_vm_trace_native_track_name(const void *track, char *buffer, size_t capacity);

/* --- threads of Ruby --- */

/* The current native thread runs that thread or fiber of Ruby from now on. GVL held. */
void rb_vm_trace_native_runs(struct rb_execution_context_struct *ec);

/*
 * A session begins: note all Ruby threads that have a native thread for themselves. World stopped.
 * No reader runs. False: no
 * memory.
 */
bool rb_vm_trace_native_begin(void);

/*
 * The name of a Ruby thread has changed. The current thread notes its own at once, another one when it
 * runs next. GVL held.
 */
void rb_vm_trace_native_renamed(void);

/* --- the kernel reader --- */

/*
 * The thread, which is made if it is not there. `parent` has created it; 0: not known. NULL: no
 * memory.
 */
struct vm_trace_native_thread *rb_vm_trace_native_thread(uint32_t tid, uint32_t parent);

/* Take notes up to a time: then its track is that of what it ran at that time. */
void rb_vm_trace_native_at(struct vm_trace_native_thread *thread, uint64_t ns);

/* The system has another name for it. */
void rb_vm_trace_native_named(struct vm_trace_native_thread *thread, const char *comm);

/* It has ended. */
void rb_vm_trace_native_ended(struct vm_trace_native_thread *thread);

void rb_vm_trace_native_each(void (*function)(struct vm_trace_native_thread *thread, void *data), void *data);

/* Free all. No thread notes anything, and no reader runs. */
void rb_vm_trace_native_free_all(void);

/* Forget all, in the child of a fork. */
void rb_vm_trace_native_after_fork(void);

#endif /* RUBY_VM_TRACE_STREAMS_KERNEL_NATIVE_THREADS_H */
