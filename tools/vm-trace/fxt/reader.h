#ifndef READER_H
#define READER_H
/* reader.h - reads Fuchsia trace files of any origin, and passes their contents to a visitor,
 * record by record.
 *
 * The rules are those of Perfetto's importer: a record that Perfetto drops is not passed on, one
 * that it accepts with a flaw is. Flaws are reported with their offset, even if Perfetto ignores
 * them silently. No file can make the reader crash, loop, or use more memory than its budget.
 *
 *      reader_new -> reader_read(path) for each file -> reader_free
 *
 * What a visitor receives is valid until its function returns, except strings with an id: those
 * live as long as the reader.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "vm_trace/schema/fxt.h"
#include "fxt/known_strings.h"
#include "fxt/parts.h"

enum fxt_severity {
    FXT_WARNING, /* legal, but without effect */
    FXT_FAULT,   /* breaks the format */
    FXT_FATAL,   /* reading ends here */
};

/* The faults: name, severity, and the counter in which Perfetto counts them ("": in none). */
#define FXT_FAULTS(F) \
    F(NOT_A_TRACE, FATAL, "") \
    F(TRUNCATED, FATAL, "") \
    F(SIZE_ZERO, FATAL, "") \
    F(READ_FAILED, FATAL, "") \
    F(DAMAGED_GZIP, FATAL, "") \
    F(OUT_OF_BUDGET, FATAL, "") \
    F(RECORD_TOO_SHORT, FAULT, "fuchsia_record_read_error") \
    F(RECORD_LENGTH, FAULT, "") \
    F(RESERVED_BITS, FAULT, "") \
    F(BAD_INDEX, FAULT, "") \
    F(NOT_ZERO_PADDED, FAULT, "") \
    F(UNDEFINED_STRING, FAULT, "fuchsia_invalid_string_ref") \
    F(BLOB_NAME, FAULT, "") \
    F(BLOB_PACKET, FAULT, "") \
    F(BLOB_CUT, WARNING, "") \
    F(UNDEFINED_THREAD, FAULT, "") \
    F(UNKNOWN_PROVIDER, FAULT, "") \
    F(NO_PROVIDER, FAULT, "fuchsia_invalid_event") \
    F(NO_INITIALIZATION, FAULT, "") \
    F(BAD_TICK_RATE, FAULT, "") \
    F(TIME_OVERFLOW, FAULT, "fuchsia_timestamp_overflow") \
    F(ENDS_BEFORE_BEGIN, FAULT, "fuchsia_timestamp_overflow") \
    F(ARGUMENT_SIZE, FAULT, "") \
    F(ARGUMENT_TYPE, FAULT, "") \
    F(BAD_PROCESS_ARGUMENT, FAULT, "fuchsia_invalid_event_arg_type") \
    F(SCHED_ARGUMENT, FAULT, "fuchsia_invalid_event_arg_type") \
    F(NOT_A_NUMBER, FAULT, "fuchsia_non_numeric_counters") \
    F(UNKNOWN_RECORD, WARNING, "") \
    F(UNKNOWN_METADATA, WARNING, "") \
    F(UNKNOWN_EVENT, WARNING, "") \
    F(UNKNOWN_SCHEDULING, WARNING, "") \
    F(BUFFER_FILLED, WARNING, "") \
    F(NOT_UTF8, WARNING, "") \
    F(ID_CUT, WARNING, "") \
    /* from here on: found by users of the reader, about the meaning of several records */ \
    F(END_WITHOUT_BEGIN, FAULT, "") \
    F(BEGIN_WITHOUT_END, WARNING, "") \
    F(WRONG_END, FAULT, "") \
    F(NESTED_TOO_DEEPLY, FAULT, "") \
    F(TOO_MUCH_TO_CHECK, WARNING, "") \
    F(SCHEMA, FAULT, "")

