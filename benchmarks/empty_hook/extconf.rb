require "mkmf"
abort "this Ruby tells no one of JIT exits" unless have_macro("RUBY_INTERNAL_EVENT_JIT_EXIT", "ruby/debug.h")
create_makefile("empty_hook")
