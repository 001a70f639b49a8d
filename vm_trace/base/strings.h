#ifndef RUBY_VM_TRACE_BASE_STRINGS_H
#define RUBY_VM_TRACE_BASE_STRINGS_H 1
/*
 * Texts that events name by index.
 *
 * Words of the event contract (categories, argument names, ...) have the same index in every
 * chunk: enum vm_trace_word. Reasons and names of instructions are interned here, shared by
 * all ractors and counted, for a reason may hold an address and be made again and again.
 * Labels of frames belong to stack_table.h. What index a text has in a chunk is the writer's
 * business (writer.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    X(W_SNAPSHOT, "snapshot") X(W_SECONDS, "seconds") X(W_CALLEE, "callee")

enum vm_trace_word {
    W_NONE,
#define X(name, text) name,
    VM_TRACE_WORDS(X)
#undef X
    W_COUNT
};

/* Text of a word; static. */
const char *rb_vm_trace_word_text(enum vm_trace_word word, size_t *bytes_out);

/* Where a text stands in the current chunk of one writer: valid while chunk is the writer's. */
struct vm_trace_slot {
    uint32_t chunk;
    uint32_t index;
};

/* An interned text. */
struct vm_trace_string {
    struct vm_trace_string *next; /* in its bucket */
    uint64_t serial;              /* never used twice: tells two texts with the same id apart */
    uint32_t id;                  /* small and dense: an index into a writer's slots */
    uint32_t refs;
    uint32_t hash;
    uint32_t bytes;
    bool permanent;               /* one of the references is never given back */
    char text[];
};

/*
 * Find or make. The caller owns one reference. NULL when there is no memory. Any thread.
 * Texts are made clean (rb_vm_trace_text_clean).
 */
struct vm_trace_string *rb_vm_trace_string_intern(const char *text, size_t bytes);

/* The same, and it stays for ever, however often it is asked for. */
struct vm_trace_string *rb_vm_trace_string_permanent(const char *text, size_t bytes);

/* One reference more, to a text that the caller knows to have one. Any thread. */
void rb_vm_trace_string_retain(struct vm_trace_string *string);

/* Give one reference back; takes NULL. Any thread. */
void rb_vm_trace_string_release(struct vm_trace_string *string);

/* Number of interned texts: for tests and for bounds. */
size_t rb_vm_trace_string_count(void);

/* The most of a text that fits into `room` bytes without half of a UTF-8 character at its end. */
size_t rb_vm_trace_text_fit(const char *text, size_t bytes, size_t room);

/*
 * Cut a text of `bytes` to `room` bytes (48 at least), ending it with "...[N bytes cut]". `text` is a
 * buffer of the caller's that has that room, if not all of the text. Returns the new length.
 */
size_t rb_vm_trace_text_cut(char *text, size_t bytes, size_t room);

/* The same to FXT's longest. */
size_t rb_vm_trace_string_cut(char *text, size_t bytes);

/*
 * A text as a record can hold it: UTF-8, with \xHH for each byte that is none, and cut to FXT's
 * longest. That is `text` itself when it is so already; else a copy, which is also put into
 * *copy_out for the caller to free (or what is good of the text, when there is no memory).
 */
const char *rb_vm_trace_text_clean(const char *text, size_t *bytes, char **copy_out);

/*
 * The whole of a text that `make` writes, of `what`, as rb_vm_trace_host_label does: into at most
 * `capacity` bytes, returning its full length. In `buffer` when it fits (or when there is no
 * memory: cut), else in memory that the caller frees; clean.
 */
typedef size_t vm_trace_text_maker(const void *what, char *buffer, size_t capacity);
char *rb_vm_trace_text_whole(vm_trace_text_maker *make, const void *what, char *buffer, size_t capacity, size_t *bytes_out);

/* Around fork(2): the child must find the table whole and unlocked. */
void rb_vm_trace_strings_before_fork(void);
void rb_vm_trace_strings_after_fork(void);

#endif /* RUBY_VM_TRACE_BASE_STRINGS_H */