enum fxt_fault_code {
#define FXT_FAULT_CODE(name, severity, stat) FXT_FAULT_##name,
    FXT_FAULTS(FXT_FAULT_CODE)
#undef FXT_FAULT_CODE
    FXT_FAULT_CODES
};

struct fxt_fault {
    enum fxt_fault_code code;
    enum fxt_severity severity;
    uint64_t offset;  /* of the record, in the file */
    const char *text; /* printable: text from the file is escaped */
};

struct fxt_arg {
    enum fxt_arg_type type;
    struct fxt_string name;
    union {
        int64_t i64;  /* FXT_ARG_INT32, INT64 */
        uint64_t u64; /* FXT_ARG_UINT32, UINT64, POINTER, KOID */
        double f64;
        bool boolean;
        struct fxt_string string;
    };
};

/* Ids of processes and threads are truncated to 32 bits, as in Perfetto. */
struct fxt_event {
    enum fxt_event_type type;
    uint64_t offset;
    int64_t ts_ns;
    int64_t end_ns; /* FXT_EVENT_DURATION_COMPLETE */
    uint64_t id;    /* of counter, async, flow */
    uint32_t provider;
    uint32_t recording; /* see spool_names.h */
    uint32_t process;   /* the number of this pid of this recording, for all files: equal pids may be two processes */
    uint32_t pid;
    uint32_t tid;
    unsigned arg_count;
    struct fxt_string category;
    struct fxt_string name;
    uint8_t place[KNOWN_STRINGS_END]; /* where the argument with that name is, if there is one: see fxt_event_arg */
    struct fxt_arg args[FXT_ARGS_MAX];
};

/* The name of a process (FXT_OBJECT_PROCESS, with a pid) or of a thread (FXT_OBJECT_THREAD, with
 * a tid). */
struct fxt_object {
    unsigned type;
    uint32_t provider;
    uint32_t recording, process; /* as of an event */
    uint64_t offset;
    uint32_t pid;
    uint32_t tid;
    uint64_t raw_tid;
    uint64_t raw_pid;
    struct fxt_string name;
};

/* Tids are not truncated here: Perfetto tells threads in scheduling records apart by all bits. */
struct fxt_sched {
    enum fxt_sched_type type;
    uint64_t offset;
    int64_t ts_ns;
    uint32_t cpu;
    unsigned out_state;
    uint64_t out_tid; /* of a wake-up: the thread that wakes up */
    uint64_t in_tid;
    uint32_t provider;
    uint32_t recording;
    uint32_t out_pid; /* FXT_SCHED_LEGACY_SWITCH; the other records name no process */
    uint32_t in_pid;
    int32_t out_priority; /* FXT_SCHED_LEGACY_SWITCH */
    int32_t in_priority;
    bool dropped; /* an argument has the wrong type: the record only makes its threads known */
    unsigned arg_count;
    struct fxt_arg args[FXT_ARGS_MAX];
};

/* A blob of Perfetto's packets (fxt/packet.h), whole ones only. */
struct fxt_blob {
    uint64_t offset;
    const uint8_t *bytes;
    size_t len;
    uint32_t provider;
    uint32_t recording;
};

/* A record as it is in the file. */
struct fxt_record {
    enum fxt_record_type type; /* or an unknown number */
    uint64_t header;
    uint64_t offset;
    const uint8_t *bytes; /* including the header */
    size_t words;
    uint32_t provider; /* the record's provider; for a provider info or section record, the one that it names */
};

/* Functions may be NULL. */
struct fxt_visitor {
    void *context;
    void (*event)(void *context, const struct fxt_event *event);
    void (*object)(void *context, const struct fxt_object *object);
    void (*sched)(void *context, const struct fxt_sched *sched);
    void (*blob)(void *context, const struct fxt_blob *blob);
    /* A provider info record: a new chunk begins. */
    void (*chunk)(void *context, uint32_t provider, struct fxt_string name, uint64_t offset);
    /* Every record that has a provider, including padding, after its contents were passed on. */
    void (*record)(void *context, const struct fxt_record *record);
    void *fault_context;
    void (*fault)(void *fault_context, const struct fxt_fault *fault);
    /* Called now and then with the bytes read and the size of the file (INPUT_SIZE_UNKNOWN of
     * input.h for a pipe). Gets fault_context. */
    void (*progress)(void *fault_context, uint64_t bytes, uint64_t size);
};

