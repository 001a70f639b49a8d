#ifndef RUBY_VM_TRACE_CONTROL_H
#define RUBY_VM_TRACE_CONTROL_H 1
/*
 * What RubyVM::Trace does, for others that are asked to do it (remote.c). All raise.
 */
#include "ruby/ruby.h"

VALUE rb_vm_trace_control_start(VALUE options); /* a Hash, or nil. The path */
VALUE rb_vm_trace_control_stop(void);
VALUE rb_vm_trace_control_status(void);

/* Listen to other processes if the environment says so. Once, at the start. */
void rb_vm_trace_remote_init(void);

#endif /* RUBY_VM_TRACE_CONTROL_H */
