/*
 * What a trace says of itself. See metadata.h.
 */
#include "vm_trace/session/metadata.h"
#include "vm_trace/capture/method_filter.h"
#include "vm_trace/session/session_state.h"
#include "vm_trace/platform/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define capture rb_vm_trace_capture
#define session rb_vm_trace_session

/* Our command line as the system has it, cut when it does not fit; "" where it doesn't tell. */
static size_t
command_line(char *buffer, size_t capacity)
{
    size_t bytes = rb_vm_trace_platform_arguments(buffer, capacity, true);
    bytes = rb_vm_trace_text_cut(buffer, bytes, capacity);
    while (bytes > 0 && buffer[bytes - 1] == '\0') bytes--;
    for (size_t i = 0; i < bytes; i++) {
        if (buffer[i] == '\0') buffer[i] = ' ';
    }
    return bytes;
}

/* The names of the streams that are recorded, with options that are not the default, and blanks between them. */
static void
list_streams(char *text, size_t bytes)
{
    static const char *const parts[] = {
        [VM_TRACE_STACK_ALL] = "", [VM_TRACE_STACK_TOP] = ":stack=top", [VM_TRACE_STACK_NONE] = ":stack=none"
    };
    size_t at = 0;
    text[0] = '\0';
    EACH_STREAM(stream, rate) {
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? " " : "", stream->name);
        if (stream->samples) at += (size_t)snprintf(text + at, bytes - at, ":samples");
        if (!stream->takes_min) continue;
        if (stream->min_ns != stream->default_min_ns)
            at += (size_t)snprintf(text + at, bytes - at, ":min=%lluns", (unsigned long long)stream->min_ns);
        at += (size_t)snprintf(text + at, bytes - at, "%s", parts[stream->stack_part]);
        if (stream->takes_depth && stream->depth != VM_TRACE_ANY_DEPTH)
            at += (size_t)snprintf(text + at, bytes - at, ":depth=%llu", (unsigned long long)stream->depth);
    }
}

/* A text, or a number, under a name that few traces have: not a fixed string, which is written to every chunk. */
static bool
rare_text(struct vm_trace_event *event, const char *name, const char *text)
{
    struct vm_trace_slot slot;
    return rb_vm_trace_writer_define(event->writer, &slot, name, strlen(name)) &&
        event_text(event, (enum known_string)slot.index, text, strlen(text));
}

static bool
rare_number(struct vm_trace_event *event, const char *name, uint32_t value)
{
    struct vm_trace_slot slot;
    if (!rb_vm_trace_writer_define(event->writer, &slot, name, strlen(name))) return false;
    event_uint32(event, (enum known_string)slot.index, value);
    return true;
}

/* The command line and the methods come from outside. */
static bool
clean_text(struct vm_trace_event *event, enum known_string name, const char *text, size_t bytes)
{
    char *copy;
    const char *clean = rb_vm_trace_text_clean(text, &bytes, &copy);
    bool ok = event_text(event, name, clean, bytes);
    free(copy);
    return ok;
}

/* What is not of one stream. */
static bool
add_common_settings(struct vm_trace_event *event, const char *snapshot)
{
    const char *ruby = rb_vm_trace_host_description(), *base = rb_vm_trace_host_base();
    char command[4096], flags[256];
    size_t command_bytes = command_line(command, sizeof(command));
    list_streams(flags, sizeof(flags));
    if (!clean_text(event, STRING_COMMAND, command, command_bytes)) return false;
    if (!event_text(event, STRING_RUBY, ruby, strlen(ruby))) return false;
    if (!event_text(event, STRING_BASE, base, strlen(base))) return false;
    if (!event_text(event, STRING_JIT, capture.jit, strlen(capture.jit))) return false;
    if (!event_text(event, STRING_FLAGS, flags, strlen(flags))) return false;
    event_uint32(event, STRING_PID, capture.pid);
    if (capture.stack_frames && !rare_number(event, "stack", capture.stack_frames)) return false;
    const char *methods = rb_vm_trace_methods();
    if (methods && !clean_text(event, STRING_METHODS, methods, strlen(methods))) return false;
    if (session.max_size.bytes) {
        const char *keep = session.max_size.keep_oldest ? "oldest" : "newest";
        event_uint64(event, STRING_MAX_BYTES, session.max_size.bytes);
        if (!event_text(event, STRING_KEEP, keep, strlen(keep))) return false;
    }
    if (session.memory.window_ns)
        event_uint32(event, STRING_SECONDS, (uint32_t)(session.memory.window_ns / 1000000000));
    return !snapshot || event_text(event, STRING_SNAPSHOT, snapshot, strlen(snapshot));
}

