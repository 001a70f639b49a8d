/*
 * What the GC calls, without a GC, whose own time varies by more than what is to be measured; and
 * a peer: hooks of Ruby's internal events that note times.
 */
#include <ruby/ruby.h>
#include <ruby/debug.h>
#include <stdbool.h>
#include <time.h>

/* As vm_trace/vm_trace.h has them, which is not installed. */
extern int rb_vm_trace_gc_on;
void rb_vm_trace_gc_enter(size_t malloc_bytes);
void rb_vm_trace_gc_start(size_t count, bool major, unsigned int reason);
void rb_vm_trace_gc_begin(int phase, size_t freed_slots);
void rb_vm_trace_gc_end(int phase, size_t freed_slots);
void rb_vm_trace_gc_exit(size_t heap_bytes, size_t live_slots, bool ractor_heap);
enum { MARK, SWEEP, NEWOBJ = 0x100 };

/* Between two calls anything may happen: the compiler must look again whether something is recorded. */
#define OTHER_WORK() __asm__ volatile("" ::: "memory")
#define HOOK(call) \
    do { \
        if (__builtin_expect(rb_vm_trace_gc_on, 0)) call; \
        OTHER_WORK(); \
    } while (0)

/* A pause of three durations, mark and sweep inside, and its counters. */
static VALUE
pauses(VALUE self, VALUE count)
{
    for (long i = NUM2LONG(count); i > 0; i--) {
        HOOK(rb_vm_trace_gc_enter(100));
        HOOK(rb_vm_trace_gc_start((size_t)i, false, NEWOBJ));
        HOOK(rb_vm_trace_gc_begin(MARK, 0));
        HOOK(rb_vm_trace_gc_end(MARK, 0));
        HOOK(rb_vm_trace_gc_begin(SWEEP, 10));
        HOOK(rb_vm_trace_gc_end(SWEEP, 15));
        HOOK(rb_vm_trace_gc_exit(1 << 20, 1000, false));
    }
    return Qnil;
}

/* The newest of them stay. */
static void
note(VALUE event, void *data)
{
    enum { RECORDS = (1 << 20) / 16 };
    static struct record { uint64_t ns; VALUE event; } records[RECORDS];
    static size_t at;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    records[at] = (struct record){ (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, event };
    at = at + 1 < RECORDS ? at + 1 : 0;
}

/* The five internal events of such a pause. */
static VALUE
peer(VALUE self, VALUE count)
{
    for (long i = NUM2LONG(count); i > 0; i--) {
        for (VALUE event = 0; event < 5; event++) {
            note(event, NULL);
            OTHER_WORK();
        }
    }
    return Qnil;
}

static void
note_event(VALUE tracepoint, void *data)
{
    note(rb_tracearg_event_flag(rb_tracearg_from_tracepoint(tracepoint)), data);
}

#define EVENTS \
    (RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT | RUBY_INTERNAL_EVENT_GC_START | \
     RUBY_INTERNAL_EVENT_GC_END_MARK | RUBY_INTERNAL_EVENT_GC_END_SWEEP)

static VALUE
peer_on(VALUE self)
{
    static VALUE tracepoint = Qfalse;
    if (!tracepoint) {
        tracepoint = rb_tracepoint_new(Qnil, EVENTS, note_event, NULL);
        rb_gc_register_mark_object(tracepoint);
    }
    rb_tracepoint_enable(tracepoint);
    return tracepoint;
}

static VALUE
peer_off(VALUE self, VALUE tracepoint)
{
    rb_tracepoint_disable(tracepoint);
    return Qnil;
}

void
Init_collections(void)
{
    VALUE collections = rb_define_module("Collections");
    rb_define_singleton_method(collections, "pauses", pauses, 1);
    rb_define_singleton_method(collections, "peer", peer, 1);
    rb_define_singleton_method(collections, "peer_on", peer_on, 0);
    rb_define_singleton_method(collections, "peer_off", peer_off, 1);
}
