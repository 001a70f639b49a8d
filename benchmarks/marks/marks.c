/* Loops of markers, and of a peer: the least that a program could record by itself. */
#include <ruby/ruby.h>
#include <ruby/vm_trace.h>
#include <stdlib.h>
#include <time.h>

static const rb_vm_trace_marker *name;

/* Between two markers anything may happen: the compiler must look again whether they are recorded. */
#define OTHER_WORK() __asm__ volatile("" ::: "memory")

static VALUE
instants(VALUE self, VALUE count)
{
    for (long i = NUM2LONG(count); i > 0; i--) {
        rb_vm_trace_marker_instant(name);
        OTHER_WORK();
    }
    return Qnil;
}

static VALUE
spans(VALUE self, VALUE count)
{
    for (long i = NUM2LONG(count); i > 0; i--) {
        rb_vm_trace_span span = rb_vm_trace_marker_begin(name);
        OTHER_WORK();
        rb_vm_trace_marker_end(name, span);
    }
    return Qnil;
}

/* A time and a name in memory of its own, of which the newest megabyte stays: no format, no thread, no file. */
static VALUE
peer(VALUE self, VALUE count)
{
    enum { RECORDS = (1 << 20) / 24 };
    static struct record { uint64_t ns; const void *name; uint64_t thread; } records[RECORDS];
    static size_t at;
    for (long i = NUM2LONG(count); i > 0; i--) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        records[at] = (struct record){ (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, name, 1 };
        at = at + 1 < RECORDS ? at + 1 : 0;
        OTHER_WORK();
    }
    return Qnil;
}

void
Init_marks(void)
{
    name = rb_vm_trace_marker_name("tick");
    VALUE marks = rb_define_module("Marks");
    rb_define_singleton_method(marks, "instants", instants, 1);
    rb_define_singleton_method(marks, "spans", spans, 1);
    rb_define_singleton_method(marks, "peer", peer, 1);
}
