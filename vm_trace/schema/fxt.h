#ifndef RUBY_VM_TRACE_SCHEMA_FXT_H
#define RUBY_VM_TRACE_SCHEMA_FXT_H 1
/*
 * fxt.h - the layout of Fuchsia Trace Format records, for the module and for the tool: names of fields
 * and numbers, functions that read fields, and functions that make up words. Nothing of where they go.
 *
 * The specification is https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format ; each group
 * names its section. A record is a run of 8-byte little-endian words; its first word says its type and its
 * size. A field is written as its first and last bit, both included, as in the specification's tables.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Words are copied without swapping bytes. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
# error "FXT is little-endian, and words of a file are taken as they are in memory"
#endif

enum {
    FXT_WORD_BYTES = 8,
    FXT_RECORD_MAX_WORDS = 4095, /* 12 bits of size */
    FXT_ARGS_MAX = 15,           /* 4 bits of count */
};

/* The first 8 bytes of every file ("Magic number record"). Perfetto recognizes a Fuchsia trace
 * by these bytes alone. */
#define FXT_MAGIC_RECORD UINT64_C(0x0016547846040010)

/* "Record header" */
#define FXT_HEADER_TYPE 0, 3
#define FXT_HEADER_SIZE 4, 15
enum fxt_record_type {
    FXT_RECORD_METADATA = 0,
    FXT_RECORD_INITIALIZATION = 1,
    FXT_RECORD_STRING = 2,
    FXT_RECORD_THREAD = 3,
    FXT_RECORD_EVENT = 4,
    FXT_RECORD_BLOB = 5,
    FXT_RECORD_USERSPACE_OBJECT = 6,
    FXT_RECORD_KERNEL_OBJECT = 7,
    FXT_RECORD_SCHEDULING = 8,
    FXT_RECORD_LOG = 9,
    FXT_RECORD_LARGE = 15,
};

/* "Metadata record": provider info, provider section, provider event, trace info */
#define FXT_METADATA_TYPE 16, 19
#define FXT_PROVIDER_ID 20, 51
#define FXT_PROVIDER_NAME_BYTES 52, 59
enum fxt_metadata_type {
    FXT_METADATA_PROVIDER_INFO = 1,
    FXT_METADATA_PROVIDER_SECTION = 2,
    FXT_METADATA_PROVIDER_EVENT = 3,
    FXT_METADATA_TRACE_INFO = 4,
};

/* "String record": bits 31 and 47..63 are reserved. Index 0 defines nothing: a padding record, of any size. */
#define FXT_STRING_INDEX 16, 30
#define FXT_STRING_RESERVED_1 31, 31
#define FXT_STRING_BYTES 32, 46
#define FXT_STRING_RESERVED_2 47, 63
enum { FXT_STRING_INDEXES = 32768, FXT_MAX_STRING_INDEX = FXT_STRING_INDEXES - 1 };
/* A string record holds its text in at most 4,094 words, which is less than its 15 bits say. */
#define FXT_MAX_STRING_BYTES ((size_t)(FXT_RECORD_MAX_WORDS - 1) * FXT_WORD_BYTES)

/* "String references": 0 is the empty string, the top bit marks an inline string with its length in the rest */
#define FXT_STRING_REF_INLINE 0x8000u
#define FXT_STRING_REF_BYTES 0x7fffu

/* "Thread record"; "Thread references": 0 is an inline pair of process and thread id */
#define FXT_THREAD_INDEX 16, 23
enum { FXT_THREAD_INDEXES = 256, FXT_MAX_THREAD_INDEX = FXT_THREAD_INDEXES - 1, FXT_THREAD_RECORD_WORDS = 3 };

