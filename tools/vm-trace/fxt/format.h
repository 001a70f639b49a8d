#ifndef FORMAT_H
#define FORMAT_H
/* format.h - the layout of a Fuchsia trace file: names for bit fields and numbers, and functions
 * that read fields.
 *
 * The specification is https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format ; each group
 * names its section. A field is written as its first and last bit, both included, as in the
 * specification's tables.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "Bit 0 is the least significant": words are little-endian. They are copied without swapping
 * bytes, so the host must be little-endian, too. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words of the file are read without swapping bytes");

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
enum { FXT_STRING_INDEXES = 32768 };

/* "String references": 0 is the empty string, the top bit marks an inline string with its length in the rest */
#define FXT_STRING_REF_INLINE 0x8000u
#define FXT_STRING_REF_BYTES 0x7fffu

/* "Thread record"; "Thread references": 0 is an inline pair of process and thread id */
#define FXT_THREAD_INDEX 16, 23
enum { FXT_THREAD_INDEXES = 256, FXT_THREAD_RECORD_WORDS = 3 };

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

/* Ticks per second if no initialization record gives them: Perfetto's default. */
#define FXT_DEFAULT_TICKS_PER_SECOND UINT64_C(1000000000)

/* fxt_bits(header, FXT_HEADER_SIZE): the bits of a field, first and last included. */
#define fxt_bits(word, field) fxt_bits_between(word, field)
static inline uint64_t
fxt_bits_between(uint64_t word, unsigned first, unsigned last)
{
    return (word >> first) & (UINT64_MAX >> (63 - (last - first)));
}

/* The words that so many bytes take. */
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

#endif
