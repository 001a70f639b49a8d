#ifndef RUBY_VM_TRACE_RUBY_START_OPTIONS_H
#define RUBY_VM_TRACE_RUBY_START_OPTIONS_H 1
/*
 * The keywords of RubyVM::Trace.start, and what they ask for.
 */
#include "ruby/ruby.h"

#include "vm_trace/session/session.h"

#include <limits.h>

enum { VM_TRACE_START_OPTIONS = 21 };

/* Keep it on the stack: its strings belong to `values`, and memory.spool.folder is spool_folder. */
struct vm_trace_start_options {
    struct rb_vm_trace_config config;
    struct rb_vm_trace_memory_config memory;
    struct vm_trace_stream_request requests[VM_TRACE_MAX_STREAMS]; /* by index in the table */
    uint64_t min_free_bytes;
    uint32_t stack_frames; /* 0: all */
    VALUE values[VM_TRACE_START_OPTIONS];
    char spool_folder[PATH_MAX];
};

/*
 * Read a Hash of keywords, or nil. GVL held. Makes the spool's folder if there is none. Raises
 * ArgumentError for what is unknown, or can't be, and NotImplementedError where no JIT is on that
 * could record what is asked for.
 */
void rb_vm_trace_read_start_options(VALUE options, struct vm_trace_start_options *out);

#endif /* RUBY_VM_TRACE_RUBY_START_OPTIONS_H */
