/*
 * Reading traces strictly. See validate.h.
 */
#include "harness.h"
#include "validate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RECORD_METADATA = 0, RECORD_INIT = 1, RECORD_STRING = 2, RECORD_THREAD = 3, RECORD_EVENT = 4, RECORD_BLOB = 5,
    RECORD_OBJECT = 7, RECORD_SCHEDULING = 8
};
enum { OBJECT_PROCESS = 1, OBJECT_THREAD = 2 };
enum {
    ARGUMENT_NULL = 0, ARGUMENT_INT32 = 1, ARGUMENT_UINT32 = 2, ARGUMENT_INT64 = 3, ARGUMENT_UINT64 = 4,
    ARGUMENT_DOUBLE = 5, ARGUMENT_STRING = 6, ARGUMENT_KOID = 8, ARGUMENT_BOOL = 9
};
#define MAGIC UINT64_C(0x0016547846040010)
#define STRINGS 32768
#define THREADS 256

struct text {
    const char *text;
    size_t bytes;
    unsigned chunk;  /* where it was defined, from 1 */
};

struct named {
    uint64_t koid;
    uint64_t process;
    const char *name;
};

struct span {
    uint64_t tid;
    const char *category, *name;
};

/* A duration in one record that is not yet inside another one. */
struct slice {
    uint64_t tid, begin_ns, end_ns;
};

/* An async event, or a flow. */
struct number {
    uint64_t id;
    bool flow, begun, ended;
    const char *name;
};

/* What is known at one place of the file, and all memory that the events point into. */
struct trace_reader {
    struct text *strings;  /* by index; those of earlier chunks count for nothing */
    struct {
        bool defined;
        uint64_t pid, tid;
    } threads[THREADS];
    struct named *named;   /* threads and processes, of the whole file */
    size_t named_count;
    struct generation *generations; /* of stack samples, one for each sequence of the chunk */
    size_t generation_count;
    struct span *spans;    /* open durations */
    size_t span_count;
    struct slice *slices;  /* of the chunk */
    size_t slice_count;
    struct number *numbers;
    size_t number_count;
    void **memory;
    size_t memory_count, memory_capacity;
    bool clock;            /* the chunk has its initialization record */
};

static uint64_t
bits(uint64_t word, unsigned first, unsigned count)
{
    return word >> first & ((UINT64_C(1) << count) - 1);
}

static bool __attribute__((format(printf, 3, 4)))
fault(struct trace *trace, size_t word, const char *format, ...)
{
    int n = snprintf(trace->fault, sizeof(trace->fault), "at byte %zu: ", word * 8);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(trace->fault + n, sizeof(trace->fault) - (size_t)n, format, arguments);
    va_end(arguments);
    return false;
}

static void *
grown(void *array, size_t count, size_t size)
{
    /* To the next power of two, and only when the count is one. */
    if (count & (count - 1)) return array;
    void *more = realloc(array, (count ? count * 2 : 1) * size);
    if (!more) abort();
    return more;
}

static const char *
keep(struct trace_reader *reader, const char *text, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    if (!copy) abort();
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    reader->memory = grown(reader->memory, reader->memory_count, sizeof(*reader->memory));
    reader->memory[reader->memory_count++] = copy;
    return copy;
}

static bool
utf8_p(const unsigned char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; ) {
        size_t more = text[i] < 0x80 ? 0 : text[i] >= 0xC2 && text[i] < 0xE0 ? 1 : text[i] >= 0xE0 && text[i] < 0xF0 ? 2 :
            text[i] >= 0xF0 && text[i] < 0xF5 ? 3 : 9;
        if (more >= bytes - i) return false;
        for (size_t j = 1; j <= more; j++) {
            if ((text[i + j] & 0xC0) != 0x80) return false;
        }
        i += more + 1;
    }
    return true;
}

/* Text of `bytes` in `room` words: they must be just enough, with zeros behind. */
static bool
text_in(struct trace *trace, const uint64_t *words, size_t at, size_t room, size_t bytes, const char **text_out)
{
    if ((bytes + 7) / 8 != room) return fault(trace, at, "text of %zu bytes in %zu words", bytes, room);
    const unsigned char *text = (const unsigned char *)(words + at);
    for (size_t i = bytes; i < room * 8; i++) {
        if (text[i]) return fault(trace, at, "text is padded with something else than zeros");
    }
    if (!utf8_p(text, bytes)) return fault(trace, at, "text is not UTF-8: %.*s", (int)(bytes > 80 ? 80 : bytes), (const char *)text);
    *text_out = keep(trace->reader, (const char *)text, bytes);
    return true;
}