/* The event of settings that is being written. */
struct settings {
    struct vm_trace_event event;
    struct rb_vm_trace_ractor *ractor;
    struct rb_execution_context_struct *ec;
    bool more; /* it is not the first */
};

static bool
begin_settings(struct settings *settings)
{
    return rb_vm_trace_event_begin(&settings->event, settings->ractor, settings->ec, capture.begin_ns);
}

static bool
end_settings(struct settings *settings)
{
    static const char more[] = "more_settings";
    struct vm_trace_slot slot = { .index = STRING_SETTINGS };
    bool named = !settings->more || rb_vm_trace_writer_define(settings->event.writer, &slot, more, sizeof(more) - 1);
    return named && event_end(&settings->event, FXT_EVENT_INSTANT, STRING_TRACE, slot.index);
}

/* An event has a limited number of arguments: what has no room is in the next one. */
static bool
make_room_for(struct settings *settings, unsigned arguments)
{
    if (settings->event.arguments + arguments <= FXT_ARGS_MAX) return true;
    bool ended = end_settings(settings);
    settings->more = true;
    return ended && begin_settings(settings);
}

bool
rb_vm_trace_write_settings(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    enum { MOST_OF_A_STREAM = 3 };
    struct settings settings = { .ractor = ractor, .ec = ec };
    if (!begin_settings(&settings) || !add_common_settings(&settings.event, what)) return false;
    EACH_STREAM(stream, write_settings) {
        if (!make_room_for(&settings, MOST_OF_A_STREAM) || !stream->write_settings(&settings.event)) return false;
    }
    if (session.left_out[0] &&
        (!make_room_for(&settings, 1) || !rare_text(&settings.event, "left_out", session.left_out)))
        return false;
    return end_settings(&settings);
}

bool
rb_vm_trace_write_jit(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    (void)what;
    struct vm_trace_event event;
    return rb_vm_trace_event_begin(&event, ractor, ec, clock_now_ns(&ractor->clock)) &&
        event_text(&event, STRING_JIT, capture.jit, strlen(capture.jit)) &&
        event_end(&event, FXT_EVENT_INSTANT, STRING_TRACE, STRING_JIT);
}

/*
 * Of those that were not written, or were cut off: the disk's reason, or the only other ones there
 * are.
 */
const char *
rb_vm_trace_loss_reason(void)
{
    if (capture.file.reason == CHUNK_FILE_FULL) {
        static char text[320];
        const char *prefix = session.option_prefix;
        snprintf(text, sizeof(text), "trace stopped: %s; give %s%s another disk",
                 rb_vm_trace_chunk_file_reason(&capture.file, CHUNK_FILE_FULL), prefix ? prefix : "",
                 prefix ? "-trace-file" : "file:");
        return text;
    }
    if (capture.file.reason) return rb_vm_trace_chunk_file_reason(&capture.file, capture.file.reason);
    return capture.file.starved ? "a file of that size has too few chunks for so many ractors" : "out of memory";
}

const char *
rb_vm_trace_late_reason(void)
{
    return "the disk was too slow, and the program did not wait for it";
}

const char *
rb_vm_trace_unread_reason(void)
{
    return "the kernel's buffers were full: the tracer got no CPU in time to read them";
}

