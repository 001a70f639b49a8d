#ifndef RUBY_VM_TRACE_STREAMS_TABLE_H
#define RUBY_VM_TRACE_STREAMS_TABLE_H 1
/*
 * All streams. A new one is a file in this folder and a line in table.c.
 */

#include "vm_trace/capture/stream.h"
#include "vm_trace/vm_trace_jit.h"

/*
 * The last one is NULL. They are registered (rb_vm_trace_capture_register) when the program is
 * loaded.
 */
extern struct rb_vm_trace_stream *const rb_vm_trace_streams[];

/* What one stream is to record. */
struct vm_trace_stream_request {
    uint64_t rate;     /* 0: nothing */
    const char *only;
    uint64_t min_ns_and_1; /* 0: the stream's default */
    uint64_t depth;    /* 0: any */
    enum vm_trace_stack_part stack_part;
    bool samples;
    bool by_preset;    /* where it can't be recorded it is left out */
};

#define VM_TRACE_MAX_STREAMS 16

/* What a JIT's flags, or the program, ask for, by index in the table. */
void rb_vm_trace_streams_request(const struct rb_vm_trace_config *config,
                                 struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS]);

/*
 * The reverse: have a JIT trace from the beginning what requests name beside its flags, which come
 * first. Strings stay the caller's.
 */
void rb_vm_trace_streams_config(const struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS],
                                struct rb_vm_trace_config *config);

#endif /* RUBY_VM_TRACE_STREAMS_TABLE_H */
