/*
 * The peer of the stream `threads`: an extension that subscribes to CRuby's public thread events and
 * writes each one to a file as a line of JSON, as gvl-tracing does.
 */
#include <ruby.h>
#include <ruby/thread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static FILE *file;
static rb_internal_thread_event_hook_t *hook;

static void
note(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *arg)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    const char *name = event == RUBY_INTERNAL_THREAD_EVENT_READY ? "wants_gvl"
                       : event == RUBY_INTERNAL_THREAD_EVENT_RESUMED ? "running" : "sleeping";
    fprintf(file, "{\"ph\":\"i\",\"pid\":%ld,\"tid\":%ld,\"ts\":%lf,\"name\":\"%s\"},\n", (long)getpid(),
            (long)syscall(SYS_gettid), ts.tv_sec * 1e6 + ts.tv_nsec / 1e3, name);
}

static VALUE
start(VALUE self, VALUE path)
{
    file = fopen(StringValueCStr(path), "w");
    if (!file) rb_sys_fail_str(path);
    hook = rb_internal_thread_add_event_hook(note, RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                                             RUBY_INTERNAL_THREAD_EVENT_SUSPENDED, NULL);
    return Qnil;
}

static VALUE
stop(VALUE self)
{
    rb_internal_thread_remove_event_hook(hook);
    fclose(file);
    return Qnil;
}

void
Init_gvl_json(void)
{
    VALUE m = rb_define_module("GVLJSON");
    rb_define_singleton_method(m, "start", start, 1);
    rb_define_singleton_method(m, "stop", stop, 0);
}
