require "mkmf"
abort "this Ruby has no tracer" unless have_header("ruby/vm_trace.h", "ruby/ruby.h") && have_func("rb_vm_trace_gc_enter")
create_makefile("collections")
