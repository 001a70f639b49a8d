#ifndef RUBY_VM_TRACE_PUBLIC_H
#define RUBY_VM_TRACE_PUBLIC_H 1
/*
 * Markers: an extension's own events in the trace of RubyVM::Trace and --vm-trace=markers.
 *
 * Call all functions with the GVL. They allocate no Ruby object and raise nothing. While no markers
 * are recorded each costs one load and one predictable branch. In a Ruby that was configured with
 * --disable-vm-trace they do nothing.
 *
 *     static const rb_vm_trace_marker *parse;        // in Init_...
 *     parse = rb_vm_trace_marker_name("parse");
 *     ...
 *     rb_vm_trace_span span = rb_vm_trace_marker_begin(parse);
 *     ...
 *     rb_vm_trace_marker_end(parse, span);
 *
 * A span must end on the thread and the fiber where it began, and inner spans before outer ones.
 * When Ruby code may raise within it, end it by rb_ensure.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
# pragma GCC visibility push(default)
# define RB_VM_TRACE_MARKERS_ON __builtin_expect(rb_vm_trace_markers_on, 0)
#else
# define RB_VM_TRACE_MARKERS_ON rb_vm_trace_markers_on
#endif

/* A name, ready for use. It lives as long as the process. */
typedef struct vm_trace_string rb_vm_trace_marker;

/* What rb_vm_trace_marker_begin returns: 0 when nothing was recorded. */
typedef uint64_t rb_vm_trace_span;

/* Not 0 while markers are recorded. Read only. */
extern int rb_vm_trace_markers_on;

/* The handle of a name, which is copied. Call it once for each name. NULL: no memory. */
const rb_vm_trace_marker *rb_vm_trace_marker_name(const char *name);

/* The functions below, when markers are recorded. Takes NULL: the marker then counts as lost. */
void rb_vm_trace_marker_instant_slow(const rb_vm_trace_marker *name);
rb_vm_trace_span rb_vm_trace_marker_begin_slow(const rb_vm_trace_marker *name);
void rb_vm_trace_marker_end_slow(const rb_vm_trace_marker *name, rb_vm_trace_span span);
void rb_vm_trace_marker_counter_slow(const rb_vm_trace_marker *name, int64_t value);

/* Something happens now, on this thread. */
static inline void
rb_vm_trace_marker_instant(const rb_vm_trace_marker *name)
{
    if (RB_VM_TRACE_MARKERS_ON) rb_vm_trace_marker_instant_slow(name);
}

/* A span begins. Give the result to rb_vm_trace_marker_end. */
static inline rb_vm_trace_span
rb_vm_trace_marker_begin(const rb_vm_trace_marker *name)
{
    return RB_VM_TRACE_MARKERS_ON ? rb_vm_trace_marker_begin_slow(name) : 0;
}

/* It ends; nothing is written when the trace in which it began has ended. */
static inline void
rb_vm_trace_marker_end(const rb_vm_trace_marker *name, rb_vm_trace_span span)
{
    if (span) rb_vm_trace_marker_end_slow(name, span);
}

/* From now on a quantity has this value: a counter track of the process. */
static inline void
rb_vm_trace_marker_counter(const rb_vm_trace_marker *name, int64_t value)
{
    if (RB_VM_TRACE_MARKERS_ON) rb_vm_trace_marker_counter_slow(name, value);
}

#if defined(__GNUC__)
# pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* RUBY_VM_TRACE_PUBLIC_H */