static bool
defined_p(const struct trace *trace, unsigned index)
{
    return trace->chunk_count != 0 && trace->reader->strings[index].chunk == trace->chunk_count;
}

static bool
reference(struct trace *trace, size_t at, uint64_t index, struct text *text_out)
{
    if (index >= STRINGS) return fault(trace, at, "an inline string, which the tracer never writes");
    if (index == 0) {
        *text_out = (struct text){ "", 0, 0 };
        return true;
    }
    *text_out = trace->reader->strings[index];
    if (!defined_p(trace, (unsigned)index)) return fault(trace, at, "string %u is not defined in this chunk", (unsigned)index);
    return true;
}

static struct named *
find_named(struct trace *trace, uint64_t koid, uint64_t process)
{
    for (size_t i = trace->reader->named_count; i-- > 0; ) {
        struct named *named = &trace->reader->named[i];
        if (named->koid == koid && named->process == process) return named;
    }
    return NULL;
}

static const char *
name_of(struct trace *trace, uint64_t koid, uint64_t process)
{
    const struct named *named = find_named(trace, koid, process);
    return named ? named->name : "";
}

static bool
arguments_in(struct trace *trace, const uint64_t *words, size_t at, size_t end, unsigned count, struct trace_argument *out)
{
    for (unsigned i = 0; i < count; i++) {
        if (at >= end) return fault(trace, at, "argument %u is behind the record's end", i);
        uint64_t head = words[at];
        size_t size = bits(head, 4, 12);
        unsigned type = (unsigned)bits(head, 0, 4);
        struct text name, value;
        if (!reference(trace, at, bits(head, 16, 16), &name)) return false;
        if (name.bytes == 0) return fault(trace, at, "argument %u has no name", i);
        for (unsigned j = 0; j < i; j++) {
            if (strcmp(out[j].name, name.text) == 0) return fault(trace, at, "two arguments are called %s", name.text);
        }
        out[i] = (struct trace_argument){ .name = name.text };
        size_t wanted = type == ARGUMENT_UINT64 || type == ARGUMENT_KOID || type == ARGUMENT_INT64 || type == ARGUMENT_DOUBLE ? 2 : 1;
        if (size != wanted) return fault(trace, at, "argument of type %u has %zu words", type, size);
        if (at + size > end) return fault(trace, at, "argument %s ends behind the record", name.text);
        switch (type) {
          case ARGUMENT_UINT32:
            out[i].number = bits(head, 32, 32);
            out[i].bits = 32;
            break;
          case ARGUMENT_INT32:
            out[i].number = (uint64_t)(int64_t)(int32_t)bits(head, 32, 32);
            out[i].bits = 32;
            break;
          case ARGUMENT_NULL:
            break;
          case ARGUMENT_BOOL:
            if (bits(head, 33, 31) != 0) return fault(trace, at, "argument %s is a bool that is neither 0 nor 1", name.text);
            out[i].number = bits(head, 32, 1);
            out[i].bits = 32;
            break;
          case ARGUMENT_INT64:
          case ARGUMENT_DOUBLE:
          case ARGUMENT_UINT64:
          case ARGUMENT_KOID:
            if (bits(head, 32, 32)) return fault(trace, at, "reserved bits of argument %s are set", name.text);
            out[i].number = words[at + 1];
            out[i].bits = 64;
            break;
          case ARGUMENT_STRING:
            if (bits(head, 48, 16)) return fault(trace, at, "reserved bits of argument %s are set", name.text);
            if (!reference(trace, at, bits(head, 32, 16), &value)) return false;
            out[i].text = value.text;
            out[i].bytes = value.bytes;
            break;
          default:
            return fault(trace, at, "argument %s has type %u, which the tracer never writes", name.text, type);
        }
        at += size;
    }
    if (at != end) return fault(trace, at, "%zu words behind the last argument", end - at);
    return true;
}

static bool
read_metadata(struct trace *trace, const uint64_t *words, size_t at, size_t size)
{
    struct trace_reader *reader = trace->reader;
    uint64_t head = words[at];
    const char *name;
    if (bits(head, 16, 4) != 1) return fault(trace, at, "metadata of type %u, which the tracer never writes", (unsigned)bits(head, 16, 4));
    if (bits(head, 60, 4)) return fault(trace, at, "reserved bits of the provider record are set");
    if (bits(head, 20, 32) == 0) return fault(trace, at, "provider 0");
    if (!text_in(trace, words, at + 1, size - 1, bits(head, 52, 8), &name)) return false;

    /* The tables are empty from here on. */
    memset(reader->threads, 0, sizeof(reader->threads));
    reader->clock = false;
    reader->generation_count = reader->slice_count = 0; /* a chunk stands alone */
    trace->chunk_count++;
    return true;
}

