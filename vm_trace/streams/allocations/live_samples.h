#ifndef RUBY_VM_TRACE_STREAMS_ALLOCATIONS_LIVE_SAMPLES_H
#define RUBY_VM_TRACE_STREAMS_ALLOCATIONS_LIVE_SAMPLES_H 1
/*
 * A table of the sampled objects that are alive, by address. Each collection searches it for those
 * that it frees. It has a fixed size, because it is searched in pauses of the GC: 130 KiB when full.
 *
 * A sampled buffer is in it by the object that owns the buffer. No object refers to it yet when it is allocated. The
 * next collection looks for an object that does: among the words that were on the stack. If there is none, the buffer
 * has been reallocated, or C code holds it, and it is not followed.
 *
 * No lock: any ractor adds, at places of its own, and only the collection of an objspace changes
 * what is alive in it. So a collection of another objspace may run at the same time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vm_trace/capture/event.h"

#define LIVE_SAMPLES_MOST 16384

/* The size from which a buffer is a sample of its own. */
#define LIVE_SAMPLES_BUFFER 1024
#define LIVE_SAMPLES_WORDS 24

/*
 * What the event of a sample says. Kept of buffers, and where that event may be gone before the object is: in a
 * flight recorder. References are counted.
 */
struct vm_trace_live_origin {
    unsigned refs;
    uint32_t size, weight;
    uint64_t ns;
    struct vm_trace_string *class_name, *frames[VM_TRACE_KEPT_FRAMES]; /* own; without a class_name, nothing is kept */
    const void *buffer; /* NULL: the sample is an object */
    size_t buffer_bytes;
    struct vm_trace_string *holder; /* own: the class of the object that owned the buffer; NULL: none was found */
    size_t word_count;
    uintptr_t words[LIVE_SAMPLES_WORDS]; /* see rb_vm_trace_host_stack_words */
};

struct vm_trace_live_sample {
    void *objspace;
    uint64_t sample;       /* its number */
    uint64_t malloc_bytes; /* that the object held when that was read last; HOST_BYTES_UNKNOWN: it never was */
    uint32_t survived;     /* collections */
    uint32_t epoch;        /* of the flight recorder that it was recorded in */
    bool ownerless;        /* in a copy: of a buffer that no object owns */
    struct vm_trace_live_origin *origin; /* NULL: not kept */
};

/* Give a reference back; takes NULL. Any thread, but not in a collection: it may free memory. */
void rb_vm_trace_live_origin_release(struct vm_trace_live_origin *origin);

/* Allocate the table, once. `slot_p` as of rb_vm_trace_allocations_supported. False: no memory. */
bool rb_vm_trace_live_samples_init(bool (*slot_p)(void *objspace, uintptr_t word));

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
/* The same of a buffer: its owner is among the words in sample.origin. */
void rb_vm_trace_live_samples_put_buffer(size_t place, struct vm_trace_live_sample sample);
void rb_vm_trace_live_samples_give_back(size_t place);

/*
 * A collection of `objspace` has marked all live objects. Counts one more collection for each sample
 * that is alive, and reads again what it holds by malloc. Removes each other one, then calls `freed`
 * with it: also a buffer without an owner. Called by the thread that collects.
 */
void rb_vm_trace_live_samples_marked(void *objspace, bool (*alive)(void *objspace, uintptr_t object),
                                     void (*freed)(void *data, const struct vm_trace_live_sample *sample), void *data);

/* Samples of the objspace `from` now belong to `to`. No collection of either runs. */
void rb_vm_trace_live_samples_absorbed(void *to, const void *from);

/* Objects have moved. World stopped. */
void rb_vm_trace_live_samples_moved(uintptr_t (*moved_to)(uintptr_t object));

/*
 * Read again what each sample holds by malloc, and look for the owners of buffers. World stopped, and the
 * caller has the GVL.
 */
void rb_vm_trace_live_samples_measure(void);

/*
 * Copy the samples of an epoch, and those whose origin says what their event does, with a reference to it. Return how
 * many. `to` has room for LIVE_SAMPLES_MOST. Any thread. Samples that are freed or added meanwhile may
 * be missing; each copy is consistent.
 */
size_t rb_vm_trace_live_samples_copy(struct vm_trace_live_sample *to, uint32_t epoch);

#endif /* RUBY_VM_TRACE_STREAMS_ALLOCATIONS_LIVE_SAMPLES_H */
