/*
 * Composing events. See event.h.
 */
#include "vm_trace/capture/event.h"

#include <stdlib.h>
#include <string.h>

/* The track that an event is on. */
struct track {
    struct vm_trace_thread_id id;
    vm_trace_text_maker *name;
    const void *what;            /* the name's argument */
};

static size_t
thread_name(const void *ec, char *buffer, size_t capacity)
{
    return rb_vm_trace_host_thread_name((struct rb_execution_context_struct *)ec, buffer, capacity);
}

static size_t
fiber_name(const void *ec, char *buffer, size_t capacity)
{
    return rb_vm_trace_host_fiber_name((struct rb_execution_context_struct *)ec, buffer, capacity);
}

/* Index of the track under its name; 0: the chunk is full. */
static unsigned
name_track(struct rb_vm_trace_writer *writer, const struct track *track)
{
    char buffer[256];
    size_t bytes;
    unsigned thread = 0;
    const struct vm_trace_thread_id *id = &track->id;
    char *name = rb_vm_trace_text_whole(track->name, track->what, buffer, sizeof(buffer), &bytes);
    if (!rb_vm_trace_writer_name_thread(writer, id->tid, id->name_id, name, bytes, &thread) && bytes > sizeof(buffer)) {
        /* For the last words, which have not much room. */
        bytes = rb_vm_trace_text_cut(name, bytes, sizeof(buffer));
        rb_vm_trace_writer_name_thread(writer, id->tid, id->name_id, name, bytes, &thread);
    }
    if (name != buffer) free(name);
    return thread;
}

/* The same, of a track that may have one. */
static unsigned
track_index(struct rb_vm_trace_writer *writer, const struct track *track)
{
    unsigned thread = writer_thread(writer, track->id.tid, track->id.name_id);
    return thread ? thread : name_track(writer, track);
}

static bool
begin(struct vm_trace_event *event, struct rb_vm_trace_ractor *ractor, const struct track *track, uint64_t ns)
{
    struct rb_vm_trace_writer *writer = &ractor->writer;
    unsigned thread = track_index(writer, track);
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
    const struct track track = { rb_vm_trace_host_thread(ec), thread_name, ec };
    return begin(event, ractor, &track, ns);
}

bool
rb_vm_trace_event_begin_in_fiber(struct vm_trace_event *event, struct rb_vm_trace_ractor *ractor,
                                 struct rb_execution_context_struct *ec, uint64_t ns)
{
    const struct track track = { rb_vm_trace_host_fiber(ec), fiber_name, ec };
    return begin(event, ractor, &track, ns);
}

bool
rb_vm_trace_event_begin_on(struct vm_trace_event *event, struct rb_vm_trace_ractor *ractor,
                           struct vm_trace_thread_id id, vm_trace_text_maker *name, const void *what, uint64_t ns)
{
    const struct track track = { id, name, what };
    return begin(event, ractor, &track, ns);
}

bool
rb_vm_trace_event_name_thread(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec)
{
    const struct track track = { rb_vm_trace_host_thread(ec), thread_name, ec };
    return track_index(&ractor->writer, &track) != 0;
}

enum { NAMED = STRING_FRAME_REST - STRING_FRAME_0 };

static size_t
kept_frames(void)
{
    return rb_vm_trace_capture.stack_frames ? rb_vm_trace_capture.stack_frames : SIZE_MAX;
}

/* How many of the innermost frames have arguments of their own: at most so many. */
static size_t
named_frames(const struct rb_vm_trace_stacks *stacks, size_t most)
{
    size_t kept = kept_frames(), named = kept < most ? kept : most;
    return named < stacks->walk.count ? named : stacks->walk.count;
}

/*
 * "10+": the stack of `frame`, which is the `named`-th from the innermost one. False: the chunk is
 * full.
 */
static bool
put_tail(struct vm_trace_event *event, struct rb_vm_trace_stacks *stacks, const struct vm_trace_frame *frame,
         size_t kept, size_t named)
{
    struct vm_trace_node *node = &stacks->nodes[frame->node];
    /* A text that is limited by frames depends on how many are named. */
    bool usual = kept == SIZE_MAX || named == (kept < NAMED ? kept : NAMED);
    struct vm_trace_slot own = { 0, 0 }, *slot = usual ? &node->slot : &own;
    if (slot->chunk != event->writer->serial) {
        size_t bytes;
        const char *text = rb_vm_trace_stacks_tail(stacks, frame->node, kept - named, &bytes);
        if (!rb_vm_trace_writer_define(event->writer, slot, text, bytes)) return false;
    }
    event_string(event, STRING_FRAME_REST, slot->index);
    return true;
}

/* Their arguments, without the innermost `from`. False: the chunk is full. */
static bool
name_frames(struct vm_trace_event *event, struct rb_vm_trace_stacks *stacks, size_t from, size_t named)
{
    const struct vm_trace_frame *frame = stacks->walk.frames + stacks->walk.count;
    for (size_t i = 0; i < named; i++) {
        struct vm_trace_label *label = &stacks->labels[(--frame)->id];
        unsigned index;
        if (i < from) continue;
        if (!writer_string(event->writer, &label->slot, label->text, label->bytes, &index)) return false;
        event_string(event, (enum known_string)(STRING_FRAME_0 + i), index);
    }
    return true;
}

