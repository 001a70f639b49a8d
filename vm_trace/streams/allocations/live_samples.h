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

#include "vm_trace/capture/event.h"

#define LIVE_SAMPLES_MOST 16384

/*
 * What the event of a sample says. Kept where that event may be gone before the object is: in a flight
 * recorder. References are counted.
 */
struct vm_trace_live_origin {
    unsigned refs;
    uint32_t size, weight;
    uint64_t ns;
    struct vm_trace_string *class_name, *frames[VM_TRACE_KEPT_FRAMES]; /* own */
};

struct vm_trace_live_sample {
    const void *objspace;
    uint64_t sample;       /* its number */
    uint64_t malloc_bytes; /* that the object held when that was read last; HOST_BYTES_UNKNOWN: it never was */
    uint32_t survived;     /* collections */
    uint32_t epoch;        /* of the flight recorder that it was recorded in */
    struct vm_trace_live_origin *origin; /* NULL: not kept */
};

/* Give a reference back; takes NULL. Any thread, but not in a collection: it may free memory. */
void rb_vm_trace_live_origin_release(struct vm_trace_live_origin *origin);

/* Allocate the table, once. False: no memory. */
bool rb_vm_trace_live_samples_init(void);

/*
 * Forget all. World stopped; or `forked`: in the child of a fork. There another thread may have been
 * changing an origin, so they stay in memory.
 */
void rb_vm_trace_live_samples_clear(bool forked);

/*
 * Take a place for a sample, before its event is written. Then put the sample there, or give the
 * place back. Returns LIVE_SAMPLES_MOST if the table is full. The table takes the reference to the
 * origin. Called by the thread that has just allocated the object, with its GVL.
 */
size_t rb_vm_trace_live_samples_take(void);
void rb_vm_trace_live_samples_put(size_t place, uintptr_t object, struct vm_trace_live_sample sample);
void rb_vm_trace_live_samples_give_back(size_t place);

/*
 * A collection of `objspace` has marked all live objects. Counts one more collection for each sample
 * that is alive, and reads again what it holds by malloc. Removes each other one, then calls `freed`
 * with it. Called by the thread that collects.
 */
void rb_vm_trace_live_samples_marked(void *objspace, bool (*alive)(void *objspace, uintptr_t object),
                                     void (*freed)(void *data, const struct vm_trace_live_sample *sample), void *data);

/* Samples of the objspace `from` now belong to `to`. No collection of either runs. */
void rb_vm_trace_live_samples_absorbed(const void *to, const void *from);

/* Objects have moved. World stopped. */
void rb_vm_trace_live_samples_moved(uintptr_t (*moved_to)(uintptr_t object));

/* Read again what each sample holds by malloc. World stopped, and the caller has the GVL. */
void rb_vm_trace_live_samples_measure(void);

/*
 * Copy the samples of an epoch, and those that have an origin, with a reference to it. Return how
 * many. `to` has room for LIVE_SAMPLES_MOST. Any thread. Samples that are freed or added meanwhile may
 * be missing; each copy is consistent.
 */
size_t rb_vm_trace_live_samples_copy(struct vm_trace_live_sample *to, uint32_t epoch);

#endif /* RUBY_VM_TRACE_STREAMS_ALLOCATIONS_LIVE_SAMPLES_H */
