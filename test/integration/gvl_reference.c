/* What CRuby's public thread events report, for comparison with the stream `threads`. */
#include <ruby.h>
#include <ruby/thread.h>
#include <stdatomic.h>
#include <time.h>

enum { MOST = 1 << 20 };
static struct { rb_event_flag_t event; VALUE thread; long long ns; } *seen;
static _Atomic unsigned count;
static rb_internal_thread_event_hook_t *hook;

/* Without the GVL at times: nothing but memory. */
static void
note(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *arg)
{
    unsigned at = atomic_fetch_add(&count, 1);
    struct timespec ts;
    if (at >= MOST) return;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    seen[at].event = event;
    seen[at].thread = data->thread;
    seen[at].ns = ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static VALUE
start(VALUE self)
{
    seen = calloc(MOST, sizeof(*seen));
    hook = rb_internal_thread_add_event_hook(note, RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                                             RUBY_INTERNAL_THREAD_EVENT_SUSPENDED, NULL);
    return Qnil;
}

/* [event, address of the thread, ns]: the caller knows the addresses of the threads that it holds. */
static VALUE
stop(VALUE self)
{
    rb_internal_thread_remove_event_hook(hook);
    unsigned end = count < MOST ? count : MOST;
    VALUE all = rb_ary_new();
    for (unsigned i = 0; i < end; i++) {
        const char *name = seen[i].event == RUBY_INTERNAL_THREAD_EVENT_READY ? "ready"
                           : seen[i].event == RUBY_INTERNAL_THREAD_EVENT_RESUMED ? "resumed" : "suspended";
        rb_ary_push(all, rb_ary_new_from_args(3, rb_str_new_cstr(name), ULL2NUM(seen[i].thread), LL2NUM(seen[i].ns)));
    }
    return all;
}

static VALUE
address(VALUE self, VALUE thread)
{
    return ULL2NUM(thread);
}

void
Init_gvl_reference(void)
{
    VALUE m = rb_define_module("GVLReference");
    rb_define_singleton_method(m, "start", start, 0);
    rb_define_singleton_method(m, "stop", stop, 0);
    rb_define_singleton_method(m, "address", address, 1);
}