static bool
read_string(struct trace *trace, const uint64_t *words, size_t at, size_t size)
{
    uint64_t head = words[at];
    unsigned index = (unsigned)bits(head, 16, 15);
    struct text text = { NULL, bits(head, 32, 15), trace->chunk_count };
    if (bits(head, 31, 1) || bits(head, 47, 17)) return fault(trace, at, "reserved bits of a string record are set");
    if (index == 0) {
        /* A word is the note of an epoch: what a crash leaves of memory has some. */
        if (text.bytes && text.bytes != 8) return fault(trace, at, "string 0 has a text");
        trace->padding_words += size;
        return true;
    }
    trace->record_count++;
    if (trace->chunk_count == 0) return fault(trace, at, "string before a provider");
    if (text.bytes == 0) return fault(trace, at, "string %u is empty", index);
    if (defined_p(trace, index)) return fault(trace, at, "string %u is defined twice in a chunk", index);
    if (!text_in(trace, words, at + 1, size - 1, text.bytes, &text.text)) return false;
    trace->reader->strings[index] = text;
    trace->string_count++;
    return true;
}

static bool
read_thread(struct trace *trace, const uint64_t *words, size_t at, size_t size)
{
    uint64_t head = words[at];
    unsigned index = (unsigned)bits(head, 16, 8);
    if (size != 3) return fault(trace, at, "thread record of %zu words", size);
    if (bits(head, 24, 40)) return fault(trace, at, "reserved bits of a thread record are set");
    if (index == 0) return fault(trace, at, "thread 0 is defined");
    if (trace->reader->threads[index].defined) { /* for another thread, when all indexes are in use */
        for (unsigned i = 1; i < THREADS; i++) {
            if (!trace->reader->threads[i].defined) return fault(trace, at, "thread %u is defined twice in a chunk", index);
        }
        if (trace->reader->threads[index].tid == words[at + 2]) return fault(trace, at, "thread %u is defined again", index);
    }
    trace->reader->threads[index].defined = true;
    trace->reader->threads[index].pid = words[at + 1];
    trace->reader->threads[index].tid = words[at + 2];
    return true;
}

static bool
read_object(struct trace *trace, const uint64_t *words, size_t at, size_t size)
{
    uint64_t head = words[at];
    unsigned type = (unsigned)bits(head, 16, 8), count = (unsigned)bits(head, 40, 4);
    struct text name;
    struct trace_argument argument = { 0 };
    if (size < 2) return fault(trace, at, "kernel object record of %zu words", size);
    if (bits(head, 44, 20)) return fault(trace, at, "reserved bits of a kernel object record are set");
    if (!reference(trace, at, bits(head, 24, 16), &name)) return false;
    if (type == OBJECT_PROCESS ? count != 0 : type != OBJECT_THREAD || count != 1) {
        return fault(trace, at, "kernel object of type %u with %u arguments", type, count);
    }
    if (!arguments_in(trace, words, at + 2, at + size, count, &argument)) return false;
    if (type == OBJECT_THREAD && (strcmp(argument.name, "process") != 0 || argument.bits != 64)) {
        return fault(trace, at, "thread without its process");
    }

    struct trace_reader *reader = trace->reader;
    uint64_t process = type == OBJECT_THREAD ? argument.number : 0;
    struct named *named = find_named(trace, words[at + 1], process);
    if (!named) {
        reader->named = grown(reader->named, reader->named_count, sizeof(*named));
        named = &reader->named[reader->named_count++];
        named->koid = words[at + 1];
        named->process = process;
    }
    named->name = name.text;
    if (type == OBJECT_PROCESS) trace->process_name = name.text;
    trace->thread_name_count += type == OBJECT_THREAD;
    return true;
}

static bool
follow_span(struct trace *trace, size_t at, const struct trace_event *event)
{
    struct trace_reader *reader = trace->reader;
    if (event->type == EVENT_BEGIN) {
        reader->spans = grown(reader->spans, reader->span_count, sizeof(*reader->spans));
        reader->spans[reader->span_count++] = (struct span){ event->tid, event->category, event->name };
        return true;
    }
    size_t i = reader->span_count;
    while (i > 0 && reader->spans[i - 1].tid != event->tid) i--;
    if (i == 0) return fault(trace, at, "%s ends but did not begin", event->name);
    if (strcmp(reader->spans[i - 1].name, event->name) != 0 || strcmp(reader->spans[i - 1].category, event->category) != 0) {
        return fault(trace, at, "%s ends inside of %s", event->name, reader->spans[i - 1].name);
    }
    memmove(&reader->spans[i - 1], &reader->spans[i], (reader->span_count - i) * sizeof(*reader->spans));
    reader->span_count--;
    return true;
}

