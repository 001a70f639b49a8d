#ifndef RUBY_VM_TRACE_PLATFORM_PERF_RECORDS_H
#define RUBY_VM_TRACE_PLATFORM_PERF_RECORDS_H 1
/*
 * What the kernel says of this process's threads, decoded from what perf_event_open(2) puts into its
 * rings.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VM_TRACE_SYSCALL_ARGUMENTS = 6, VM_TRACE_COMM_BYTES = 16 /* with a 0 at the end */ };

enum vm_trace_perf_kind {
    VM_TRACE_PERF_UNKNOWN,
    VM_TRACE_PERF_ENTER,   /* a system call begins */
    VM_TRACE_PERF_EXIT,    /* and ends */
    VM_TRACE_PERF_ON_CPU,  /* the thread begins to run on a CPU */
    VM_TRACE_PERF_OFF_CPU, /* and ends to */
    VM_TRACE_PERF_SWITCH,  /* right before one of the two: what else ran or runs on that CPU */
    VM_TRACE_PERF_WAKING,  /* somebody wakes the thread */
    VM_TRACE_PERF_BEGUN,   /* the thread was created */
    VM_TRACE_PERF_ENDED,   /* it ends */
    VM_TRACE_PERF_NAMED,   /* it has a new name */
    VM_TRACE_PERF_LOST     /* records are lost: a ring was full */
};

/* A task of the system: thread 0 is that of an idle CPU. */
struct vm_trace_task {
    uint32_t tid;
    char comm[VM_TRACE_COMM_BYTES];
};

struct vm_trace_perf_record {
    enum vm_trace_perf_kind kind;
    uint32_t tid;              /* native id of the thread */
    uint32_t cpu;
    uint64_t ns;               /* CLOCK_BOOTTIME */
    union {
        struct {
            int64_t number;    /* of the system call, as in asm/unistd.h */
            union {
                uint64_t arguments[VM_TRACE_SYSCALL_ARGUMENTS]; /* ENTER: registers, which need not all be arguments */
                int64_t result;                                 /* EXIT: a negative errno, or what the call returns */
            };
        } call;
        bool runnable;                 /* OFF_CPU: it would run on if it had a CPU */
        struct vm_trace_task other;    /* SWITCH */
        struct vm_trace_task waker;    /* WAKING; without a name */
        char comm[VM_TRACE_COMM_BYTES]; /* NAMED */
        uint32_t parent;               /* BEGUN: the thread that created it */
        uint64_t lost;                 /* LOST: how many records */
    };
};

/* Tracepoints that records come from. */
enum vm_trace_tracepoint {
    VM_TRACE_SYS_ENTER,
    VM_TRACE_SYS_EXIT,
    VM_TRACE_SCHED_SWITCH,
    VM_TRACE_SCHED_WAKING,
    VM_TRACE_TRACEPOINTS
};

/* Ids of tracepoints in this kernel, and where fields are in what they record; 0: not known. */
struct vm_trace_tracepoints {
    int id[VM_TRACE_TRACEPOINTS];
    struct {
        unsigned previous_comm, previous_tid, next_comm, next_tid;
    } switched;
    struct {
        unsigned tid;
    } waking;
};

/*
 * Decode one record, which is whole at `at` (`bytes` of it), as rings.c requests them. A
 * `sched_switch` may tell of two of `ours`: then *second_out is what it says of the other one, whose
 * kind is UNKNOWN else. Times are those of the ring's
 * clock. False: it is none that anybody wants.
 */
typedef bool vm_trace_thread_predicate(const void *data, uint32_t tid);
bool rb_vm_trace_perf_decode(const struct vm_trace_tracepoints *tracepoints, const void *at, size_t bytes,
                             vm_trace_thread_predicate *ours, const void *data, struct vm_trace_perf_record *record_out,
                             struct vm_trace_perf_record *second_out);

/* The time of a record, by the ring's clock. */
uint64_t rb_vm_trace_perf_record_ns(const void *at, size_t bytes);

#endif /* RUBY_VM_TRACE_PLATFORM_PERF_RECORDS_H */
