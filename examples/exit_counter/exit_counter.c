/*
 * Counts the exits of compiled code by method and reason, and prints them when the program ends:
 *
 *   ruby extconf.rb && make
 *   ruby --zjit -r./exit_counter app.rb
 *
 * ExitCounter.counts returns the counts so far, ExitCounter.stop stops counting.
 */
#include <ruby/ruby.h>
#include <ruby/debug.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/*
 * Counters by the hash of their names; none is ever freed. No lock: the hook runs in all ractors, and a GC in the
 * ractor that holds a lock would wait for ever for those that wait for the lock.
 */
enum { BUCKETS = 4096 };
struct counter {
    struct counter *next;
    atomic_ulong count;
    size_t bytes;
    char name[]; /* "Owner#method reason" */
};
static struct counter *_Atomic buckets[BUCKETS];
static VALUE trace_point;

static void
add_one(struct counter *_Atomic *bucket, const char *name, size_t bytes)
{
    struct counter *counter = atomic_load(bucket);
    while (counter && (counter->bytes != bytes || memcmp(counter->name, name, bytes) != 0)) counter = counter->next;
    if (!counter) { /* two ractors may both find none: then the name has two counters */
        if (!(counter = malloc(sizeof(*counter) + bytes))) rb_memerror();
        atomic_init(&counter->count, 0);
        counter->bytes = bytes;
        memcpy(counter->name, name, bytes);
        counter->next = atomic_load(bucket);
        while (!atomic_compare_exchange_weak(bucket, &counter->next, counter)) continue;
    }
    atomic_fetch_add(&counter->count, 1);
}

static void
exited(VALUE tracepoint, void *unused)
{
    rb_trace_arg_t *exit = rb_tracearg_from_tracepoint(tracepoint);
    VALUE method = rb_tracearg_method_id(exit), owner = rb_tracearg_defined_class(exit);
    VALUE name = NIL_P(method) ? rb_sprintf("%"PRIsVALUE":%"PRIsVALUE, rb_tracearg_path(exit), rb_tracearg_lineno(exit))
                               : rb_sprintf("%"PRIsVALUE"#%"PRIsVALUE, owner, method);
    rb_str_catf(name, " %"PRIsVALUE, rb_tracearg_jit_exit_reason(exit));
    add_one(&buckets[rb_str_hash(name) % BUCKETS], RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    RB_GC_GUARD(name);
}

static VALUE
counts_so_far(VALUE self)
{
    VALUE hash = rb_hash_new();
    for (int i = 0; i < BUCKETS; i++) {
        for (struct counter *counter = atomic_load(&buckets[i]); counter; counter = counter->next) {
            VALUE name = rb_utf8_str_new(counter->name, (long)counter->bytes), before = rb_hash_lookup2(hash, name, INT2FIX(0));
            rb_hash_aset(hash, name, ULONG2NUM(NUM2ULONG(before) + atomic_load(&counter->count)));
        }
    }
    return hash;
}

/* rb_tracepoint_disable does not return a Ruby object: a method that returns its value crashes the VM. */
static VALUE
stop(VALUE self)
{
    rb_tracepoint_disable(trace_point);
    return Qnil;
}

static void
print_counts(VALUE self)
{
    stop(self);
    rb_eval_string("ExitCounter.counts.sort_by { |name, count| [-count, name] }.each { |name, count| warn \"#{count} #{name}\" }");
}

void
Init_exit_counter(void)
{
    VALUE module = rb_define_module("ExitCounter");
    rb_define_singleton_method(module, "counts", counts_so_far, 0);
    rb_define_singleton_method(module, "stop", stop, 0);
    trace_point = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_JIT_EXIT | RUBY_INTERNAL_EVENT_JIT_RECOMPILE_EXIT, exited, NULL);
    rb_gc_register_mark_object(trace_point);
    rb_tracepoint_enable(trace_point);
    rb_set_end_proc(print_counts, module);
}
