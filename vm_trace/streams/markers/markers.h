#ifndef RUBY_VM_TRACE_STREAMS_MARKERS_MARKERS_H
#define RUBY_VM_TRACE_STREAMS_MARKERS_MARKERS_H 1
/*
 * Markers: events of the program's own. Extensions call include/ruby/vm_trace.h; this is what
 * RubyVM::Trace.span, .instant and .counter call, which have names and arguments as texts.
 */

#include "vm_trace/capture/event.h"
#include "vm_trace/include/ruby/vm_trace.h"

extern struct rb_vm_trace_stream rb_vm_trace_markers;

/* One argument beside these says how many were left out. */
#define VM_TRACE_MARKER_ARGUMENTS (FXT_ARGS_MAX - 1)

struct vm_trace_marker_argument {
    const char *key;             /* UTF-8, not terminated; bytes that are no UTF-8 are written as \xHH */
    size_t key_bytes;
    enum fxt_arg_type type;      /* FXT_ARG_STRING, _INT64, _UINT64, _DOUBLE, _BOOL or _NULL */
    const char *text;            /* of a string */
    size_t text_bytes;
    uint64_t bits;               /* of all others, as the record holds them */
};

struct vm_trace_marker {
    enum fxt_event_type type;         /* FXT_EVENT_INSTANT, FXT_EVENT_COUNTER, FXT_EVENT_DURATION_BEGIN or _END */
    const char *name;
    size_t name_bytes;
    const struct vm_trace_marker_argument *arguments;
    unsigned argument_count;     /* up to VM_TRACE_MARKER_ARGUMENTS */
    unsigned left_out;           /* arguments that there is no room for */
};

/*
 * Write a marker on the current thread. Returns the number of its trace, for the end of a
 * span; 0: it was not written, and counts as lost if markers are recorded. GVL held.
 */
rb_vm_trace_span rb_vm_trace_marker_write(const struct vm_trace_marker *marker);

/* Whether a span that began so can still end in the same trace. */
bool rb_vm_trace_marker_same_trace_p(rb_vm_trace_span span);

#endif /* RUBY_VM_TRACE_STREAMS_MARKERS_MARKERS_H */