/*
 * Durations in one record are written when they end, inner ones first. Perfetto drops those that it
 * cannot nest, and of those that begin at the same time all but the innermost.
 */
static bool
follow_slice(struct trace *trace, size_t at, const struct trace_event *event)
{
    struct trace_reader *reader = trace->reader;
    if (event->id < event->ns) return fault(trace, at, "%s ends before it begins", event->name);
    size_t kept = 0;
    for (size_t i = 0; i < reader->slice_count; i++) {
        const struct slice *slice = &reader->slices[i];
        bool apart = slice->tid != event->tid || slice->end_ns <= event->ns || event->id <= slice->begin_ns;
        if (apart) reader->slices[kept++] = *slice;
        else if (slice->begin_ns == event->ns) return fault(trace, at, "%s begins together with an inner duration", event->name);
        else if (slice->begin_ns < event->ns || slice->end_ns > event->id) {
            return fault(trace, at, "%s does not nest with another duration", event->name);
        }
    }
    reader->slice_count = kept;
    reader->slices = grown(reader->slices, reader->slice_count, sizeof(*reader->slices));
    reader->slices[reader->slice_count++] = (struct slice){ event->tid, event->ns, event->id };
    return true;
}

/*
 * What has a number begins once and ends at most once. An async event begins first; an exit is written after what came of it, so
 * the begin of a flow may stand behind its step.
 */
static bool
follow_number(struct trace *trace, size_t at, const struct trace_event *event)
{
    struct trace_reader *reader = trace->reader;
    bool flow = event->type >= EVENT_FLOW_BEGIN, begin = event->type == EVENT_ASYNC_BEGIN || event->type == EVENT_FLOW_BEGIN;
    bool end = event->type == EVENT_ASYNC_END || event->type == EVENT_FLOW_END;
    size_t i = 0;
    while (i < reader->number_count && (reader->numbers[i].id != event->id || reader->numbers[i].flow != flow)) i++;
    if (i == reader->number_count) {
        if (!flow && !begin) return fault(trace, at, "%s ends but did not begin", event->name);
        reader->numbers = grown(reader->numbers, reader->number_count, sizeof(*reader->numbers));
        reader->numbers[reader->number_count++] = (struct number){ .id = event->id, .flow = flow, .name = event->name };
    }
    struct number *number = &reader->numbers[i];
    if (strcmp(number->name, event->name) != 0) return fault(trace, at, "%s has the number of %s", event->name, number->name);
    if (number->ended && !(flow && begin)) return fault(trace, at, "%s after the end of its number", event->name);
    if (begin && number->begun) return fault(trace, at, "%s begins twice", event->name);
    number->begun |= begin;
    number->ended |= end;
    return true;
}

/* Nothing may be missing of the trace. */
static bool
check_numbers(struct trace *trace)
{
    for (size_t i = 0; i < trace->reader->number_count; i++) {
        const struct number *number = &trace->reader->numbers[i];
        if (!number->begun) return fault(trace, 0, "flow %llx did not begin", (unsigned long long)number->id);
        if (!number->ended) ++*(number->flow ? &trace->open_flows : &trace->open_asyncs);
    }
    return true;
}

/* A flow binds to the event before it, which has the same thread and time. */
static bool
follow_flow(struct trace *trace, size_t at, const struct trace_event *event)
{
    const struct trace_event *last = trace->event_count ? &trace->events[trace->event_count - 1] : NULL;
    if (!last || last->tid != event->tid || last->ns != event->ns || last->chunk != event->chunk ||
        (last->type != EVENT_INSTANT && last->type != EVENT_BEGIN)) {
        return fault(trace, at, "flow without an event right before it");
    }
    return true;
}