/* `most`: that many frames are named, or fewer. */
static bool
put_backtrace(struct vm_trace_event *event, struct rb_vm_trace_stacks *stacks, size_t from, size_t most)
{
    size_t count = stacks->walk.count, kept = kept_frames(), named = named_frames(stacks, most);
    if (!name_frames(event, stacks, from, named)) return false;
    return count == named || put_tail(event, stacks, stacks->walk.frames + count - named - 1, kept, named);
}

bool
rb_vm_trace_event_backtrace(struct vm_trace_event *event, struct rb_vm_trace_stacks *stacks, size_t from)
{
    return put_backtrace(event, stacks, from, NAMED);
}

void
rb_vm_trace_backtrace_keep(struct rb_vm_trace_stacks *stacks, struct vm_trace_string *texts_out[])
{
    enum { LAST = VM_TRACE_KEPT_FRAMES - 1 };
    size_t count = stacks->walk.count, named = named_frames(stacks, LAST);
    const struct vm_trace_frame *frame = stacks->walk.frames + count;
    for (size_t i = 0; i <= LAST; i++) {
        const struct vm_trace_label *label = i < named ? &stacks->labels[(--frame)->id] : NULL;
        texts_out[i] = label ? rb_vm_trace_string_intern(label->text, label->bytes) : NULL;
    }
    if (count == named) return;
    size_t bytes;
    const char *text = rb_vm_trace_stacks_tail(stacks, frame[-1].node, kept_frames() - named, &bytes);
    texts_out[LAST] = rb_vm_trace_string_intern(text, bytes);
}

bool
rb_vm_trace_event_kept_backtrace(struct vm_trace_event *event, struct vm_trace_string *const texts[])
{
    enum { LAST = VM_TRACE_KEPT_FRAMES - 1 };
    for (size_t i = 0; i <= LAST; i++) {
        unsigned name = i < LAST ? STRING_FRAME_0 + (unsigned)i : STRING_FRAME_REST;
        if (texts[i] && !event_interned(event, (enum known_string)name, texts[i])) return false;
    }
    return true;
}

/* How many of the frames can be arguments, "10+" included, beside `more` others. */
static size_t
room_for_frames(const struct vm_trace_event *event, const struct rb_vm_trace_stacks *stacks, size_t more)
{
    size_t room = FXT_ARGS_MAX - event->arguments - more, most = stacks->walk.count <= room ? room : room - 1;
    return most < NAMED ? most : NAMED;
}

bool
rb_vm_trace_event_backtrace_and(struct vm_trace_event *event, struct rb_vm_trace_stacks *stacks, size_t more)
{
    return put_backtrace(event, stacks, 0, room_for_frames(event, stacks, more));
}

bool
rb_vm_trace_event_frames_and(struct vm_trace_event *event, struct rb_vm_trace_stacks *stacks, size_t more)
{
    size_t count = stacks->walk.count, named = named_frames(stacks, room_for_frames(event, stacks, more));
    /* More of them would be most of the event's words, and the sample has them. */
    if (count > named && !rb_vm_trace_capture.stack_frames) named = 1;
    if (!name_frames(event, stacks, 0, named)) return false;
    if (count > named) event_uint32(event, STRING_FRAME_REST, (uint32_t)(count - named));
    return true;
}

/* Behind a note of the ractor's epoch. */
static bool
write_noted(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, vm_trace_event_writer *write,
             const void *what)
{
    return ractor_note_epoch(ractor) && write(ractor, ec, what);
}

/* Into the chunk that those share who have none. */
static bool
write_shared(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, vm_trace_event_writer *write,
             const void *what)
{
    struct rb_vm_trace_shared *shared = &rb_vm_trace_capture.shared;
    if (!rb_vm_trace_writer_borrow(&ractor->writer, shared)) return false;
    bool written = write_noted(ractor, ec, write, what) ||
        (rb_vm_trace_writer_borrow_next(&ractor->writer, shared) && write_noted(ractor, ec, write, what));
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
    if (ractor->writer.chunk.words && write_noted(ractor, ec, write, what)) return true;
    bool own = rb_vm_trace_ractor_next_chunk(ractor, ec);
    if (own ? write_noted(ractor, ec, write, what) : write_shared(ractor, ec, write, what)) return true;
    ractor->lost++;
    if (ractor->writer.late) ractor->late++;
    return false;
}

bool
rb_vm_trace_event_setting(struct vm_trace_event *event, const char *name, uint64_t value)
{
    struct vm_trace_slot slot;
    if (!rb_vm_trace_writer_define(event->writer, &slot, name, strlen(name))) return false;
    event_uint64(event, (enum known_string)slot.index, value);
    return true;
}
