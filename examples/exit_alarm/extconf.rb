require "mkmf"
have_header("ruby/debug.h")
abort "this Ruby tells no one of JIT exits" unless have_func("rb_tracearg_jit_exit_reason", "ruby/debug.h")
create_makefile("exit_alarm")