static bool
read_event(struct trace *trace, const uint64_t *words, size_t at, size_t size)
{
    uint64_t head = words[at];
    struct text category, name;
    unsigned thread = (unsigned)bits(head, 24, 8);
    struct trace_event event = {
        .type = (enum trace_event_type)bits(head, 16, 4), .offset = at * 8, .chunk = trace->chunk_count - 1,
        .argument_count = (unsigned)bits(head, 20, 4)
    };
    if (trace->chunk_count == 0 || !trace->reader->clock) return fault(trace, at, "event before the provider and its clock");
    if (size < 2) return fault(trace, at, "event of %zu words", size);
    bool numbered = event.type == EVENT_COUNTER || (event.type >= EVENT_COMPLETE && event.type <= EVENT_FLOW_END);
    if (!numbered && event.type != EVENT_INSTANT && event.type != EVENT_BEGIN && event.type != EVENT_END) {
        return fault(trace, at, "event of type %u, which the tracer never writes", (unsigned)event.type);
    }
    if (!reference(trace, at, bits(head, 32, 16), &category) || !reference(trace, at, bits(head, 48, 16), &name)) return false;
    if (category.bytes == 0 || name.bytes == 0) return fault(trace, at, "event without a category or a name");
    if (thread == 0) return fault(trace, at, "event with an inline thread, which the tracer never writes");
    if (!trace->reader->threads[thread].defined) return fault(trace, at, "thread %u is not defined in this chunk", thread);
    event.category = category.text;
    event.name = name.text;
    event.ns = words[at + 1];
    event.pid = trace->reader->threads[thread].pid;
    event.tid = trace->reader->threads[thread].tid;
    event.process = name_of(trace, event.pid, 0);
    event.thread = name_of(trace, event.tid, event.pid);
    if (size < 2u + numbered) return fault(trace, at, "event of %zu words", size);
    if (numbered) event.id = words[at + size - 1];
    if (!arguments_in(trace, words, at + 2, at + size - numbered, event.argument_count, event.arguments)) return false;
    if ((event.type == EVENT_BEGIN || event.type == EVENT_END) && !follow_span(trace, at, &event)) return false;
    if (event.type == EVENT_COMPLETE && !follow_slice(trace, at, &event)) return false;
    if (event.type >= EVENT_ASYNC_BEGIN && !follow_number(trace, at, &event)) return false;
    if (event.type >= EVENT_FLOW_BEGIN && !follow_flow(trace, at, &event)) return false;

    trace->events = grown(trace->events, trace->event_count, sizeof(event));
    trace->events[trace->event_count++] = event;
    return true;
}

static bool
read_scheduling(struct trace *trace, const uint64_t *words, size_t at, size_t size)
{
    uint64_t head = words[at];
    unsigned type = (unsigned)bits(head, 60, 4), arguments = (unsigned)bits(head, 16, 4);
    struct trace_scheduling scheduling = { .ns = words[at + 1] };
    if (type == 0) {
        unsigned outgoing = (unsigned)bits(head, 28, 8), incoming = (unsigned)bits(head, 36, 8);
        if (size != 2) return fault(trace, at, "context switch of %zu words", size);
        if (outgoing == 0 || !trace->reader->threads[outgoing].defined || incoming == 0 || !trace->reader->threads[incoming].defined)
            return fault(trace, at, "context switch from thread %u to %u, which are not both defined", outgoing, incoming);
        if (bits(head, 44, 16) != 0) return fault(trace, at, "context switch with priorities");
        scheduling.cpu = (unsigned)bits(head, 16, 8);
        scheduling.state = (unsigned)bits(head, 24, 4);
        scheduling.outgoing = trace->reader->threads[outgoing].tid;
        scheduling.incoming = trace->reader->threads[incoming].tid;
        if ((scheduling.outgoing == 0) == (scheduling.incoming == 0)) return fault(trace, at, "context switch between two threads");
    }
    else {
        if (type != 2) return fault(trace, at, "scheduling record of type %u, which the tracer never writes", type);
        if (size != 3 + 2 * arguments || arguments > 1) return fault(trace, at, "wake-up of %zu words", size);
        struct text name = { "", 0, 0 };
        if (arguments && !reference(trace, at, bits(words[at + 3], 16, 16), &name)) return false;
        if (arguments && (bits(words[at + 3], 0, 4) != 8 || strcmp(name.text, "waker") != 0)) return fault(trace, at, "wake-up with %s", name.text);
        scheduling.wakeup = true;
        scheduling.cpu = (unsigned)bits(head, 20, 16);
        scheduling.outgoing = words[at + 2];
        scheduling.incoming = arguments ? words[at + 4] : 0;
    }
    trace->schedulings = grown(trace->schedulings, trace->scheduling_count, sizeof(scheduling));
    trace->schedulings[trace->scheduling_count++] = scheduling;
    return true;
}

/* --- stack samples ---------------------------------------------------------------------------------- */

struct bytes {
    const uint8_t *at, *end;
    bool bad;
};

struct field {
    unsigned number, type;
    uint64_t value;
    struct bytes in;
};

static uint64_t
varint(struct bytes *from)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && from->at < from->end; i++) {
        value |= (uint64_t)(*from->at & 0x7f) << (7 * i);
        if (!(*from->at++ & 0x80)) return value;
    }
    from->bad = true;
    return 0;
}

