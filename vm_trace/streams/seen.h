#ifndef RUBY_VM_TRACE_STREAMS_SEEN_H
#define RUBY_VM_TRACE_STREAMS_SEEN_H 1
/*
 * What the guard of an exit has met. Its reason says what it expected; the class of the operand that
 * was something else is `seen`, and tells what to change in the program.
 *
 * JITs do nothing for it: an exit puts all operands back onto the frame's stack. Which one it was
 * follows from the reason and the instruction, once for each site; then the host reads that.
 */

#include "vm_trace/capture/event.h"
#include "vm_trace/streams/sites.h"

/* The arguments of an event: their names, and the text of `seen`. */
struct vm_trace_seen_text {
    const struct vm_trace_string *text; /* NULL: the event does not have it */
    size_t place;                /* in the cache of texts */
    size_t class_bytes;          /* of the text: the class, without the instance variable behind it */
};

/* What a site's guard looks at, found out at its first exit. For site_guard. */
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
 * What the exit that is being taken has met: into exits_of(ractor)->seen. Returns its `what`;
 * VM_TRACE_SAW_NOTHING: it has no guard, or it is not known what.
 */
static inline uint32_t
see(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site, struct rb_execution_context_struct *ec)
{
    struct vm_trace_guard guard = site_guard(site);
    if (guard.looks_at == VM_TRACE_LOOKS_AT_NOTHING) return VM_TRACE_SAW_NOTHING;
    return rb_vm_trace_host_seen(ec, site->pc, guard, &exits_of(ractor)->seen);
}

/* Make its text. Without memory the event does without. */
struct vm_trace_seen_text rb_vm_trace_seen_text(struct rb_vm_trace_ractor *ractor, const struct rb_vm_trace_site *site);

/*
 * The class of VM_TRACE_SAW_OBJECT, if it is enough to know its name again while the ractor's
 * `stacks.tree` is the same: that changes when a class of these is freed or moved. Else
 * VM_TRACE_NO_CLASS.
 */
uintptr_t rb_vm_trace_seen_class(const struct vm_trace_seen *seen);

/* How many arguments of an event it is. */
static inline unsigned
seen_arguments(uint32_t what)
{
    return !!what + !!(what & VM_TRACE_SAW_INDEX) + !!(what & VM_TRACE_SAW_LENGTH);
}

/*
 * Add them to an event: the text, and then, where there are such, the index and the length in this
 * order, of one word each, or of two if one of them is wide. False: the chunk is full.
 */
bool rb_vm_trace_seen_write(struct vm_trace_event *event, const struct vm_trace_seen *seen,
                            const struct vm_trace_seen_text *text);

#endif /* RUBY_VM_TRACE_STREAMS_SEEN_H */
