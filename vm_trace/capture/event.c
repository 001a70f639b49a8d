/*
 * Composing events. See event.h.
 */
#include "vm_trace/capture/event.h"

#include <stdlib.h>

/* Whose track an event is on. */
struct owner {
    struct rb_execution_context_struct *ec;
    struct vm_trace_thread_id id;
    size_t (*name)(struct rb_execution_context_struct *ec, char *buffer, size_t capacity);
};

static size_t
make_name(const void *what, char *buffer, size_t capacity)
{
    const struct owner *owner = what;
    return owner->name(owner->ec, buffer, capacity);
}

/* Index of the track under its name; 0: the chunk is full. */
static unsigned
name_track(struct rb_vm_trace_writer *writer, const struct owner *owner)
{
    char buffer[256];
    size_t bytes;
    unsigned thread = 0;
    const struct vm_trace_thread_id *id = &owner->id;
    char *name = rb_vm_trace_text_whole(make_name, owner, buffer, sizeof(buffer), &bytes);
    if (!rb_vm_trace_writer_name_thread(writer, id->tid, id->name_id, name, bytes, &thread) && bytes > sizeof(buffer)) {
        /* For the last words, which have not much room. */
        bytes = rb_vm_trace_text_cut(name, bytes, sizeof(buffer));
        rb_vm_trace_writer_name_thread(writer, id->tid, id->name_id, name, bytes, &thread);
    }
    if (name != buffer) free(name);
    return thread;
}

static bool
begin(struct vm_trace_event *event, struct rb_vm_trace_ractor *ractor, const struct owner *owner, uint64_t ns)
{
    struct rb_vm_trace_writer *writer = &ractor->writer;
    const struct vm_trace_thread_id *id = &owner->id;
    unsigned thread = writer_last_thread(writer, id->tid, id->name_id);
    if (!thread) thread = rb_vm_trace_writer_thread(writer, id->tid, id->name_id);
    if (!thread) thread = name_track(writer, owner);
    if (!thread) return false;
    event->writer = writer;
    event->thread = thread;
    event->arguments = 0;
    event->record[1] = ns < ractor->from_ns ? ractor->from_ns : ns; /* it was read before the reset that it counts after */
    event->words = 2;
    return true;
}

bool
rb_vm_trace_event_begin(struct vm_trace_event *event, struct rb_vm_trace_ractor *ractor,
                        struct rb_execution_context_struct *ec, uint64_t ns)
{
    const struct owner owner = { ec, rb_vm_trace_host_thread(ec), rb_vm_trace_host_thread_name };
    return begin(event, ractor, &owner, ns);
}

bool
rb_vm_trace_event_begin_in_fiber(struct vm_trace_event *event, struct rb_vm_trace_ractor *ractor,
                                 struct rb_execution_context_struct *ec, uint64_t ns)
{
    const struct owner owner = { ec, rb_vm_trace_host_fiber(ec), rb_vm_trace_host_fiber_name };
    return begin(event, ractor, &owner, ns);
}

bool
rb_vm_trace_event_backtrace(struct vm_trace_event *event, struct rb_vm_trace_stacks *stacks, size_t from)
{
    enum { NAMED = W_TAIL - W_0 };
    size_t count = stacks->walk.count,
           kept = rb_vm_trace_capture.stack_frames ? rb_vm_trace_capture.stack_frames : SIZE_MAX;
    const struct vm_trace_frame *frame = stacks->walk.frames + count;

    size_t named = kept < NAMED ? kept : NAMED;
    if (named > count) named = count;
    for (size_t i = 0; i < named; i++) {
        struct vm_trace_label *label = &stacks->labels[(--frame)->id];
        unsigned index;
        if (i < from) continue;
        if (!writer_string(event->writer, &label->slot, label->text, label->bytes, &index)) return false;
        event_string(event, (enum vm_trace_word)(W_0 + i), index);
    }
    if (count > named) {
        uint32_t id = (--frame)->node;
        struct vm_trace_node *node = &stacks->nodes[id];
        if (node->slot.chunk != event->writer->serial) {
            size_t bytes;
            const char *text = rb_vm_trace_stacks_tail(stacks, id, kept - named, &bytes);
            if (!rb_vm_trace_writer_define(event->writer, &node->slot, text, bytes)) return false;
        }
        event_string(event, W_TAIL, node->slot.index);
    }
    return true;
}

/* Into the chunk that those share who have none. */
static bool
write_shared(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, vm_trace_event_writer *write,
             const void *what)
{
    struct rb_vm_trace_shared *shared = &rb_vm_trace_capture.shared;
    if (!rb_vm_trace_writer_borrow(&ractor->writer, shared)) return false;
    bool written =
        write(ractor, ec, what) || (rb_vm_trace_writer_borrow_next(&ractor->writer, shared) && write(ractor, ec, what));
    rb_vm_trace_writer_return(&ractor->writer, shared);
    return written;
}

bool
rb_vm_trace_event_write(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                        vm_trace_event_writer *write, const void *what)
{
    ractor_notice_reset(ractor);
    return rb_vm_trace_event_write_in_epoch(ractor, ec, write, what);
}

bool
rb_vm_trace_event_write_in_epoch(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                 vm_trace_event_writer *write, const void *what)
{
    if (ractor->writer.chunk.words && write(ractor, ec, what)) return true;
    bool own = rb_vm_trace_ractor_next_chunk(ractor, ec);
    if (own ? write(ractor, ec, what) : write_shared(ractor, ec, write, what)) return true;
    ractor->lost++;
    if (ractor->writer.late) ractor->late++;
    return false;
}