static bool
next_field(struct bytes *from, struct field *field)
{
    if (from->bad || from->at == from->end) return false;
    uint64_t tag = varint(from);
    *field = (struct field){ .number = (unsigned)(tag >> 3), .type = tag & 7, .value = varint(from) };
    if (field->type == 2) {
        if (field->value > (uint64_t)(from->end - from->at)) from->bad = true;
        else field->in = (struct bytes){ from->at, from->at += field->value, false };
    }
    else if (field->type != 0) from->bad = true;
    return !from->bad;
}

/* The last field of that number; zeros when there is none. */
static struct field
field_of(struct bytes from, unsigned number)
{
    struct field found = { 0 };
    for (struct field field; next_field(&from, &field); ) {
        if (field.number == number) found = field;
    }
    return found;
}

enum { INTERNED_TABLES = 50, INTERNED_MAX = 4096 };
struct generation {
    uint64_t sequence;
    bool lost_time;       /* it has the second counter */
    struct bytes tables[INTERNED_TABLES][INTERNED_MAX]; /* by field of InternedData: the first ones, which tests need */
};

static struct bytes
entry_of(const struct generation *generation, unsigned table, uint64_t iid)
{
    return iid < INTERNED_MAX ? generation->tables[table][iid] : (struct bytes){ 0 };
}

static bool
read_interned(struct trace *trace, size_t at, struct generation *generation, struct bytes data)
{
    for (struct field field; next_field(&data, &field); ) {
        uint64_t iid = field_of(field.in, 1).value;
        if (field.type != 2 || field.number >= INTERNED_TABLES || iid == 0)
            return fault(trace, at, "interned data without a number");
        trace->stack_count += field.number == 7;
        if (iid >= INTERNED_MAX) continue;
        if (generation->tables[field.number][iid].at) return fault(trace, at, "number %d is defined twice", (int)iid);
        generation->tables[field.number][iid] = field.in;
    }
    return !data.bad || fault(trace, at, "damaged interned data");
}

static size_t
put_entry(char *text, size_t room, const struct generation *generation, unsigned table, uint64_t iid)
{
    struct bytes entry = field_of(entry_of(generation, table, iid), 2).in;
    return (size_t)snprintf(text, room, "%.*s", (int)(entry.end - entry.at), entry.at ? (const char *)entry.at : "");
}

static bool
name_frame(struct trace *trace, size_t at, const struct generation *generation, uint64_t iid, char *text, size_t room)
{
    struct bytes frame = entry_of(generation, 6, iid);
    if (!frame.at) return fault(trace, at, "frame %d is not defined", (int)iid);
    static const unsigned kinds[] = { 0, 3, 4, 1 };
    uint64_t mapping = field_of(frame, 3).value, kind = field_of(frame, 7).value;
    uint64_t path = field_of(entry_of(generation, 19, mapping), 7).value;
    if (mapping == 0 || mapping > 3 || kinds[mapping] != kind)
        return fault(trace, at, "kind %d in mapping %d", (int)kind, (int)mapping);
    size_t used = put_entry(text, room, generation, 17, path);
    used += (size_t)snprintf(text + used, room - used, ":");
    used += put_entry(text + used, room - used, generation, 5, field_of(frame, 2).value);
    if (!field_of(frame, 5).value) return true;
    used += (size_t)snprintf(text + used, room - used, " ");
    used += put_entry(text + used, room - used, generation, 18, field_of(frame, 5).value);
    snprintf(text + used, room - used, ":%d", (int)field_of(frame, 6).value);
    return true;
}

static bool
read_sample(struct trace *trace, size_t at, const struct generation *generation, uint64_t ns, struct bytes sample)
{
    struct trace_sample found = { .ns = ns, .sequence = generation->sequence };
    struct bytes task = entry_of(generation, 48, field_of(sample, 2).value), lost = field_of(sample, 14).in;
    uint64_t stack_id = field_of(sample, 6).value;
    struct bytes stack = entry_of(generation, 7, stack_id);
    if (!task.at) return fault(trace, at, "a sample's thread is not defined");
    if (!stack.at && stack_id < INTERNED_MAX) return fault(trace, at, "a sample's stack is not defined");
    found.pid = field_of(task, 2).value;
    found.tid = field_of(task, 3).value;
    found.weight = field_of(sample, 11).value;
    found.has_lost = lost.at != NULL;
    if (found.has_lost && !generation->lost_time) return fault(trace, at, "lost time without its counter");
    if (found.has_lost) found.lost_ns = varint(&lost);
    if (lost.bad || lost.at != lost.end) return fault(trace, at, "lost time is not one number");
    const struct trace_event *event = trace->event_count ? &trace->events[trace->event_count - 1] : NULL;
    if (!event || event->ns != ns) return fault(trace, at, "a sample that is not behind its event");

    static char text[1 << 16];
    size_t used = 0;
    text[0] = '\0';
    for (struct field field; next_field(&stack, &field); ) {
        if (field.number != 2) continue;
        if (used) used += (size_t)snprintf(text + used, sizeof(text) - used, " < ");
        if (!name_frame(trace, at, generation, field.value, text + used, sizeof(text) - used)) return false;
        used += strlen(text + used);
    }
    found.stack = keep(trace->reader, text, used);
    trace->samples = grown(trace->samples, trace->sample_count, sizeof(found));
    trace->samples[trace->sample_count++] = found;
    return true;
}

