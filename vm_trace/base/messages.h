#ifndef RUBY_VM_TRACE_BASE_MESSAGES_H
#define RUBY_VM_TRACE_BASE_MESSAGES_H 1
/*
 * Lines on stderr: each in one write, with the JIT's name before it. Any thread.
 */

#ifdef __GNUC__
# define VM_TRACE_PRINTF __attribute__((format(printf, 1, 2)))
#else
# define VM_TRACE_PRINTF
#endif

/*
 * Remember where stderr leads. A program that has led it elsewhere afterwards has made the place a part of its own output, and
 * that is not ours to write to.
 */
void rb_vm_trace_say_begin(void);

/* Only where stderr is still the one of rb_vm_trace_say_begin. */
void rb_vm_trace_say(const char *format, ...) VM_TRACE_PRINTF;

/* Wherever stderr leads: that there is no trace. */
void rb_vm_trace_warn(const char *format, ...) VM_TRACE_PRINTF;

#endif /* RUBY_VM_TRACE_BASE_MESSAGES_H */
