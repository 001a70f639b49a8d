/* Subscribes to the exits of compiled code, and does nothing with them: what a hook costs at the least. */
#include <ruby/ruby.h>
#include <ruby/debug.h>

static void
exited(VALUE tracepoint, void *unused)
{
}

void
Init_empty_hook(void)
{
    VALUE trace_point = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_JIT_EXIT | RUBY_INTERNAL_EVENT_JIT_RECOMPILE_EXIT, exited, NULL);
    rb_gc_register_mark_object(trace_point);
    rb_tracepoint_enable(trace_point);
}
