/*
 * Markers. See markers.h.
 */
#include "vm_trace/streams/markers/markers.h"

#include <string.h>

#define CACHED 256 /* a power of two */

struct vm_trace_marker_state {
    uint64_t written;
    struct vm_trace_string *texts[CACHED]; /* used last, by their address in the program: no lock is taken for these */
};

int rb_vm_trace_markers_on;

/* Not a known string, for most traces have no markers. */

static struct vm_trace_marker_state *
markers_of(const struct rb_vm_trace_ractor *ractor)
{
    return stream_state(&rb_vm_trace_markers, ractor);
}

/*
 * The interned text, which stays until its place in the cache is needed. Literals and symbols keep
 * their address, so that they are found again by it. NULL: no memory.
 */
static const struct vm_trace_string *
cached_text(struct vm_trace_marker_state *state, const char *text, size_t bytes)
{
    uint64_t hash = ((uint64_t)(uintptr_t)text ^ bytes) * UINT64_C(0x9E3779B97F4A7C15);
    struct vm_trace_string **at = &state->texts[hash >> 56 & (CACHED - 1)], *known = *at;
    if (known && known->bytes == bytes && memcmp(known->text, text, bytes) == 0) return known;
    struct vm_trace_string *string = rb_vm_trace_string_intern(text, bytes);
    if (!string) return NULL;
    rb_vm_trace_string_release(known);
    *at = string;
    return string;
}

static bool
put_argument(struct vm_trace_event *event, struct vm_trace_marker_state *state,
             const struct vm_trace_marker_argument *argument)
{
    /* A text at a time: the next one may take its place in the cache. */
    unsigned key, value;
    const struct vm_trace_string *string = cached_text(state, argument->key, argument->key_bytes);
    if (!string || !writer_interned(event->writer, string, &key)) return false;
    switch (argument->type) {
      case FXT_ARG_STRING:
        string = cached_text(state, argument->text, argument->text_bytes);
        if (!string || !writer_interned(event->writer, string, &value)) return false;
        event->record[event->words++] = fxt_string_argument(key, value);
        break;
      case FXT_ARG_NULL:
      case FXT_ARG_BOOL:
        event->record[event->words++] =
            fxt_argument_header(argument->type, 1, key) | fxt_field(argument->bits, FXT_ARG_VALUE_32);
        break;
      default:
        event->record[event->words++] = fxt_argument_header(argument->type, 2, key);
        event->record[event->words++] = argument->bits;
        break;
    }
    event->arguments++;
    return true;
}

struct marker_event {
    const struct vm_trace_marker *marker;
    const struct vm_trace_string *name; /* NULL: the marker's text */
    uint64_t ns;
};

static bool
write_marker(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    static const char LEFT_OUT[] = "left_out";
    const struct marker_event *written = what;
    const struct vm_trace_marker *marker = written->marker;
    struct vm_trace_marker_state *state = markers_of(ractor);
    struct vm_trace_event event;
    unsigned in, name, key;
    if (!rb_vm_trace_event_begin_in_fiber(&event, ractor, ec, written->ns)) return false;
    const struct vm_trace_string *string =
        written->name ? written->name : cached_text(state, marker->name, marker->name_bytes);
    if (!string || !writer_interned(event.writer, KNOWN(MARKER), &in) || !writer_interned(event.writer, string, &name))
        return false;
    for (unsigned i = 0; i < marker->argument_count; i++) {
        if (!put_argument(&event, state, &marker->arguments[i])) return false;
    }
    if (marker->left_out) {
        string = cached_text(state, LEFT_OUT, sizeof(LEFT_OUT) - 1);
        if (!string || !writer_interned(event.writer, string, &key)) return false;
        event_uint32(&event, (enum known_string)key, marker->left_out);
    }
    if (marker->type == FXT_EVENT_COUNTER) return event_end_id(&event, marker->type, (enum known_string)in, name, 0);
    return event_end(&event, marker->type, (enum known_string)in, name);
}

