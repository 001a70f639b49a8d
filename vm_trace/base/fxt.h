#ifndef RUBY_VM_TRACE_BASE_FXT_H
#define RUBY_VM_TRACE_BASE_FXT_H 1
/*
 * Encoding of Fuchsia Trace Format records: how a word is made up, nothing of where it goes.
 * https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format (section names in brackets).
 * A record is a run of 8-byte little-endian words; its first word says its type and its size.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
# error "FXT is little-endian, and the tracer stores words as they are in memory"
#endif

#define FXT_WORD_BYTES 8
#define FXT_MAX_RECORD_WORDS 4095          /* 12 bits of size [Record header] */
#define FXT_MAX_STRING_INDEX 32767         /* 15 bits; 0 is the empty string [String references] */
#define FXT_MAX_THREAD_INDEX 255           /* 8 bits; 0 is an inline thread [Thread references] */
#define FXT_MAX_ARGUMENTS 15               /* 4 bits [Event records] */
/* A string record holds its text in at most 4,094 words, which is less than its 15 bits say. */
#define FXT_MAX_STRING_BYTES ((size_t)(FXT_MAX_RECORD_WORDS - 1) * FXT_WORD_BYTES)
#define FXT_MAGIC_RECORD UINT64_C(0x0016547846040010)  /* [Magic number record] */

enum fxt_record {                          /* [Record header] */
    FXT_METADATA = 0,
    FXT_INITIALIZATION = 1,
    FXT_STRING = 2,
    FXT_THREAD = 3,
    FXT_EVENT = 4,
    FXT_BLOB = 5,
    FXT_KERNEL_OBJECT = 7,
    FXT_SCHEDULING = 8
};

enum fxt_event {                           /* [Event records] */
    FXT_INSTANT = 0,
    FXT_COUNTER = 1,                       /* a number follows its arguments */
    FXT_DURATION_BEGIN = 2,
    FXT_DURATION_END = 3,
    FXT_DURATION_COMPLETE = 4,             /* its end follows its arguments */
    FXT_ASYNC_BEGIN = 5,                   /* and behind those of all from here on */
    FXT_ASYNC_END = 7,
    FXT_FLOW_BEGIN = 8,
    FXT_FLOW_STEP = 9,
    FXT_FLOW_END = 10
};

enum fxt_argument {                        /* [Argument records] */
    FXT_ARG_NULL = 0,
    FXT_ARG_INT32 = 1,
    FXT_ARG_UINT32 = 2,
    FXT_ARG_INT64 = 3,
    FXT_ARG_UINT64 = 4,
    FXT_ARG_DOUBLE = 5,
    FXT_ARG_STRING = 6,
    FXT_ARG_POINTER = 7,
    FXT_ARG_KOID = 8,
    FXT_ARG_BOOL = 9
};

enum { FXT_METADATA_PROVIDER_INFO = 1 };   /* [Provider info metadata] */
enum { FXT_BLOB_PERFETTO = 3 };            /* TRACE_BLOB_TYPE_PERFETTO of Fuchsia */
enum { FXT_OBJECT_PROCESS = 1, FXT_OBJECT_THREAD = 2 }; /* zx_obj_type_t [Kernel object records] */

/* The one helper that places a field: `value` at bit `first`. The caller knows that it fits. */
static inline uint64_t
fxt_field(uint64_t value, unsigned first)
{
    return value << first;
}

/* Words that hold `bytes` bytes, padded with zeros. */
static inline size_t
fxt_words(size_t bytes)
{
    return (bytes + FXT_WORD_BYTES - 1) / FXT_WORD_BYTES;
}

static inline uint64_t
fxt_header(enum fxt_record type, size_t words)
{
    return fxt_field((uint64_t)type, 0) | fxt_field(words, 4);
}

/* A string record; index 0 defines nothing, whatever its size: that is our padding. */
static inline uint64_t
fxt_string_header(unsigned index, size_t bytes)
{
    return fxt_header(FXT_STRING, 1 + fxt_words(bytes)) | fxt_field(index, 16) | fxt_field(bytes, 32);
}

/* Padding of 1 to 4,095 words. Its length field stays 0: readers skip by the record's size. */
static inline uint64_t
fxt_padding_header(size_t words)
{
    return fxt_header(FXT_STRING, words);
}

/* A string record that defines nothing, as padding, and has a word for whoever knows of it. */
#define FXT_NOTE_WORDS 2

static inline uint64_t
fxt_note_header(void)
{
    return fxt_string_header(0, FXT_WORD_BYTES);
}

