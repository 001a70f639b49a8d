#ifndef RUBY_VM_TRACE_CAPTURE_EVENT_H
#define RUBY_VM_TRACE_CAPTURE_EVENT_H 1
/*
 * Composing one event: gather its references and arguments, then write it at once.
 *
 * An event and the strings that it names must be in one chunk, and what room they need is
 * known only when they are written. So an event is a function that writes it and says false
 * when the chunk was full; rb_vm_trace_event_write then begins a new chunk and calls it once
 * more, and an empty chunk is large enough for any event.
 */

#include "vm_trace/capture/ractor_state.h"
#include "vm_trace/base/known_strings.h"

#define EVENT_MAX_WORDS (2 + 2 * FXT_ARGS_MAX + 1)

struct vm_trace_event {
    struct rb_vm_trace_writer *writer;
    unsigned words;        /* header and time included */
    unsigned arguments;
    unsigned thread;
    uint64_t record[EVENT_MAX_WORDS];
};

/*
 * Begin one on the track of the Ruby thread of `ec`. False: the thread could not be written, the
 * chunk is full.
 */
bool rb_vm_trace_event_begin(struct vm_trace_event *event, struct rb_vm_trace_ractor *ractor,
                             struct rb_execution_context_struct *ec, uint64_t ns);

/* The same on that of its fiber, which the current thread runs: for what Ruby code does. */
bool rb_vm_trace_event_begin_in_fiber(struct vm_trace_event *event, struct rb_vm_trace_ractor *ractor,
                                      struct rb_execution_context_struct *ec, uint64_t ns);

static inline void
event_string(struct vm_trace_event *event, enum known_string name, unsigned string_index)
{
    event->record[event->words++] = fxt_string_argument((unsigned)name, string_index);
    event->arguments++;
}

static inline void
event_uint32(struct vm_trace_event *event, enum known_string name, uint32_t value)
{
    event->record[event->words++] = fxt_uint32_argument((unsigned)name, value);
    event->arguments++;
}

static inline void
event_uint64(struct vm_trace_event *event, enum known_string name, uint64_t value)
{
    event->record[event->words++] = fxt_uint64_argument((unsigned)name);
    event->record[event->words++] = value;
    event->arguments++;
}

/* A text that is not kept anywhere: defined each time. */
static inline bool
event_text(struct vm_trace_event *event, enum known_string name, const char *text, size_t bytes)
{
    struct vm_trace_slot slot;
    if (!rb_vm_trace_writer_define(event->writer, &slot, text, bytes)) return false;
    event_string(event, name, slot.index);
    return true;
}

static inline bool
event_interned(struct vm_trace_event *event, enum known_string name, const struct vm_trace_string *string)
{
    unsigned index;
    if (!writer_interned(event->writer, string, &index)) return false;
    event_string(event, name, index);
    return true;
}

/* The same under a name that few events have, and that is no known string therefore. */
static inline bool
event_interned_rarely(struct vm_trace_event *event, const struct vm_trace_string *name,
                      const struct vm_trace_string *string)
{
    unsigned index;
    return writer_interned(event->writer, name, &index) && event_interned(event, (enum known_string)index, string);
}

static inline bool
event_uint64_rarely(struct vm_trace_event *event, const struct vm_trace_string *name, uint64_t value)
{
    unsigned index;
    if (!writer_interned(event->writer, name, &index)) return false;
    event_uint64(event, (enum known_string)index, value);
    return true;
}

static inline bool
event_uint32_rarely(struct vm_trace_event *event, const struct vm_trace_string *name, uint32_t value)
{
    unsigned index;
    if (!writer_interned(event->writer, name, &index)) return false;
    event_uint32(event, (enum known_string)index, value);
    return true;
}

static inline bool
event_int32_rarely(struct vm_trace_event *event, const struct vm_trace_string *name, int32_t value)
{
    unsigned index;
    if (!writer_interned(event->writer, name, &index)) return false;
    event->record[event->words++] = fxt_int32_argument(index, value);
    event->arguments++;
    return true;
}

static inline bool
event_int64_rarely(struct vm_trace_event *event, const struct vm_trace_string *name, int64_t value)
{
    unsigned index;
    if (!writer_interned(event->writer, name, &index)) return false;
    event->record[event->words++] = fxt_int64_argument(index);
    event->record[event->words++] = (uint64_t)value;
    event->arguments++;
    return true;
}

