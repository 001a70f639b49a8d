/* decode_event.c - decodes event records. */
#include <inttypes.h>

#include "base/escape.h"
#include "fxt/known_strings.h"
#include "fxt/reader_internal.h"

/* Reads the words after the arguments. Returns false if the event is dropped. */
static bool
decode_trailer(struct reader *reader, struct cursor *cursor, struct fxt_event *event)
{
    switch (event->type) {
      case FXT_EVENT_INSTANT:
      case FXT_EVENT_DURATION_BEGIN:
      case FXT_EVENT_DURATION_END:
        return true;
      case FXT_EVENT_DURATION_COMPLETE:
        if (!decode_time(reader, cursor, "end", &event->end_ns)) return false;
        if (event->end_ns >= event->ts_ns) return true;
        reader_fault(reader, FXT_FAULT_ENDS_BEFORE_BEGIN, event->offset,
                     "the duration ends at %" PRId64 " ns, before it begins at %" PRId64 " ns", event->end_ns,
                     event->ts_ns);
        return false;
      default:
        if (cursor_u64(cursor, &event->id)) return true;
        decode_too_short(reader, event->type == FXT_EVENT_COUNTER ? "counter id" : "correlation id");
        return false;
    }
}

static void
check_counter(struct reader *reader, const struct fxt_event *event)
{
    for (unsigned i = 0; i < event->arg_count; i++) {
        enum fxt_arg_type type = event->args[i].type;
        if (type >= FXT_ARG_INT32 && type <= FXT_ARG_DOUBLE) continue;
        char name[64];
        reader_fault(reader, FXT_FAULT_NOT_A_NUMBER, event->offset, "the counter's value %s is not a number",
                     escape_into(name, sizeof name, event->args[i].name));
    }
}

void
decode_event(struct reader *reader, struct cursor *cursor)
{
    struct fxt_event *event = &reader->event;
    uint64_t header = reader->header;
    struct provider *provider = reader->current;
    if (!provider->initialized && !provider->uninitialized_reported) {
        provider->uninitialized_reported = true;
        reader_fault(reader, FXT_FAULT_NO_INITIALIZATION, reader->offset,
                     "no initialization record before this event; ticks are taken for nanoseconds");
    }

    event->offset = reader->offset;
    event->provider = provider->id;
    event->end_ns = 0;
    event->id = 0;
    if (!decode_time(reader, cursor, "time stamp", &event->ts_ns)) return;
    struct thread_ids thread;
    if (!decode_thread(reader, cursor, (unsigned)fxt_bits(header, FXT_EVENT_THREAD), &thread)) return;
    event->pid = (uint32_t)thread.pid;
    event->tid = (uint32_t)thread.tid;
    event->recording = current_recording(reader);
    event->process = current_process(reader, event->pid);
    unsigned category = (unsigned)fxt_bits(header, FXT_EVENT_CATEGORY);
    if (!decode_string(reader, cursor, category, "category", &event->category)) return;
    if (!decode_string(reader, cursor, (unsigned)fxt_bits(header, FXT_EVENT_NAME), "name", &event->name)) return;

    bool flawed = false;
    event->arg_count = (unsigned)fxt_bits(header, FXT_EVENT_ARGS);
    if (!decode_args(reader, cursor, event->arg_count, false, event->args, &flawed)) return;
    for (unsigned i = 0; i < event->arg_count; i++) {
        if (event->args[i].name.id < KNOWN_STRINGS_END) event->place[event->args[i].name.id] = (uint8_t)i;
    }

    unsigned type = (unsigned)fxt_bits(header, FXT_EVENT_TYPE);
    if (type > FXT_EVENT_FLOW_END) {
        reader_fault(reader, FXT_FAULT_UNKNOWN_EVENT, reader->offset, "event of the unknown type %u", type);
        return;
    }
    event->type = (enum fxt_event_type)type;
    if (!decode_trailer(reader, cursor, event)) return;
    if (!flawed) decode_finish(reader, cursor, "event");
    if (event->type == FXT_EVENT_COUNTER) check_counter(reader, event);

    if (event->category.id == STRING_TRACE && event->name.id == STRING_SETTINGS) {
        if (fxt_event_text(event, STRING_KEEP).id == STRING_NEWEST) reader_begin_ring(reader);
    }
    reader->counts.events++;
    note_record_time(reader, event->ts_ns, fxt_event_seen_ns(event));
    if (reader->visitor.event) reader->visitor.event(reader->visitor.context, event);
}

int64_t
fxt_event_seen_ns(const struct fxt_event *event)
{
    if (event->category.id == STRING_SYSCALL || event->category.id == STRING_SCHED) return INT64_MIN;
    return event->type == FXT_EVENT_DURATION_COMPLETE ? event->end_ns : event->ts_ns;
}
