/*
 * Stacks that are not named yet. See sample_ring.h.
 *
 * The handler runs on the thread that takes, between two of its instructions. So atomic means here
 * that the compiler keeps the order.
 */
#include "vm_trace/streams/samples/sample_ring.h"
#include "vm_trace/platform/platform.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 4 << 20 };
#define OLD_NS UINT64_C(100000000)
#define TOO_OLD_NS UINT64_C(10000000000)

struct vm_trace_sample_ring {
    struct vm_trace_sample_ring *next, *next_free;
    struct vm_trace_walk walk;  /* the last one; its slots are zeros when the ring is empty */
    size_t slots;               /* that may hold anything */
    size_t changed;             /* of the walk: frames from here on are to be added */
    size_t used;                /* bytes */
    bool taken;                 /* it is being emptied */
    uint64_t first_ns;
    struct rb_execution_context_struct *ec; /* whose the stacks are, if there are any */
    struct vm_trace_frame frames[HOST_SAMPLE_SLOTS];
    struct vm_trace_sampled_frame whole[HOST_SAMPLE_SLOTS]; /* of the stack that is taken */
    char stacks[BYTES] __attribute__((aligned(16)));
};

struct vm_trace_sample_ring *
rb_vm_trace_sample_ring_lend(struct vm_trace_sample_rings *rings)
{
    struct vm_trace_sample_ring *ring = rings->free;
    if (ring) {
        rings->free = ring->next_free;
        return ring;
    }
    ring = rb_vm_trace_platform_zeros(sizeof(*ring));
    if (!ring) return NULL;
    ring->walk.frames = ring->frames;
    ring->walk.capacity = HOST_SAMPLE_SLOTS;
    ring->next = rings->all;
    return rings->all = ring;
}

void
rb_vm_trace_sample_ring_return(struct vm_trace_sample_rings *rings, struct vm_trace_sample_ring *ring)
{
    ring->next_free = rings->free;
    rings->free = ring;
}

void
rb_vm_trace_sample_rings_free(struct vm_trace_sample_rings *rings)
{
    for (struct vm_trace_sample_ring *ring = rings->all, *next; ring; ring = next) {
        next = ring->next;
        munmap(ring, sizeof(*ring));
    }
    *rings = (struct vm_trace_sample_rings){ NULL, NULL };
}

/* --- the handler ----------------------------------------------------------------------------------- */

static size_t
bytes_of(size_t frames)
{
    return sizeof(struct vm_trace_sampled_stack) + frames * sizeof(struct vm_trace_sampled_frame);
}

bool
rb_vm_trace_sample_ring_walk(struct vm_trace_sample_ring *ring, struct rb_execution_context_struct *ec)
{
    if (ring->taken || BYTES - ring->used < 2 * bytes_of(HOST_SAMPLE_SLOTS)) return false;
    if (ring->used && ring->ec != ec) return false; /* the thread is just going over to another fiber */
    if (!rb_vm_trace_host_sample(&ring->walk, ec)) return false;
    ring->ec = ec;
    size_t count = ring->walk.count, changed = ring->walk.changed < count ? ring->walk.changed : count;
    if (ring->slots < count) ring->slots = count;
    /* A stack that is only shorter has no changed frame, and the next one may differ from its end on. */
    ring->changed = ring->used ? changed : 0;
    return true;
}

void
rb_vm_trace_sample_ring_add(struct vm_trace_sample_ring *ring, const struct vm_trace_sampled_stack *stack)
{
    size_t from = ring->changed, count = ring->walk.count;
    struct vm_trace_sampled_stack *to = (struct vm_trace_sampled_stack *)(ring->stacks + ring->used);
    struct vm_trace_sampled_frame *frame = (struct vm_trace_sampled_frame *)(to + 1);
    *to = *stack;
    to->count = (uint16_t)count;
    to->from = (uint32_t)from;
    to->bytes = (uint32_t)bytes_of(count - from);
    for (size_t i = from; i < count; i++) {
        const struct vm_trace_frame *walked = &ring->frames[i];
        *frame++ = (struct vm_trace_sampled_frame){ walked->pc, walked->method, walked->iseq };
    }
    if (!ring->used) ring->first_ns = stack->ns;
    ring->changed = count;
    atomic_signal_fence(memory_order_seq_cst);
    ring->used += to->bytes;
}

bool
rb_vm_trace_sample_ring_due_p(const struct vm_trace_sample_ring *ring, uint64_t now_ns, bool cheap)
{
    return ring->used > BYTES / 2 || (ring->used && now_ns - ring->first_ns > (cheap ? OLD_NS : TOO_OLD_NS));
}

/* --- the thread ------------------------------------------------------------------------------------ */

struct rb_execution_context_struct *
rb_vm_trace_sample_ring_owner(const struct vm_trace_sample_ring *ring)
{
    return ring->used ? ring->ec : NULL;
}

void
rb_vm_trace_sample_ring_take(struct vm_trace_sample_ring *ring,
                             void (*function)(const struct vm_trace_sampled_stack *stack,
                                              const struct vm_trace_sampled_frame *frames, void *data),
                             void *data)
{
    if (ring->taken) return;
    ring->taken = true;
    atomic_signal_fence(memory_order_seq_cst);
    bool empty = true; /* the stack before has no frames, and something else may be named in its place */
    for (size_t at = 0; at < ring->used;) {
        struct vm_trace_sampled_stack *stack = (struct vm_trace_sampled_stack *)(ring->stacks + at);
        if (stack->from < stack->count)
            memcpy(ring->whole + stack->from, stack + 1, (stack->count - stack->from) * sizeof(*ring->whole));
        if (empty) stack->from = 0;
        function(stack, ring->whole, data);
        empty = stack->count == 0;
        at += stack->bytes;
    }
    /* What the slots are of may be freed from now on. */
    memset(ring->frames, 0, ring->slots * sizeof(ring->frames[0]));
    ring->slots = ring->used = 0;
    atomic_signal_fence(memory_order_seq_cst);
    ring->taken = false;
}
