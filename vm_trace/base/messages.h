#ifndef RUBY_VM_TRACE_BASE_MESSAGES_H
#define RUBY_VM_TRACE_BASE_MESSAGES_H 1
/*
 * Lines on stderr: each is one write, with a prefix. Any thread.
 */

#include <stdbool.h>

#ifdef __GNUC__
# define VM_TRACE_PRINTF __attribute__((format(printf, 1, 2)))
#else
# define VM_TRACE_PRINTF
#endif

/* What the session that is on, or began last, says. */
struct vm_trace_messages {
    const char *prefix;  /* static: the JIT's name */
    bool quiet;          /* the program started the trace: only failures of forked children are reported */
    bool terse;          /* only failures and losses are reported (--zjit-trace-quiet) */
};
extern struct vm_trace_messages rb_vm_trace_messages;

/*
 * Remember where stderr leads. A program that redirects it later has made the place a part of its
 * own output, which we do not write to.
 */
void rb_vm_trace_messages_begin(void);

/* Only where stderr still leads to the same place. */
void rb_vm_trace_message(const char *format, ...) VM_TRACE_PRINTF;

/* Wherever stderr leads: for the line that says why there is no trace. */
void rb_vm_trace_warn(const char *format, ...) VM_TRACE_PRINTF;

#endif /* RUBY_VM_TRACE_BASE_MESSAGES_H */
