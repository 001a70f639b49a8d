#ifndef RUBY_VM_TRACE_BASE_STRINGS_H
#define RUBY_VM_TRACE_BASE_STRINGS_H 1
/*
 * Texts that events name by index.
 *
 * Reasons and names of instructions are interned here. All ractors share them, and references are
 * counted, because a reason may hold an address and be made again and again. Known strings have
 * their own table (known_strings.h), labels of frames have theirs (stack_table.h). The writer knows
 * which index a text has in its chunk (writer.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The index of a text in the current chunk of one writer: valid while `chunk` is the writer's. */
struct vm_trace_slot {
    uint32_t chunk;
    uint32_t index;
};

/* An interned text. */
struct vm_trace_string {
    struct vm_trace_string *next; /* in its bucket */
    uint64_t serial;              /* never used twice: distinguishes texts with the same id */
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

/* The same, but the text is never freed, however often it is interned. */
struct vm_trace_string *rb_vm_trace_string_permanent(const char *text, size_t bytes);

/* One reference more, to a text that the caller knows to have one. Any thread. */
void rb_vm_trace_string_retain(struct vm_trace_string *string);

/* Give one reference back; takes NULL. Any thread. */
void rb_vm_trace_string_release(struct vm_trace_string *string);

/* A hash of a short text (FNV-1a). */
uint32_t rb_vm_trace_text_hash(const char *text, size_t bytes);

/* Number of interned texts: for tests and for bounds. */
size_t rb_vm_trace_string_count(void);

/* The most of a text that fits into `room` bytes without half of a UTF-8 character at its end. */
size_t rb_vm_trace_text_fit(const char *text, size_t bytes, size_t room);

/*
 * Cut a text of `bytes` to `room` bytes (48 at least), ending it with "...[N bytes cut]". `text` is
 * a buffer of the caller's that has that room, if not all of the text. Returns the new length.
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
char *rb_vm_trace_text_whole(vm_trace_text_maker *make, const void *what, char *buffer, size_t capacity,
                             size_t *bytes_out);

/* Around fork(2): the child must find the table whole and unlocked. */
void rb_vm_trace_strings_before_fork(void);
void rb_vm_trace_strings_after_fork(void);

#endif /* RUBY_VM_TRACE_BASE_STRINGS_H */
