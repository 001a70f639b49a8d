#ifndef VALIDATE_H
#define VALIDATE_H 1
/*
 * The one validator of every trace that a unit test makes: a strict reader of Fuchsia Trace
 * Format that shares nothing with the module (it does not include fxt.h). It takes only what
 * this tracer writes; anything else is a fault, with its offset.
 * https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_event_type {
    EVENT_INSTANT = 0, EVENT_COUNTER = 1, EVENT_BEGIN = 2, EVENT_END = 3, EVENT_COMPLETE = 4, EVENT_ASYNC_BEGIN = 5,
    EVENT_ASYNC_END = 7, EVENT_FLOW_BEGIN = 8, EVENT_FLOW_STEP = 9, EVENT_FLOW_END = 10
};

struct trace_argument {
    const char *name;
    const char *text;     /* NULL: a number */
    size_t bytes;         /* of the text */
    uint64_t number;
    unsigned bits;        /* of the number: 32 or 64 */
};

struct trace_event {
    enum trace_event_type type;
    const char *category, *name;
    uint64_t ns;
    uint64_t pid, tid;
    uint64_t id;          /* of a counter, an async event or a flow; when a complete duration ends, in ns */
    const char *thread;   /* its name as written last before the event; "" when none was */
    const char *process;
    size_t offset;        /* bytes, from where the decoding began */
    unsigned chunk;       /* provider records before it, less one */
    unsigned argument_count;
    struct trace_argument arguments[15];
};

/* A context switch, or a wake-up: then `incoming` wakes `outgoing`, 0 if nobody. */
struct trace_scheduling {
    bool wakeup;
    uint64_t ns;
    unsigned cpu, state;  /* state: of the outgoing thread */
    uint64_t outgoing, incoming;
};

/* A stack sample of the blob records (Perfetto's TracePacket.stack_sample). */
struct trace_sample {
    uint64_t ns, pid, tid;
    uint64_t sequence;
    uint64_t weight;
    bool has_lost;
    uint64_t lost_ns;
    const char *stack;    /* "outermost < ... < innermost", each "mapping:function path:line" */
};

struct trace {
    char fault[256];      /* "": none */
    struct trace_event *events;
    size_t event_count;
    struct trace_scheduling *schedulings;
    size_t scheduling_count;
    struct trace_sample *samples;
    size_t sample_count;
    size_t stack_count;   /* stacks that are defined, in all chunks */
    unsigned chunk_count; /* provider records */
    size_t record_count;  /* of all but padding and the magic number */
    size_t padding_words;
    size_t string_count;  /* records that define one */
    const char *process_name; /* as written last; of one process */
    size_t thread_name_count; /* records that name a thread */
    size_t open_spans;    /* durations that have not ended */
    size_t open_asyncs;   /* async events likewise */
    size_t open_flows;
    struct trace_reader *reader;
};

enum trace_part {
    TRACE_FILE,  /* begins with the magic number */
    TRACE_CHUNK  /* begins with a provider record, or holds only padding */
};

/* Decode all of `bytes`. Never NULL; look at `fault`. Free it with trace_free. */
struct trace *trace_decode(const void *words, size_t bytes, enum trace_part part);

/*
 * Decode a file and fail the test on any fault. When the environment has VM_TRACE, the path of
 * the tool, `vm-trace check` must find nothing either.
 */
struct trace *trace_read(const char *path);

void trace_free(struct trace *trace);

/* The nth (from 0) event of that category and name; NULL stands for any. Fails the test when there is none. */
const struct trace_event *trace_event(const struct trace *trace, const char *category, const char *name, size_t nth);
bool event_is(const struct trace_event *event, const char *category, const char *name);
size_t trace_count(const struct trace *trace, const char *category, const char *name);

/* Text of a string of the last chunk, or NULL when the index is not defined there. */
const char *trace_string(const struct trace *trace, unsigned index);

/* An argument, or NULL. */
const struct trace_argument *trace_argument(const struct trace_event *event, const char *name);

/* Text or number of an argument; fails the test when there is none of that kind. */
const char *trace_text(const struct trace_event *event, const char *name);
uint64_t trace_number(const struct trace_event *event, const char *name);

/* The same for a counter, which is 0 where it is not there. */
uint64_t trace_counter(const struct trace_event *event, const char *name);

/* A whole file in memory; free it. */
uint8_t *read_bytes(const char *path, size_t *bytes_out);

/* The file holds what read_bytes found before, and no more. Frees that. */
void assert_unchanged(const char *path, uint8_t *before, size_t bytes);

#endif /* VALIDATE_H */
