#ifndef RUBY_VM_TRACE_SESSION_FLAGS_H
#define RUBY_VM_TRACE_SESSION_FLAGS_H 1
/*
 * The table of trace flags: what follows "--zjit-trace-", "--yjit-trace-" and "--vm-trace-". Those
 * of JITs are parsed in jit_flags.c, those of the VM in vm_options.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rb_vm_trace_jit;

/* What the flags given so far ask for. Those that options.c keeps are in rb_vm_trace_session. */
extern struct vm_trace_flags {
    const struct rb_vm_trace_jit *jit;
    bool exits, fallbacks, compiles, invalidations;
    bool how, later;             /* one says how to trace; one leaves the start to RubyVM::Trace.start */
    uint64_t exit_rate, fallback_rate;
    char *counters;
    char *code_text;             /* of compilations: "hir" or "hir,all"; NULL: none */
} rb_vm_trace_flags;

/*
 * A flag either sets a variable and takes no value, or has a function that parses its value. A flag that
 * says only how to trace implies exits.
 */
struct vm_trace_flag {
    const char *name, *value, *help;
    bool (*parse)(const char *option, const char *value);
    bool *on;
    bool how;                    /* it says how to trace, not what */
    const char *without_text;    /* help for a JIT that has no text of its code: the flag takes no value then */
};

/* In the order of --help. NULL: there are no more. */
const struct vm_trace_flag *rb_vm_trace_flag_at(size_t index);

/*
 * The flag of that name, if --vm-trace- takes it, too: it says how to trace, not what. Else NULL.
 */
const struct vm_trace_flag *rb_vm_trace_common_flag(const char *name);

/* "methods, -file, ...": the names of these, each but the first with a dash before it. */
void rb_vm_trace_list_common_flags(char *text_out, size_t bytes);

/* Take a flag's value. False: a line on stderr says what `option`, as the user wrote it, takes. */
bool rb_vm_trace_parse_flag(const struct vm_trace_flag *flag, const char *option, const char *value);

#endif /* RUBY_VM_TRACE_SESSION_FLAGS_H */
