#ifndef RUBY_VM_TRACE_STREAMS_EXITS_SEEN_H
#define RUBY_VM_TRACE_STREAMS_EXITS_SEEN_H 1
/*
 * What the guard of an exit has met. The reason says what the guard expected. `seen` is the class of
 * the operand that it met instead, and shows what to change in the program.
 *
 * This needs no change of the JITs: an exit puts all operands back onto the frame's stack. The reason
 * and the instruction tell which operand it was, once for each site. Then the host reads it.
 */

#include "vm_trace/capture/event.h"
#include "vm_trace/streams/code/sites.h"

/* The arguments of an event: their names, and the text of `seen`. */
struct vm_trace_seen_text {
    const struct vm_trace_string *text; /* NULL: not in the event */
    size_t place;                /* in the cache of texts */
    size_t class_bytes;          /* of the text: the class, without the instance variable behind it */
};

/* Find out what a site's guard looks at, at its first exit. For site_guard. */
struct vm_trace_guard rb_vm_trace_seen_find_guard(const struct rb_vm_trace_site *site);

static inline struct vm_trace_guard
site_guard(const struct rb_vm_trace_site *site)
{
    uint64_t word = __atomic_load_n(&site->guard, __ATOMIC_RELAXED);
    struct vm_trace_guard guard;
    memcpy(&guard, &word, sizeof(guard));
    return __builtin_expect(guard.known, 1) ? guard : rb_vm_trace_seen_find_guard(site);
}

/*
 * Store in exits_of(ractor)->seen what the guard of the current exit has met. Returns its `what`, and its shape
 * in the upper half;
 * VM_TRACE_SAW_NOTHING: it has no guard, or the value is unknown.
 */
static inline uint64_t
see(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec)
{
    struct vm_trace_guard guard = site_guard(site);
    if (guard.looks_at == VM_TRACE_LOOKS_AT_NOTHING) return VM_TRACE_SAW_NOTHING;
    return rb_vm_trace_host_seen(ec, site->pc, guard, &exits_of(ractor)->seen);
}

/* Make its text. Without memory the event lacks it. */
struct vm_trace_seen_text rb_vm_trace_seen_text(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site);

/*
 * The class of VM_TRACE_SAW_OBJECT, if its address is enough to know it again while the ractor's
 * `stacks.tree` is the same: that changes when such a class is freed or moved. Otherwise
 * VM_TRACE_NO_CLASS.
 */
uintptr_t rb_vm_trace_seen_class(const struct vm_trace_seen *seen);

/* Number of arguments that it has in an event. */
static inline unsigned
seen_arguments(uint64_t what)
{
    return !!what + !!(what & VM_TRACE_SAW_INDEX) + !!(what & VM_TRACE_SAW_LENGTH);
}

/*
 * Add them to an event: the text, then the index and the length, if there are any. Each number takes
 * one word, or two if one of them is wide. False: the chunk is full.
 */
bool rb_vm_trace_seen_write(struct vm_trace_event *event, const struct vm_trace_seen *seen,
                            const struct vm_trace_seen_text *text);

#endif /* RUBY_VM_TRACE_STREAMS_EXITS_SEEN_H */