/* An address. */
static inline bool
event_pointer_rarely(struct vm_trace_event *event, const struct vm_trace_string *name, uint64_t value)
{
    unsigned index;
    if (!writer_interned(event->writer, name, &index)) return false;
    event->record[event->words++] = fxt_pointer_argument(index);
    event->record[event->words++] = value;
    event->arguments++;
    return true;
}

/*
 * Begin one on a track of the caller's: that of `id`, whose name is what name(what, ...) writes, as
 * rb_vm_trace_host_thread_name does. False: the chunk is full.
 */
bool rb_vm_trace_event_begin_on(struct vm_trace_event *event, struct rb_vm_trace_ractor *ractor,
                                struct vm_trace_thread_id id, vm_trace_text_maker *name, const void *what,
                                uint64_t ns);

/*
 * Write the name of the thread of `ec`, unless the chunk has it: for records that have no event. False:
 * the chunk is full.
 */
bool rb_vm_trace_event_name_thread(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* Write it. False: the chunk is full. */
static inline bool
event_end(struct vm_trace_event *event, enum fxt_event_type type, enum known_string category, unsigned name)
{
    uint64_t *to = writer_reserve(event->writer, event->words);
    if (!to) return false;
    event->record[0] = fxt_event_header(type, event->words, event->arguments, event->thread,
                                        (unsigned)category, name);
    memcpy(to + 1, event->record + 1, (event->words - 1) * sizeof(*to));
    writer_publish(event->writer, event->words, event->record[0]);
    writer_count_events(event->writer, 1);
    return true;
}

/*
 * Write one that has a number: its record's last word. False: the chunk is full.
 */
static inline bool
event_end_id(struct vm_trace_event *event, enum fxt_event_type type, enum known_string category, unsigned name,
             uint64_t id)
{
    event->record[event->words++] = id;
    return event_end(event, type, category, name);
}

/*
 * Whether records of so many words fit into the chunk, for events that must not be parted. Nothing
 * that they need may have to be defined any more.
 */
static inline bool
event_room(const struct vm_trace_event *event, size_t words)
{
    return event->writer->pos + words <= event->writer->limit;
}

/*
 * The backtrace that stacks_capture found: "0" to "9" and "10+", as far as trace.stack_frames goes,
 * without the innermost `from` (at most 10). False: the chunk is full.
 */
bool rb_vm_trace_event_backtrace(struct vm_trace_event *event, struct rb_vm_trace_stacks *stacks, size_t from);

/*
 * The backtrace that stacks_capture found, for an event that is written later: interned texts, owned by
 * the caller, or NULL. The last one is "10+".
 */
enum { VM_TRACE_KEPT_FRAMES = 8 };
void rb_vm_trace_backtrace_keep(struct rb_vm_trace_stacks *stacks, struct vm_trace_string *texts_out[]);
bool rb_vm_trace_event_kept_backtrace(struct vm_trace_event *event, struct vm_trace_string *const texts[]);

/*
 * The same for an event that will have so many arguments more, at most 13. Where there is no room
 * for all, "10+" begins with the last of the ten frames, or sooner.
 */
bool rb_vm_trace_event_backtrace_and(struct vm_trace_event *event, struct rb_vm_trace_stacks *stacks, size_t more);

/*
 * The same of an event whose whole stack is in a stack sample: "10+" is only the number of the
 * frames that have no argument. Unless a number of frames was requested, these are all but "0",
 * where the stack does not fit into "0" to "9".
 */
bool rb_vm_trace_event_frames_and(struct vm_trace_event *event, struct rb_vm_trace_stacks *stacks, size_t more);

/*
 * A number that a stream adds to the event `settings`, under a name that is no known string. False:
 * the chunk is full.
 */
bool rb_vm_trace_event_setting(struct vm_trace_event *event, const char *name, uint64_t value);

/* How an event is written: false when the chunk was full. */
typedef bool vm_trace_event_writer(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                   const void *what);

/* Write one event, in a new chunk when the old one is full. What can't be written is counted. */
bool rb_vm_trace_event_write(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                             vm_trace_event_writer *write, const void *what);

/*
 * The same for who has noticed resets (ractor_state.h) and done something in the epoch that the
 * event must be in, too.
 */
bool rb_vm_trace_event_write_in_epoch(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec,
                                      vm_trace_event_writer *write, const void *what);

#endif /* RUBY_VM_TRACE_CAPTURE_EVENT_H */
