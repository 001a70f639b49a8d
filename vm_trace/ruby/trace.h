#ifndef RUBY_VM_TRACE_RUBY_TRACE_H
#define RUBY_VM_TRACE_RUBY_TRACE_H 1
/*
 * The methods of RubyVM::Trace, for the control socket. All raise.
 */
#include "ruby/ruby.h"

VALUE rb_vm_trace_control_start(VALUE options); /* a Hash, or nil. The path */
/*
 * What RubyVM::Trace.stop returns. Qundef: a save is under way, and no new one begins: wait for it
 * without the GVL, and call again.
 */
VALUE rb_vm_trace_control_try_stop(void);
VALUE rb_vm_trace_control_status(void);

/*
 * Serve other processes if the environment says so, until the last at_exit handler has run. Called
 * once, while the VM boots; a forked child goes on with a socket of its own.
 */
void rb_vm_trace_remote_init(void);

#endif /* RUBY_VM_TRACE_RUBY_TRACE_H */