static struct generation *
generation_of(struct trace *trace, uint64_t sequence, bool cleared)
{
    struct trace_reader *reader = trace->reader;
    struct generation *found = NULL;
    for (size_t i = 0; i < reader->generation_count; i++) {
        if (reader->generations[i].sequence == sequence) found = &reader->generations[i];
    }
    if (!cleared) return found;
    if (!found) {
        enum { SEQUENCES = 32 };
        if (!reader->generations) reader->generations = calloc(SEQUENCES, sizeof(*found));
        if (!reader->generations || reader->generation_count == SEQUENCES) abort();
        found = &reader->generations[reader->generation_count++];
    }
    memset(found, 0, sizeof(*found));
    found->sequence = sequence;
    return found;
}

static bool
read_blob(struct trace *trace, const uint64_t *words, size_t at, size_t size)
{
    uint64_t head = words[at], bytes = bits(head, 32, 15);
    if (bits(head, 16, 16) != 0 || bits(head, 48, 8) != 3 || bits(head, 56, 8) != 0 || size != 1 + (bytes + 7) / 8)
        return fault(trace, at, "a blob that is none of Perfetto's");
    struct bytes blob = { (const uint8_t *)&words[at + 1], (const uint8_t *)&words[at + 1] + bytes, false };
    for (const uint8_t *pad = blob.end; pad < (const uint8_t *)&words[at + size]; pad++) {
        if (*pad) return fault(trace, at, "bytes behind a blob");
    }
    for (struct field packet; next_field(&blob, &packet); ) {
        if (packet.number != 1 || packet.type != 2) return fault(trace, at, "no packet");
        uint64_t flags = field_of(packet.in, 13).value, sequence = field_of(packet.in, 10).value;
        if (flags != 1 && flags != 2) return fault(trace, at, "flags %d of a packet", (int)flags);
        struct generation *generation = generation_of(trace, sequence, flags == 1);
        if (!generation) return fault(trace, at, "a packet before its sequence began in this chunk");
        struct field defaults = field_of(field_of(packet.in, 59).in, 100), interned = field_of(packet.in, 12),
                     sample = field_of(packet.in, 135);
        if (defaults.in.at) generation->lost_time = field_of(defaults.in, 3).in.at != NULL;
        if (interned.in.at && !read_interned(trace, at, generation, interned.in)) return false;
        if (sample.in.at && !read_sample(trace, at, generation, field_of(packet.in, 8).value, sample.in)) return false;
    }
    return !blob.bad || fault(trace, at, "a damaged packet");
}

static bool
read_record(struct trace *trace, const uint64_t *words, size_t at, size_t size)
{
    unsigned type = (unsigned)bits(words[at], 0, 4);
    if (type == RECORD_STRING) return read_string(trace, words, at, size);
    trace->record_count++;
    if (type != RECORD_METADATA && trace->chunk_count == 0) return fault(trace, at, "record of type %u before a provider", type);
    switch (type) {
      case RECORD_METADATA: return read_metadata(trace, words, at, size);
      case RECORD_THREAD: return read_thread(trace, words, at, size);
      case RECORD_OBJECT: return read_object(trace, words, at, size);
      case RECORD_EVENT: return read_event(trace, words, at, size);
      case RECORD_BLOB: return read_blob(trace, words, at, size);
      case RECORD_SCHEDULING: return read_scheduling(trace, words, at, size);
      case RECORD_INIT:
        if (size != 2 || words[at + 1] == 0) return fault(trace, at, "initialization record without its ticks");
        trace->reader->clock = true;
        return true;
    }
    return fault(trace, at, "record of type %u, which the tracer never writes", type);
}

