#ifndef RUBY_VM_TRACE_SESSION_VM_OPTIONS_H
#define RUBY_VM_TRACE_SESSION_VM_OPTIONS_H 1
/* Options for the whole VM. Those of the command line: rb_vm_trace_parse_vm_option (vm_trace.h). */

/*
 * Take the options in the environment variable RUBY_VM_TRACE: --vm-trace=LIST and --vm-trace-..., with
 * spaces between them (a backslash before a space makes it part of a path). Only the first call does
 * something: it comes before any option is parsed, so options of the command line override these.
 * Unlike RUBYOPT, the variable does no harm to a Ruby without this module. What is wrong in it is
 * reported on stderr and ignored. GVL held, before any other thread.
 */
void rb_vm_trace_read_environment(void);

#endif /* RUBY_VM_TRACE_SESSION_VM_OPTIONS_H */
