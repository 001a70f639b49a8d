#ifndef RUBY_VM_TRACE_STREAMS_ALLOCATIONS_LIVE_SAMPLES_H
#define RUBY_VM_TRACE_STREAMS_ALLOCATIONS_LIVE_SAMPLES_H 1
/*
 * A table of the sampled objects that are alive, by address. Each collection searches it for those
 * that it frees. It has a fixed size, because it is searched in pauses of the GC: 130 KiB when full.
 *
 * No lock: any ractor adds, at places of its own, and only the collection of an objspace changes
 * what is alive in it. So a collection of another objspace may run at the same time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_SAMPLES_MOST 16384

struct vm_trace_live_sample {
    const void *objspace;
    uint64_t sample;    /* its number */
    uint32_t survived;  /* collections */
    uint32_t epoch;     /* of the flight recorder that it was recorded in */
};

/* Allocate the table, once. False: no memory. */
bool rb_vm_trace_live_samples_init(void);

/* Forget all. World stopped, or in the child of a fork. */
void rb_vm_trace_live_samples_clear(void);

/*
 * Take a place for a sample, before its event is written. Then put the sample there, or give the
 * place back. Returns LIVE_SAMPLES_MOST if the table is full. Called by the thread that has just
 * allocated the object, with its GVL.
 */
size_t rb_vm_trace_live_samples_take(void);
void rb_vm_trace_live_samples_put(size_t place, uintptr_t object, struct vm_trace_live_sample sample);
void rb_vm_trace_live_samples_give_back(size_t place);

/*
 * A collection of `objspace` has marked all live objects. Counts one more collection for each sample
 * that is alive. Removes each other one, then calls `freed` with it. Called by the thread that
 * collects.
 */
void rb_vm_trace_live_samples_marked(void *objspace, bool (*alive)(void *objspace, uintptr_t object),
                                     void (*freed)(void *data, const struct vm_trace_live_sample *sample), void *data);

/* Samples of the objspace `from` now belong to `to`. No collection of either runs. */
void rb_vm_trace_live_samples_absorbed(const void *to, const void *from);

/* Objects have moved. World stopped. */
void rb_vm_trace_live_samples_moved(uintptr_t (*moved_to)(uintptr_t object));

/*
 * Copy the samples of an epoch and return how many. `to` has room for LIVE_SAMPLES_MOST. Any thread.
 * Samples that are freed or added meanwhile may be missing; each copy is consistent.
 */
size_t rb_vm_trace_live_samples_copy(struct vm_trace_live_sample *to, uint32_t epoch);

#endif /* RUBY_VM_TRACE_STREAMS_ALLOCATIONS_LIVE_SAMPLES_H */
