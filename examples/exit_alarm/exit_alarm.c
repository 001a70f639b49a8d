/*
 * Warns once about each line whose compiled code exits more than EXIT_ALARM (1,000) times a second:
 *
 *   ruby extconf.rb && make
 *   EXIT_ALARM=500 ruby --zjit -r./exit_alarm app.rb
 */
#include <ruby/ruby.h>
#include <ruby/debug.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* By hash of path and line. Lines that share a slot share its count and may warn early. No lock: ractors only add. */
enum { SLOTS = 4096 };
static struct slot {
    atomic_ulong second; /* the one that `count` is of */
    atomic_ulong count;
    atomic_bool warned;
} slots[SLOTS];
static unsigned long limit = 1000;

static void
exited(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass)
{
    rb_trace_arg_t *exit = rb_tracearg_from_tracepoint(Qnil);
    VALUE path = rb_tracearg_path(exit), line = rb_tracearg_lineno(exit);
    struct slot *slot = &slots[(rb_str_hash(path) + FIX2ULONG(line)) % SLOTS];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (atomic_exchange(&slot->second, (unsigned long)now.tv_sec) != (unsigned long)now.tv_sec) atomic_store(&slot->count, 0);
    if (atomic_fetch_add(&slot->count, 1) < limit || atomic_exchange(&slot->warned, true)) return;
    rb_warn("%"PRIsVALUE":%"PRIsVALUE": more than %lu JIT exits a second: %"PRIsVALUE" at %"PRIsVALUE, path, line, limit,
            rb_tracearg_jit_exit_reason(exit), rb_tracearg_jit_exit_insn(exit));
}

void
Init_exit_alarm(void)
{
    const char *wanted = getenv("EXIT_ALARM");
    if (wanted && atol(wanted) > 0) limit = (unsigned long)atol(wanted);
    rb_add_event_hook(exited, RUBY_INTERNAL_EVENT_JIT_EXIT | RUBY_INTERNAL_EVENT_JIT_RECOMPILE_EXIT, Qnil);
}