/* "Event record" */
#define FXT_EVENT_TYPE 16, 19
#define FXT_EVENT_ARGS 20, 23
#define FXT_EVENT_THREAD 24, 31
#define FXT_EVENT_CATEGORY 32, 47
#define FXT_EVENT_NAME 48, 63
enum fxt_event_type {
    FXT_EVENT_INSTANT = 0,
    FXT_EVENT_COUNTER = 1,
    FXT_EVENT_DURATION_BEGIN = 2,
    FXT_EVENT_DURATION_END = 3,
    FXT_EVENT_DURATION_COMPLETE = 4,
    FXT_EVENT_ASYNC_BEGIN = 5,
    FXT_EVENT_ASYNC_INSTANT = 6,
    FXT_EVENT_ASYNC_END = 7,
    FXT_EVENT_FLOW_BEGIN = 8,
    FXT_EVENT_FLOW_STEP = 9,
    FXT_EVENT_FLOW_END = 10,
};

/* "Argument header"; values of 32 bits or less lie in its upper half */
#define FXT_ARG_TYPE 0, 3
#define FXT_ARG_SIZE 4, 15
#define FXT_ARG_NAME 16, 31
#define FXT_ARG_VALUE_32 32, 63
#define FXT_ARG_VALUE_STRING 32, 47
enum fxt_arg_type {
    FXT_ARG_NULL = 0,
    FXT_ARG_INT32 = 1,
    FXT_ARG_UINT32 = 2,
    FXT_ARG_INT64 = 3,
    FXT_ARG_UINT64 = 4,
    FXT_ARG_DOUBLE = 5,
    FXT_ARG_STRING = 6,
    FXT_ARG_POINTER = 7,
    FXT_ARG_KOID = 8,
    FXT_ARG_BOOL = 9,
    FXT_ARG_UNKNOWN = 10, /* 10 to 15 are undefined; all are read as this one */
};

/* "Blob record" */
#define FXT_BLOB_NAME 16, 31
#define FXT_BLOB_BYTES 32, 46
#define FXT_BLOB_TYPE 48, 55
#define FXT_BLOB_OF_PERFETTO 3 /* packets of its own format */

/* "Kernel object record" */
#define FXT_KERNEL_OBJECT_TYPE 16, 23
#define FXT_KERNEL_OBJECT_NAME 24, 39
#define FXT_KERNEL_OBJECT_ARGS 40, 43
enum { FXT_OBJECT_PROCESS = 1, FXT_OBJECT_THREAD = 2 };

/* "Scheduling record" and, for each type, its own fields */
#define FXT_SCHED_TYPE 60, 63
enum fxt_sched_type {
    FXT_SCHED_LEGACY_SWITCH = 0,
    FXT_SCHED_SWITCH = 1,
    FXT_SCHED_WAKEUP = 2,
};
#define FXT_SCHED_ARGS 16, 19
#define FXT_SCHED_CPU 20, 35
#define FXT_SCHED_OUT_STATE 36, 39
#define FXT_SCHED_LEGACY_CPU 16, 23
#define FXT_SCHED_LEGACY_OUT_STATE 24, 27
#define FXT_SCHED_LEGACY_OUT_THREAD 28, 35
#define FXT_SCHED_LEGACY_IN_THREAD 36, 43
#define FXT_SCHED_LEGACY_OUT_PRIORITY 44, 51
#define FXT_SCHED_LEGACY_IN_PRIORITY 52, 59
/* States of a thread that leaves its CPU: thread_state_t of Zircon, as Perfetto reads it. */
enum fxt_thread_state {
    FXT_THREAD_RUNNABLE = 1,               /* it waits for the CPU: R */
    FXT_THREAD_BLOCKED = 3,                /* S */
    FXT_THREAD_DEAD = 5                    /* X */
};

/* Ticks per second if no initialization record gives them: Perfetto's default. */
#define FXT_DEFAULT_TICKS_PER_SECOND UINT64_C(1000000000)

/* fxt_bits(header, FXT_HEADER_SIZE): the bits of a field, first and last included. */
#define fxt_bits(word, field) fxt_bits_between(word, field)
static inline uint64_t
fxt_bits_between(uint64_t word, unsigned first, unsigned last)
{
    return (word >> first) & (UINT64_MAX >> (63 - (last - first)));
}

/* fxt_field(words, FXT_HEADER_SIZE): a value in its place, and a word with another value there. The caller knows that
 * it fits. */
