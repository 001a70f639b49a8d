#ifndef RUBY_VM_TRACE_STREAMS_VERSIONS_H
#define RUBY_VM_TRACE_STREAMS_VERSIONS_H 1
/*
 * Lives of compiled ISEQs: what all events of one ISEQ have in common, so that they can be joined.
 *
 * An ISEQ is known from its first compilation until it is freed. It has one label for all that time, and while it has been
 * invalidated and not compiled again, a number: that of the `reprofile` span and of the flow that joins the exit, the
 * invalidation and the compilation.
 *
 * Beside it the counts that are written as counters.
 */

#include "vm_trace/capture/ractor_state.h"

struct vm_trace_life {
    struct vm_trace_life *next;    /* in its bucket */
    uintptr_t unit;                /* identity of the ISEQ: its first pc */
    struct vm_trace_string *label;
    uint64_t reprofile;            /* number of the open span, or 0 */
    bool flow;                     /* has a flow of that number as well */
};

/*
 * The life of an ISEQ, made when it has none (its label is then that of the innermost frame, if that runs it). NULL when there
 * is no memory. trace.lock held, here and below.
 */
struct vm_trace_life *rb_vm_trace_life_of(const struct rb_iseq_struct *iseq);

/* Its label, when it has a life; the caller owns a reference. Else NULL. */
struct vm_trace_string *rb_vm_trace_life_label(uintptr_t unit);

/* A number that no other span or flow of this process has, nor one of another process beside it. */
uint64_t rb_vm_trace_life_number(void);

/* The ISEQ is freed: ends what is open in `local`, when that is not NULL. Takes trace.lock. */
void rb_vm_trace_life_end(uintptr_t unit, struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* In the child of a fork: what is open is the parent's. Takes trace.lock's place: it must be held. */
void rb_vm_trace_lives_after_fork(void);

/* Free everything. */
void rb_vm_trace_lives_free(void);

/* Live ISEQs that are known: for tests and bounds. */
size_t rb_vm_trace_life_count(void);

/* --- counters ------------------------------------------------------------------------------- */

/* Count a compilation, an invalidation. */
void rb_vm_trace_count_compiled(uint64_t code_bytes, bool version);
void rb_vm_trace_count_invalidated(void);

/* Write them, and the exits a second of this ractor when their last sample is some time ago. Takes trace.lock. */
void rb_vm_trace_counters_write(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* A chunk was begun in `local`: a sample of its exits a second goes there. Takes no lock. */
void rb_vm_trace_counters_chunk(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

#endif /* RUBY_VM_TRACE_STREAMS_VERSIONS_H */
