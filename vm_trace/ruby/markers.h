#ifndef RUBY_VM_TRACE_RUBY_MARKERS_H
#define RUBY_VM_TRACE_RUBY_MARKERS_H 1
/*
 * The methods of RubyVM::Trace for markers.
 */
#include "ruby/ruby.h"

/* Called once, while the VM boots. */
void rb_vm_trace_define_markers(VALUE mTrace);

#endif /* RUBY_VM_TRACE_RUBY_MARKERS_H */