#define fxt_field(value, field) fxt_with_field_between(0, (uint64_t)(value), field)
#define fxt_with_field(word, value, field) fxt_with_field_between(word, (uint64_t)(value), field)
static inline uint64_t
fxt_with_field_between(uint64_t word, uint64_t value, unsigned first, unsigned last)
{
    return (word & ~(fxt_bits_between(UINT64_MAX, first, last) << first)) | value << first;
}

/* The words that so many bytes take, padded with zeros. */
static inline size_t
fxt_words(size_t bytes)
{
    return (bytes + FXT_WORD_BYTES - 1) / FXT_WORD_BYTES;
}

/* Whether the header is that of a padding record: a string record that defines nothing. */
static inline bool
fxt_padding_p(uint64_t header)
{
    return fxt_bits(header, FXT_HEADER_TYPE) == FXT_RECORD_STRING && fxt_bits(header, FXT_STRING_INDEX) == 0;
}

/* Whether the header is that of a provider info record, with which a chunk begins. */
static inline bool
fxt_provider_info_p(uint64_t header)
{
    return fxt_bits(header, FXT_HEADER_TYPE) == FXT_RECORD_METADATA &&
           fxt_bits(header, FXT_METADATA_TYPE) == FXT_METADATA_PROVIDER_INFO;
}

/* --- what a writer makes up ------------------------------------------------------------------ */

static inline uint64_t
fxt_header(enum fxt_record_type type, size_t words)
{
    return fxt_field(type, FXT_HEADER_TYPE) | fxt_field(words, FXT_HEADER_SIZE);
}

/* A string record; index 0 defines nothing, whatever its size: that is our padding. */
static inline uint64_t
fxt_string_header(unsigned index, size_t bytes)
{
    return fxt_header(FXT_RECORD_STRING, 1 + fxt_words(bytes)) | fxt_field(index, FXT_STRING_INDEX) |
        fxt_field(bytes, FXT_STRING_BYTES);
}

/* Padding of 1 to 4,095 words. Its length field stays 0: readers skip by the record's size. */
static inline uint64_t
fxt_padding_header(size_t words)
{
    return fxt_header(FXT_RECORD_STRING, words);
}

/* A string record that defines nothing, as padding, and has a word for whoever knows of it. */
#define FXT_NOTE_WORDS 2

static inline uint64_t
fxt_note_header(void)
{
    return fxt_string_header(0, FXT_WORD_BYTES);
}

static inline uint64_t
fxt_event_header(enum fxt_event_type type, size_t words, unsigned arguments, unsigned thread,
                 unsigned category, unsigned name)
{
    return fxt_header(FXT_RECORD_EVENT, words) | fxt_field(type, FXT_EVENT_TYPE) | fxt_field(arguments, FXT_EVENT_ARGS) |
        fxt_field(thread, FXT_EVENT_THREAD) | fxt_field(category, FXT_EVENT_CATEGORY) | fxt_field(name, FXT_EVENT_NAME);
}

/* The header of an event on another thread. */
static inline uint64_t
fxt_event_header_with_thread(uint64_t header, unsigned thread)
{
    return fxt_with_field(header, thread, FXT_EVENT_THREAD);
}

static inline uint64_t
fxt_argument_header(enum fxt_arg_type type, size_t words, unsigned name)
{
    return fxt_field(type, FXT_ARG_TYPE) | fxt_field(words, FXT_ARG_SIZE) | fxt_field(name, FXT_ARG_NAME);
}

/* One word: a string argument whose value is in the table. */
static inline uint64_t
fxt_string_argument(unsigned name, unsigned value)
{
    return fxt_argument_header(FXT_ARG_STRING, 1, name) | fxt_field(value, FXT_ARG_VALUE_STRING);
}

/* One word. */
static inline uint64_t
fxt_uint32_argument(unsigned name, uint32_t value)
{
    return fxt_argument_header(FXT_ARG_UINT32, 1, name) | fxt_field(value, FXT_ARG_VALUE_32);
}

/* The same for a signed one. */
static inline uint64_t
fxt_int32_argument(unsigned name, int32_t value)
{
    return fxt_argument_header(FXT_ARG_INT32, 1, name) | fxt_field((uint32_t)value, FXT_ARG_VALUE_32);
}