bool
rb_vm_trace_marker_same_trace_p(rb_vm_trace_span span)
{
    return span == trace_id() && trace_on() && rb_vm_trace_markers_on;
}

static rb_vm_trace_span
write_event(const struct vm_trace_marker *marker, const struct vm_trace_string *name)
{
    struct rb_execution_context_struct *ec = trace_on() ? rb_vm_trace_host_current() : NULL;
    if (!ec) return 0;
    struct rb_vm_trace_ractor *ractor = rb_vm_trace_ractor_of(ec);
    if (!ractor) return 0;
    if (ractor == rb_vm_trace_capture.overflow || (!name && !marker->name)) { /* the former is shared by ractors */
        __atomic_fetch_add(&ractor->lost, 1, __ATOMIC_RELAXED);
        return 0;
    }
    struct marker_event event = { marker, name, clock_now_ns(&ractor->clock) };
    if (!rb_vm_trace_event_write(ractor, ec, write_marker, &event)) return 0;
    markers_of(ractor)->written++;
    return trace_id();
}

rb_vm_trace_span
rb_vm_trace_marker_write(const struct vm_trace_marker *marker)
{
    return write_event(marker, NULL);
}

/* --- for extensions ---------------------------------------------------------------------------------- */

const rb_vm_trace_marker *
rb_vm_trace_marker_name(const char *name)
{
    return rb_vm_trace_string_permanent(name, strlen(name));
}

void
rb_vm_trace_marker_instant_slow(const rb_vm_trace_marker *name)
{
    write_event(&(struct vm_trace_marker){ .type = FXT_EVENT_INSTANT }, name);
}

rb_vm_trace_span
rb_vm_trace_marker_begin_slow(const rb_vm_trace_marker *name)
{
    return write_event(&(struct vm_trace_marker){ .type = FXT_EVENT_DURATION_BEGIN }, name);
}

void
rb_vm_trace_marker_end_slow(const rb_vm_trace_marker *name, rb_vm_trace_span span)
{
    if (!rb_vm_trace_marker_same_trace_p(span)) return;
    write_event(&(struct vm_trace_marker){ .type = FXT_EVENT_DURATION_END }, name);
}

void
rb_vm_trace_marker_counter_slow(const rb_vm_trace_marker *name, int64_t value)
{
    struct vm_trace_marker_argument argument = {
        .key = "value", .key_bytes = 5, .type = FXT_ARG_INT64, .bits = (uint64_t)value
    };
    struct vm_trace_marker counter = { .type = FXT_EVENT_COUNTER, .arguments = &argument, .argument_count = 1 };
    write_event(&counter, name);
}

/* --- the stream --------------------------------------------------------------------------------------- */

static const char *
start_markers(bool by_flags)
{
    (void)by_flags;
    if (!rb_vm_trace_markers.rate) return NULL;
    if (!rb_vm_trace_known_init()) return "out of memory";
    rb_vm_trace_markers_on = 1;
    return NULL;
}

static void
stop_markers(void)
{
    rb_vm_trace_markers_on = 0;
}

static void
count_from_0(struct rb_vm_trace_ractor *ractor)
{
    markers_of(ractor)->written = 0;
}

static void
free_texts(struct rb_vm_trace_ractor *ractor)
{
    struct vm_trace_marker_state *state = markers_of(ractor);
    for (size_t i = 0; i < CACHED; i++) rb_vm_trace_string_release(state->texts[i]);
}

static void
add_count(const struct rb_vm_trace_ractor *ractor, struct vm_trace_totals *totals)
{
    *stream_counter(&rb_vm_trace_markers, totals, 0) += markers_of(ractor)->written;
}

static const char *const counters[] = { "markers", NULL };

struct rb_vm_trace_stream rb_vm_trace_markers = {
    .name = "markers",
    .counters = counters,
    .without_jit = true,
    .ractor_bytes = sizeof(struct vm_trace_marker_state),
    .start = start_markers,
    .stop = stop_markers,
    .ractor_begin = count_from_0,
    .ractor_epoch = count_from_0,
    .ractor_free = free_texts,
    .ractor_count = add_count
};
