#ifndef RUBY_VM_TRACE_BASE_KNOWN_STRINGS_H
#define RUBY_VM_TRACE_BASE_KNOWN_STRINGS_H 1
/*
 * Strings that have the same index in every chunk, because each chunk defines them first:
 * categories, names of arguments and events that occur everywhere. A stream whose strings are rare
 * interns them instead (strings.h), which costs nothing in the chunks that lack them.
 */

#include <stddef.h>

/* X(name, text). The order is the index, from 1. */
#define VM_TRACE_WORDS(X) \
    X(W_0, "0") X(W_1, "1") X(W_2, "2") X(W_3, "3") X(W_4, "4") \
    X(W_5, "5") X(W_6, "6") X(W_7, "7") X(W_8, "8") X(W_9, "9") \
    X(W_TAIL, "10+") \
    X(W_INSN, "insn") X(W_VERSION, "version") X(W_WEIGHT, "weight") X(W_OUTCOME, "outcome") \
    X(W_SIDE_EXIT, "side_exit") X(W_RECOMPILE_EXIT, "recompile_exit") X(W_FALLBACK, "fallback") \
    X(W_COMPILE, "compile") X(W_INVALIDATION, "invalidation") X(W_TRACE, "trace") \
    X(W_SETTINGS, "settings") X(W_LOSS, "loss") X(W_SITE, "site") X(W_SUMMARY, "summary") \
    X(W_PROFILING, "profiling") X(W_INVALIDATED, "invalidated") \
    X(W_ALREADY_INVALIDATED, "already_invalidated") X(W_VERSION_LIMIT, "version_limit") \
    X(W_REASON, "reason") X(W_KIND, "kind") X(W_LOCATION, "location") X(W_HITS, "hits") X(W_SAMPLED, "sampled") \
    X(W_ISEQ, "iseq") X(W_CODE_BYTES, "code_bytes") \
    X(W_RUBY, "ruby") X(W_BASE, "base") X(W_JIT, "jit") X(W_FLAGS, "flags") X(W_COMMAND, "command") \
    X(W_PID, "pid") X(W_EXIT_RATE, "exit_rate") X(W_FALLBACK_RATE, "fallback_rate") X(W_COUNTER, "counter") \
    X(W_EXITS, "exits") X(W_FALLBACKS, "fallbacks") X(W_EVENTS, "events") X(W_LOST, "lost") \
    X(W_SITES, "sites") X(W_PROCESS, "process") \
    X(W_MAX_BYTES, "max_bytes") X(W_KEEP, "keep") X(W_THREAD, "thread") \
    X(W_REPROFILE, "reprofile") X(W_RECOMPILATION, "recompilation") X(W_CODE, "code") X(W_BYTES, "bytes") \
    X(W_VERSIONS, "versions") X(W_COMPILED, "compiled") X(W_PER_SECOND, "per_second") \
    X(W_EXIT_BYTES, "exit_bytes") X(W_INLINED, "inlined") X(W_ERROR, "error") X(W_METHODS, "methods") \
    X(W_SNAPSHOT, "snapshot") X(W_SECONDS, "seconds") X(W_THROW, "throw")

enum vm_trace_word {
    W_NONE,
#define X(name, text) name,
    VM_TRACE_WORDS(X)
#undef X
    W_COUNT
};

/* Its text, which is static. */
const char *rb_vm_trace_word_text(enum vm_trace_word word, size_t *bytes_out);

/* The known string with that text, or W_NONE. Looks at all of them. */
enum vm_trace_word rb_vm_trace_word_of(const char *text);

#endif /* RUBY_VM_TRACE_BASE_KNOWN_STRINGS_H */