static inline uint64_t
fxt_event_header(enum fxt_event type, size_t words, unsigned arguments, unsigned thread,
                 unsigned category, unsigned name)
{
    return fxt_header(FXT_EVENT, words) | fxt_field((uint64_t)type, 16) | fxt_field(arguments, 20) |
        fxt_field(thread, 24) | fxt_field(category, 32) | fxt_field(name, 48);
}

/* The header of an event on another thread. */
static inline uint64_t
fxt_event_header_with_thread(uint64_t header, unsigned thread)
{
    return (header & ~fxt_field(0xff, 24)) | fxt_field(thread, 24);
}

static inline uint64_t
fxt_argument_header(enum fxt_argument type, size_t words, unsigned name)
{
    return fxt_field((uint64_t)type, 0) | fxt_field(words, 4) | fxt_field(name, 16);
}

/* One word: a string argument whose value is in the table. */
static inline uint64_t
fxt_string_argument(unsigned name, unsigned value)
{
    return fxt_argument_header(FXT_ARG_STRING, 1, name) | fxt_field(value, 32);
}

/* One word. */
static inline uint64_t
fxt_uint32_argument(unsigned name, uint32_t value)
{
    return fxt_argument_header(FXT_ARG_UINT32, 1, name) | fxt_field(value, 32);
}

/* The same for a signed one. */
static inline uint64_t
fxt_int32_argument(unsigned name, int32_t value)
{
    return fxt_argument_header(FXT_ARG_INT32, 1, name) | fxt_field((uint32_t)value, 32);
}

/* Either of the two before, with another value. */
static inline uint64_t
fxt_argument_with_value(uint64_t argument, uint32_t value)
{
    return (uint32_t)argument | fxt_field(value, 32);
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

/* States of a thread that leaves its CPU: thread_state_t of Zircon, as Perfetto reads it. */
enum fxt_thread_state {
    FXT_THREAD_RUNNABLE = 1,               /* it waits for the CPU: R */
    FXT_THREAD_BLOCKED = 3,                /* S */
    FXT_THREAD_DEAD = 5                    /* X */
};

/* Two words with the time; threads are indexes of thread records [Legacy context switch record]. */
static inline uint64_t
fxt_switch_header(unsigned cpu, enum fxt_thread_state state, unsigned outgoing, unsigned incoming)
{
    return fxt_header(FXT_SCHEDULING, 2) | fxt_field(cpu, 16) | fxt_field((uint64_t)state, 24) |
        fxt_field(outgoing, 28) | fxt_field(incoming, 36);
}

/* Three words with the time and the thread's id, and its arguments [Thread wakeup record]. */
static inline uint64_t
fxt_wakeup_header(size_t words, unsigned arguments, unsigned cpu)
{
    return fxt_header(FXT_SCHEDULING, words) | fxt_field(arguments, 16) | fxt_field(cpu, 20) | fxt_field(2, 60);
}

static inline uint64_t
fxt_provider_info_header(uint32_t provider, size_t name_bytes)
{
    return fxt_header(FXT_METADATA, 1 + fxt_words(name_bytes)) |
        fxt_field(FXT_METADATA_PROVIDER_INFO, 16) | fxt_field(provider, 20) | fxt_field(name_bytes, 52);
}

static inline uint64_t
fxt_thread_header(unsigned index)
{
    return fxt_header(FXT_THREAD, 3) | fxt_field(index, 16);
}

static inline uint64_t
fxt_kernel_object_header(size_t words, unsigned object_type, unsigned name, unsigned arguments)
{
    return fxt_header(FXT_KERNEL_OBJECT, words) | fxt_field(object_type, 16) | fxt_field(name, 24) |
        fxt_field(arguments, 40);
}

/* A blob of Perfetto's packets, without a name [Blob record]. */
static inline uint64_t
fxt_blob_header(size_t bytes)
{
    return fxt_header(FXT_BLOB, 1 + fxt_words(bytes)) | fxt_field(bytes, 32) | fxt_field(FXT_BLOB_PERFETTO, 48);
}

/* Copy text into words, zeros behind it. `to` has fxt_words(bytes) words. */
static inline void
fxt_put_text(uint64_t *to, const char *text, size_t bytes)
{
    if (bytes == 0) return;
    to[fxt_words(bytes) - 1] = 0;
    memcpy(to, text, bytes);
}

#endif /* RUBY_VM_TRACE_BASE_FXT_H */
