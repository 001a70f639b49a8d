require "mkmf"
abort "this Ruby has no markers" unless have_header("ruby/vm_trace.h", "ruby/ruby.h")
create_makefile("marks")
