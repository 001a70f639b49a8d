#ifndef RUBY_VM_TRACE_STREAMS_CODE_CODE_TEXT_H
#define RUBY_VM_TRACE_STREAMS_CODE_CODE_TEXT_H 1
/*
 * Texts of compiled versions, as the JIT prints its code (--zjit-trace-compiles=hir): what exits of
 * a version are shown in.
 *
 *      rb_vm_trace_code_new -> sites refer to it -> the first of them that is written has it written before
 *
 * So a trace has the texts of versions that exited, and of those compiled after them; with `hir,all`
 * a text is written when it is made, too. Texts are kept as long as a site or the JIT refers to them,
 * in at most VM_TRACE_CODE_TEXT_BYTES: of later ones only the size is known, which the trace says.
 */

#include "vm_trace/capture/event.h"

#define VM_TRACE_CODE_TEXT_BYTES ((size_t)64 << 20)

/* The same, for tests. */
extern size_t rb_vm_trace_code_text_most_bytes;

/* Read "hir" or "hir,all", of --zjit-trace-compiles. False: it is neither. */
bool rb_vm_trace_code_text_parse(const char *value);

/* Keep texts from now on, as this value says; NULL: none. Called before anything is compiled. */
void rb_vm_trace_code_text_keep(const char *value);

/* Make one. Takes over the reference to `iseq`, its label. NULL: no memory. Any thread. */
struct rb_vm_trace_code *rb_vm_trace_code_text_make(struct vm_trace_string *iseq, uint32_t version,
                                                    const char *text, size_t bytes);

/* Whether all are to be written, also those of code that does not exit. */
bool rb_vm_trace_code_text_all_p(void);

/* Its label; the caller owns a reference. */
struct vm_trace_string *rb_vm_trace_code_text_iseq(const struct rb_vm_trace_code *code);

/* One reference more; takes NULL. Any thread. */
void rb_vm_trace_code_text_retain(struct rb_vm_trace_code *code);

/*
 * Write it, unless the file has it: that of the trace, or of the snapshot that is being written.
 * Takes NULL. Of the trace: capture.lock held.
 */
void rb_vm_trace_code_text_write(struct rb_vm_trace_code *code, struct rb_vm_trace_ractor *ractor,
                                 struct rb_execution_context_struct *ec);
void rb_vm_trace_code_text_snapshot(struct rb_vm_trace_code *code, struct rb_vm_trace_ractor *ractor);

/* Another file, or another snapshot, begins, which has none of them. */
void rb_vm_trace_code_text_next_file(void);
void rb_vm_trace_code_text_next_snapshot(void);

/* Bytes that are kept: for tests and bounds. */
size_t rb_vm_trace_code_text_bytes(void);

#endif /* RUBY_VM_TRACE_STREAMS_CODE_CODE_TEXT_H */