struct trace *
trace_decode(const void *data, size_t bytes, enum trace_part part)
{
    struct trace *trace = calloc(1, sizeof(*trace));
    struct trace_reader *reader = calloc(1, sizeof(*reader));
    if (!trace || !reader || !(reader->strings = calloc(STRINGS, sizeof(*reader->strings)))) abort();
    trace->reader = reader;

    const uint64_t *words = data;
    size_t count = bytes / 8, at = 0;
    if (bytes % 8) {
        fault(trace, count, "the size is no multiple of 8 bytes");
        return trace;
    }
    if (part == TRACE_FILE) {
        if (count == 0 || words[at++] != MAGIC) {
            fault(trace, 0, "no magic number");
            return trace;
        }
    }
    while (at < count) {
        size_t size = bits(words[at], 4, 12);
        if (size == 0) {
            fault(trace, at, "record of size 0");
            break;
        }
        if (size > count - at) {
            fault(trace, at, "record of %zu words, but %zu are left", size, count - at);
            break;
        }
        if (!read_record(trace, words, at, size)) break;
        at += size;
    }
    trace->open_spans = reader->span_count;
    if (!trace->fault[0] && trace_count(trace, "trace", "loss") == 0) check_numbers(trace);
    return trace;
}

uint8_t *
read_bytes(const char *path, size_t *bytes_out)
{
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be opened", path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(size > 0 ? (size_t)size : 1);
    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size) fail_msg("%s cannot be read", path);
    fclose(file);
    *bytes_out = (size_t)size;
    return bytes;
}

void
assert_unchanged(const char *path, uint8_t *before, size_t bytes)
{
    size_t bytes_after;
    uint8_t *after = read_bytes(path, &bytes_after);
    assert_int_equal(bytes_after, bytes);
    assert_memory_equal(before, after, bytes);
    free(before);
    free(after);
}

/* What the tool says; its output is shown when the test fails. */
static void
check_with_tool(const char *path)
{
    const char *tool = getenv("VM_TRACE");
    if (!tool || !*tool) return;
    char command[4096];
    snprintf(command, sizeof(command), "'%s' check '%s'", tool, path);
    fflush(NULL);
    int status = system(command);
    if (status != 0) fail_msg("%s: wait status %d", command, status);
}

struct trace *
trace_read(const char *path)
{
    size_t bytes;
    uint8_t *data = read_bytes(path, &bytes);
    struct trace *trace = trace_decode(data, bytes, TRACE_FILE);
    free(data);
    if (trace->fault[0]) fail_msg("%s: %s", path, trace->fault);
    check_with_tool(path);
    return trace;
}

void
trace_free(struct trace *trace)
{
    struct trace_reader *reader = trace->reader;
    for (size_t i = 0; i < reader->memory_count; i++) free(reader->memory[i]);
    free(reader->memory);
    free(reader->strings);
    free(reader->named);
    free(reader->spans);
    free(reader->slices);
    free(reader->numbers);
    free(reader->generations);
    free(reader);
    free(trace->events);
    free(trace->schedulings);
    free(trace->samples);
    free(trace);
}

bool
event_is(const struct trace_event *event, const char *category, const char *name)
{
    return (!category || strcmp(event->category, category) == 0) && (!name || strcmp(event->name, name) == 0);
}

const struct trace_event *
trace_event(const struct trace *trace, const char *category, const char *name, size_t nth)
{
    for (size_t i = 0; i < trace->event_count; i++) {
        if (event_is(&trace->events[i], category, name) && nth-- == 0) return &trace->events[i];
    }
    fail_msg("no such event: %s %s", category ? category : "", name ? name : "");
    return NULL;
}

size_t
trace_count(const struct trace *trace, const char *category, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->event_count; i++) count += event_is(&trace->events[i], category, name);
    return count;
}

const char *
trace_string(const struct trace *trace, unsigned index)
{
    return index < STRINGS && defined_p(trace, index) ? trace->reader->strings[index].text : NULL;
}

const struct trace_argument *
trace_argument(const struct trace_event *event, const char *name)
{
    for (unsigned i = 0; i < event->argument_count; i++) {
        if (strcmp(event->arguments[i].name, name) == 0) return &event->arguments[i];
    }
    return NULL;
}

const char *
trace_text(const struct trace_event *event, const char *name)
{
    const struct trace_argument *argument = trace_argument(event, name);
    if (!argument || !argument->text) fail_msg("%s has no text %s", event->name, name);
    return argument->text;
}

uint64_t
trace_counter(const struct trace_event *event, const char *name)
{
    return trace_argument(event, name) ? trace_number(event, name) : 0;
}

uint64_t
trace_number(const struct trace_event *event, const char *name)
{
    const struct trace_argument *argument = trace_argument(event, name);
    if (!argument || argument->text) fail_msg("%s has no number %s", event->name, name);
    return argument->number;
}