/* What was read of the file so far. */
struct fxt_counts {
    uint64_t bytes;
    uint64_t records; /* all, including padding */
    uint64_t padding_records;
    uint64_t padding_bytes;
    uint64_t events;
    uint64_t chunks;
    uint64_t faults[FXT_FAULT_CODES];
};

struct reader;

/* The reader keeps names and tables of up to about limit_bytes. */
struct reader *reader_new(size_t limit_bytes);
void reader_free(struct reader *reader);
struct pool *reader_pool(struct reader *reader);
/* The string that the provider of the current record has defined at this index (below FXT_STRING_INDEXES); with
 * STRING_NONE as its id if there is none. */
struct fxt_string reader_string(const struct reader *reader, unsigned index);
/* For users of the reader whose own tables share its limit. */
struct budget *reader_budget(struct reader *reader);
/* Reports once that the budget is used up, and stops reading. */
void reader_out_of_budget(struct reader *reader);

/* Reads a file from start to end ("-" is standard input), compressed with gzip or not. Returns
 * 0, or errno if the file cannot be opened; everything else is reported as faults. The tables of
 * providers start empty; the pool is kept, and so are the numbers of recordings and processes. */
int reader_read(struct reader *reader, const char *path, const struct fxt_visitor *visitor);
/* Reads the file that was read last again, as far as it was read, whatever memory that took. */
int reader_read_again(struct reader *reader, const char *path, const struct fxt_visitor *visitor);
/* The next file begins a recording, whatever its name says. */
void reader_new_recording(struct reader *reader);
/* The number of a process, as events have it; from 0. */
uint32_t reader_process(struct reader *reader, uint32_t recording, uint32_t pid);
const struct fxt_counts *reader_counts(const struct reader *reader);
/* The files that were not read as a whole, up to now; not those of which the trace itself says that events are missing. */
const struct fxt_parts *reader_parts(const struct reader *reader);
/* Says in them that only this was asked for (malloc'ed, or NULL). */
void reader_choose(struct reader *reader, char *chosen);
/* Whether reading the last file ended early, and it is known to go on. */
bool reader_stopped(const struct reader *reader);
/* Returns whether parts of the file were overwritten while it was read: statements about the
 * whole file need not agree then. */
bool reader_moved(const struct reader *reader);

/* Reports a fault that a visitor found, as if the reader had found it. */
void reader_fault(struct reader *reader, enum fxt_fault_code code, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
const char *fxt_fault_stat(enum fxt_fault_code code);

/* Returns the argument with this name (the last one, as in Perfetto), or NULL. `name` is an enum
 * known_string. */
static inline const struct fxt_arg *
fxt_event_arg(const struct fxt_event *event, uint32_t name)
{
    unsigned place = event->place[name];
    return place < event->arg_count && event->args[place].name.id == name ? &event->args[place] : NULL;
}

/* Returns the text of an argument; the empty string, with STRING_NONE as its id, if there is none. */
static inline struct fxt_string
fxt_event_text(const struct fxt_event *event, uint32_t name)
{
    const struct fxt_arg *arg = fxt_event_arg(event, name);
    return arg != NULL && arg->type == FXT_ARG_STRING ? arg->string : (struct fxt_string){.ptr = ""};
}
/* The end of an event that its thread wrote itself, among the records of its states. INT64_MIN: the recorder writes
 * system calls and times on CPUs, into other chunks. */
int64_t fxt_event_seen_ns(const struct fxt_event *event);
/* Returns false if there is no argument, or if it is not an unsigned number. */
bool fxt_arg_uint(const struct fxt_arg *arg, uint64_t *value_out);

#endif