const char *
rb_vm_trace_dropped_reason(void)
{
    if (capture.file.full[0]) { /* it was to become larger */
        static char text[256];
        snprintf(text, sizeof(text), "older events gave way because %s", capture.file.full);
        return text;
    }
    return session.memory.bytes ? "older events gave way at the limit of the memory" :
                                  "older events gave way at the limit of the file's size";
}

bool
rb_vm_trace_write_loss(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct vm_trace_loss *loss = what;
    struct vm_trace_event event;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, clock_now_ns(&ractor->clock))) return false;
    event_uint64(&event, STRING_LOST, loss->events);
    if (!event_text(&event, STRING_REASON, loss->why, strlen(loss->why))) return false;
    return event_end(&event, FXT_EVENT_INSTANT, STRING_TRACE, STRING_LOSS);
}

/* Counters that the summary has no room for are in an event `counts` before it. */
enum { FIRST_COUNTERS = FXT_ARGS_MAX - 4 /* sampled, events, lost, snapshot */ };

static bool
counter_wanted(const struct rb_vm_trace_stream *stream, uint64_t count)
{
    return stream->rate || stream_always_counted_p(stream) || count;
}

/* Write counters from the `from`-th on, at most `most` of those that are wanted. */
static bool
write_stream_counters(struct vm_trace_event *event, const struct vm_trace_totals *totals, unsigned from, unsigned most)
{
    unsigned number = 0;
    EACH_STREAM(stream, counters) {
        for (size_t i = 0; stream->counters[i]; i++) {
            const char *name = stream->counters[i];
            uint64_t count = totals->counters[stream->first_counter + i];
            if (!counter_wanted(stream, count) || number++ < from || number > from + most) continue;
            struct vm_trace_slot slot = { .index = rb_vm_trace_known_string(name) };
            if (!slot.index && !rb_vm_trace_writer_define(event->writer, &slot, name, strlen(name))) return false;
            event_uint64(event, (enum known_string)slot.index, count);
        }
    }
    return true;
}

bool
rb_vm_trace_more_counts_p(const struct vm_trace_totals *totals)
{
    unsigned wanted = 0;
    EACH_STREAM(stream, counters) {
        for (size_t i = 0; stream->counters[i]; i++)
            wanted += counter_wanted(stream, totals->counters[stream->first_counter + i]);
    }
    return wanted > FIRST_COUNTERS;
}

bool
rb_vm_trace_write_counts(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    static const char NAME[] = "counts";
    const struct vm_trace_totals *totals = what;
    struct vm_trace_event event;
    struct vm_trace_slot slot;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, clock_now_ns(&ractor->clock)) ||
        !rb_vm_trace_writer_define(event.writer, &slot, NAME, sizeof(NAME) - 1) ||
        !write_stream_counters(&event, totals, FIRST_COUNTERS, FXT_ARGS_MAX))
        return false;
    return event_end(&event, FXT_EVENT_INSTANT, STRING_TRACE, slot.index);
}

bool
rb_vm_trace_write_summary(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    const struct vm_trace_summary *summary = what;
    const struct vm_trace_totals *totals = &summary->totals;
    uint64_t now_ns = clock_now_ns(&ractor->clock);
    struct vm_trace_event event;
    if (!rb_vm_trace_event_begin(&event, ractor, ec, now_ns < summary->least_ns ? summary->least_ns : now_ns))
        return false;
    event_uint64(&event, STRING_SAMPLED, totals->sampled);
    event_uint64(&event, STRING_EVENTS, totals->events);
    event_uint64(&event, STRING_LOST, totals->lost);
    if (summary->snapshot && !event_text(&event, STRING_SNAPSHOT, summary->snapshot, strlen(summary->snapshot)))
        return false;
    if (!write_stream_counters(&event, totals, 0, FIRST_COUNTERS)) return false;
    return event_end(&event, FXT_EVENT_INSTANT, STRING_TRACE, STRING_SUMMARY);
}
