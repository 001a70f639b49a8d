/*
 * Counts the exits of compiled code by method and reason, and prints them when the program ends:
 *
 *   ruby extconf.rb && make
 *   ruby --zjit -r./exit_counter app.rb
 *
 * ExitCounter.counts is what was counted so far, ExitCounter.stop ends it.
 */
#include <ruby/ruby.h>
#include <ruby/debug.h>
#include <ruby/st.h>
#include <ruby/thread_native.h>
#include <ruby/util.h>

static st_table *counts; /* "Owner#method reason" => count */
static rb_nativethread_lock_t lock; /* hooks run in all ractors */
static VALUE trace_point;

/* A new key is copied: the string is one of Ruby's. */
static int
add_one(st_data_t *key, st_data_t *count, st_data_t unused, int existing)
{
    if (!existing) *key = (st_data_t)ruby_strdup((const char *)*key);
    *count = existing ? *count + 1 : 1;
    return ST_CONTINUE;
}

static void
exited(VALUE tracepoint, void *unused)
{
    rb_trace_arg_t *exit = rb_tracearg_from_tracepoint(tracepoint);
    VALUE method = rb_tracearg_method_id(exit), owner = rb_tracearg_defined_class(exit);
    VALUE name = NIL_P(method) ? rb_sprintf("%"PRIsVALUE":%"PRIsVALUE, rb_tracearg_path(exit), rb_tracearg_lineno(exit))
                               : rb_sprintf("%"PRIsVALUE"#%"PRIsVALUE, owner, method);
    rb_str_catf(name, " %"PRIsVALUE, rb_tracearg_jit_exit_reason(exit));
    const char *key = StringValueCStr(name);
    rb_native_mutex_lock(&lock);
    st_update(counts, (st_data_t)key, add_one, 0);
    rb_native_mutex_unlock(&lock);
    RB_GC_GUARD(name);
}

struct row {
    const char *key;
    st_data_t count;
};

static int
add_row(st_data_t key, st_data_t count, st_data_t to)
{
    *(*(struct row **)to)++ = (struct row){(const char *)key, count};
    return ST_CONTINUE;
}

static VALUE
counts_so_far(VALUE self)
{
    VALUE buffer, hash = rb_hash_new();
    rb_native_mutex_lock(&lock);
    size_t size = counts->num_entries;
    rb_native_mutex_unlock(&lock);
    struct row *rows = ALLOCV_N(struct row, buffer, size + 64), *end = rows;
    rb_native_mutex_lock(&lock);
    if (counts->num_entries <= size + 64) st_foreach(counts, add_row, (st_data_t)&end);
    rb_native_mutex_unlock(&lock);
    for (struct row *row = rows; row < end; row++) rb_hash_aset(hash, rb_utf8_str_new_cstr(row->key), ULONG2NUM(row->count));
    ALLOCV_END(buffer);
    return hash;
}

static VALUE
stop(VALUE self)
{
    return rb_tracepoint_disable(trace_point);
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
    counts = st_init_strtable();
    rb_native_mutex_initialize(&lock);
    trace_point = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_JIT_EXIT | RUBY_INTERNAL_EVENT_JIT_RECOMPILE_EXIT, exited, NULL);
    rb_gc_register_mark_object(trace_point);
    rb_tracepoint_enable(trace_point);
    rb_set_end_proc(print_counts, module);
}