/* Either of the two before, with another value. */
static inline uint64_t
fxt_argument_with_value(uint64_t argument, uint32_t value)
{
    return fxt_with_field(argument, value, FXT_ARG_VALUE_32);
}

/* First of two words; the value is the second. */
static inline uint64_t
fxt_uint64_argument(unsigned name)
{
    return fxt_argument_header(FXT_ARG_UINT64, 2, name);
}

/* The same for a signed one. */
static inline uint64_t
fxt_int64_argument(unsigned name)
{
    return fxt_argument_header(FXT_ARG_INT64, 2, name);
}

/* The same for an address. */
static inline uint64_t
fxt_pointer_argument(unsigned name)
{
    return fxt_argument_header(FXT_ARG_POINTER, 2, name);
}

static inline uint64_t
fxt_koid_argument(unsigned name)
{
    return fxt_argument_header(FXT_ARG_KOID, 2, name);
}

/* Two words with the time; threads are indexes of thread records [Legacy context switch record]. */
static inline uint64_t
fxt_switch_header(unsigned cpu, enum fxt_thread_state state, unsigned outgoing, unsigned incoming)
{
    return fxt_header(FXT_RECORD_SCHEDULING, 2) | fxt_field(cpu, FXT_SCHED_LEGACY_CPU) |
        fxt_field(state, FXT_SCHED_LEGACY_OUT_STATE) | fxt_field(outgoing, FXT_SCHED_LEGACY_OUT_THREAD) |
        fxt_field(incoming, FXT_SCHED_LEGACY_IN_THREAD);
}

/* Three words with the time and the thread's id, and its arguments [Thread wakeup record]. */
static inline uint64_t
fxt_wakeup_header(size_t words, unsigned arguments, unsigned cpu)
{
    return fxt_header(FXT_RECORD_SCHEDULING, words) | fxt_field(arguments, FXT_SCHED_ARGS) |
        fxt_field(cpu, FXT_SCHED_CPU) | fxt_field(FXT_SCHED_WAKEUP, FXT_SCHED_TYPE);
}

static inline uint64_t
fxt_provider_info_header(uint32_t provider, size_t name_bytes)
{
    return fxt_header(FXT_RECORD_METADATA, 1 + fxt_words(name_bytes)) |
        fxt_field(FXT_METADATA_PROVIDER_INFO, FXT_METADATA_TYPE) | fxt_field(provider, FXT_PROVIDER_ID) |
        fxt_field(name_bytes, FXT_PROVIDER_NAME_BYTES);
}

static inline uint64_t
fxt_thread_header(unsigned index)
{
    return fxt_header(FXT_RECORD_THREAD, FXT_THREAD_RECORD_WORDS) | fxt_field(index, FXT_THREAD_INDEX);
}

static inline uint64_t
fxt_kernel_object_header(size_t words, unsigned object_type, unsigned name, unsigned arguments)
{
    return fxt_header(FXT_RECORD_KERNEL_OBJECT, words) | fxt_field(object_type, FXT_KERNEL_OBJECT_TYPE) |
        fxt_field(name, FXT_KERNEL_OBJECT_NAME) | fxt_field(arguments, FXT_KERNEL_OBJECT_ARGS);
}

/* A blob of Perfetto's packets, without a name [Blob record]. */
static inline uint64_t
fxt_blob_header(size_t bytes)
{
    return fxt_header(FXT_RECORD_BLOB, 1 + fxt_words(bytes)) | fxt_field(bytes, FXT_BLOB_BYTES) |
        fxt_field(FXT_BLOB_OF_PERFETTO, FXT_BLOB_TYPE);
}

/* Copy text into words, zeros behind it. `to` has fxt_words(bytes) words. */
static inline void
fxt_put_text(uint64_t *to, const char *text, size_t bytes)
{
    if (bytes == 0) return;
    to[fxt_words(bytes) - 1] = 0;
    memcpy(to, text, bytes);
}

#endif /* RUBY_VM_TRACE_SCHEMA_FXT_H */
