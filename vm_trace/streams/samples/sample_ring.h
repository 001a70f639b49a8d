#ifndef RUBY_VM_TRACE_STREAMS_SAMPLES_SAMPLE_RING_H
#define RUBY_VM_TRACE_STREAMS_SAMPLES_SAMPLE_RING_H 1
/*
 * Stacks that a handler of signals has copied and that are not named yet. A thread that has the GVL has
 * one; a ractor lends it. The handler adds stacks; the thread itself takes all of them before anything
 * could free or move the methods and ISEQs in them: a collection, or another thread that runs.
 *
 * Of each stack there are only the frames that are not those of the one before.
 */

#include "vm_trace/host/host.h"
#include "vm_trace/capture/stack_table.h"

struct vm_trace_sampled_stack {
    uint64_t ns;
    uint64_t weight_ns;        /* not 0 */
    uint32_t ticks;
    uint16_t state;            /* the caller's */
    uint16_t count;            /* frames of the stack */
    uint32_t from;             /* the frames from here on follow; outer ones are those of the stack before */
    uint32_t bytes;            /* of all this */
};

struct vm_trace_sample_ring;

/* Rings that are lent. One owner at a time: GVL of the ractor, or the world is stopped. */
struct vm_trace_sample_rings {
    struct vm_trace_sample_ring *all, *free;
};

/* NULL: no memory. */
struct vm_trace_sample_ring *rb_vm_trace_sample_ring_lend(struct vm_trace_sample_rings *rings);

/* It is empty. */
void rb_vm_trace_sample_ring_return(struct vm_trace_sample_rings *rings, struct vm_trace_sample_ring *ring);
void rb_vm_trace_sample_rings_free(struct vm_trace_sample_rings *rings);

/*
 * Walk the stack of `ec` for the functions below. False: there is no room for another stack, the ring is
 * being emptied or has stacks of another one, as while fibers are switched, or a continuation exchanges
 * the frames. Async-signal-safe, as the next ones.
 */
bool rb_vm_trace_sample_ring_walk(struct vm_trace_sample_ring *ring, struct rb_execution_context_struct *ec);

/* Add the stack of that walk, with all but count, from and bytes. May be called again for the same walk. */
void rb_vm_trace_sample_ring_add(struct vm_trace_sample_ring *ring, const struct vm_trace_sampled_stack *stack);

/*
 * Whether it should be emptied soon: it is more than half full, or its first stack is as old as 100 ms, or
 * 10 s where that is not `cheap`: compiled code goes on interpreted after an interrupt.
 */
bool rb_vm_trace_sample_ring_due_p(const struct vm_trace_sample_ring *ring, uint64_t now_ns, bool cheap);

/* What all its stacks are of; NULL: it has none. */
struct rb_execution_context_struct *rb_vm_trace_sample_ring_owner(const struct vm_trace_sample_ring *ring);

/*
 * Empty it: call function(stack, frames, data) for each stack, in order, with all its frames, outermost
 * first; those before `from` are those of the stack before. It may not be called again meanwhile; the
 * handler finds no room until then.
 */
void rb_vm_trace_sample_ring_take(struct vm_trace_sample_ring *ring,
                                  void (*function)(const struct vm_trace_sampled_stack *stack,
                                                   const struct vm_trace_sampled_frame *frames, void *data),
                                  void *data);

#endif /* RUBY_VM_TRACE_STREAMS_SAMPLES_SAMPLE_RING_H */
