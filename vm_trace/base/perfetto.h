#ifndef RUBY_VM_TRACE_BASE_PERFETTO_H
#define RUBY_VM_TRACE_BASE_PERFETTO_H 1
/*
 * Packets of Perfetto's own format, which blob records carry: protocol buffers, written field by
 * field. Perfetto joins the blobs of a file to one stream of packets, so each blob holds whole
 * packets. doc/internals/events.md has the fields that the tracer writes.
 */

#include "vm_trace/schema/fxt.h"

/* Field numbers of the messages in google/perfetto, protos/perfetto/trace. */
enum {
    PERFETTO_PACKET = 1,                   /* of Trace */
    PACKET_TIMESTAMP = 8,                  /* of TracePacket */
    PACKET_SEQUENCE = 10,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    PACKET_STACK_SAMPLE = 135,
    SEQUENCE_STATE_CLEARED = 1,            /* flags: what was interned in the sequence is forgotten, */
    SEQUENCE_NEEDS_STATE = 2,              /* or needed */
    DEFAULTS_STACK_SAMPLE = 100,           /* of TracePacketDefaults */
    SAMPLE_DEFAULTS_SOURCE = 1,            /* of StackSampleDefaults */
    SAMPLE_DEFAULTS_PRIMARY = 2,
    SAMPLE_DEFAULTS_FOLLOWER = 3,
    COUNTER_NAME = 2,                      /* of CounterDescriptor */
    COUNTER_UNIT = 3,
    COUNTER_UNIT_NS = 1,
    COUNTER_UNIT_COUNT = 9,
    SAMPLE_TASK_IID = 2,                   /* of StackSample */
    SAMPLE_CALLSTACK_IID = 6,
    SAMPLE_PRIMARY_WEIGHT = 11,
    SAMPLE_FOLLOWER_IIDS = 13,             /* packed, as the next one */
    SAMPLE_FOLLOWER_WEIGHTS = 14,
    INTERNED_FUNCTION_NAMES = 5,           /* of InternedData */
    INTERNED_FRAMES = 6,
    INTERNED_CALLSTACKS = 7,
    INTERNED_MAPPING_PATHS = 17,
    INTERNED_SOURCE_PATHS = 18,
    INTERNED_MAPPINGS = 19,
    INTERNED_TASKS = 48,
    INTERNED_COUNTERS = 50,
    INTERNED_ASYNC_CONTEXTS = 51,
    INTERNED_IID = 1,                      /* of each entry */
    STRING_TEXT = 2,                       /* of InternedString */
    MAPPING_PATH_IID = 7,                  /* of Mapping */
    TASK_PID = 2,                          /* of TaskContext */
    TASK_TID = 3,
    TASK_ASYNC_ID = 4,
    ASYNC_CONTEXT_NAME = 2,                /* of AsyncContextDescriptor */
    ASYNC_CONTEXT_KIND = 3,
    FRAME_FUNCTION_NAME_IID = 2,           /* of Frame */
    FRAME_MAPPING_IID = 3,
    FRAME_REL_PC = 4,
    FRAME_SOURCE_PATH_IID = 5,
    FRAME_LINE = 6,
    FRAME_KIND = 7,
    FRAME_KIND_NATIVE = 1,
    FRAME_KIND_INTERPRETED = 3,
    FRAME_KIND_JIT = 4,
    CALLSTACK_FRAME_IDS = 2                /* of Callstack, outermost first, not packed */
};

enum { PROTO_VARINT = 0, PROTO_BYTES = 2 }; /* wire types */

/* Bytes of a packet that is being composed; the caller knows that they suffice. */
struct proto {
    size_t bytes;
    uint8_t at[9216]; /* a stack of 2,000 frames has room */
};

static inline void
proto_varint(struct proto *proto, uint64_t value)
{
    for (; value > 0x7f; value >>= 7) proto->at[proto->bytes++] = (uint8_t)(value | 0x80);
    proto->at[proto->bytes++] = (uint8_t)value;
}

static inline void
proto_number(struct proto *proto, unsigned field, uint64_t value)
{
    proto_varint(proto, field << 3 | PROTO_VARINT);
    proto_varint(proto, value);
}

static inline void
proto_text(struct proto *proto, unsigned field, const char *text, size_t bytes)
{
    proto_varint(proto, field << 3 | PROTO_BYTES);
    proto_varint(proto, bytes);
    memcpy(proto->at + proto->bytes, text, bytes);
    proto->bytes += bytes;
}

/* Begin a message inside, of less than 16 KiB. Returns what proto_end takes. */
static inline size_t
proto_begin(struct proto *proto, unsigned field)
{
    proto_varint(proto, field << 3 | PROTO_BYTES);
    proto->bytes += 2;
    return proto->bytes;
}

static inline void
proto_end(struct proto *proto, size_t begin)
{
    size_t bytes = proto->bytes - begin;
    proto->at[begin - 2] = (uint8_t)(bytes | 0x80); /* two bytes, whatever the length */
    proto->at[begin - 1] = (uint8_t)(bytes >> 7);
}

/*
 * A varint of eight bytes, whatever the value (below 2^56): a word that can be filled in later, by
 * one store.
 */
#define PROTO_WORD_MAX ((UINT64_C(1) << 56) - 1)
static inline uint64_t
proto_word(uint64_t value, bool last)
{
    value = (value & 0x0000000000FFFFFFF) | (value & 0x0FFFFFFF0000000) << 4;
    value = (value & 0x00003FFF00003FFF) | (value & 0x0FFFC0000FFFC000) << 2;
    value = (value & 0x007F007F007F007F) | (value & 0x3F803F803F803F80) << 1;
    return value | (last ? UINT64_C(0x0080808080808080) : UINT64_C(0x8080808080808080));
}

/*
 * The beginning of a packet with a time, whose place does not depend on its value:
 *
 *     word 0   0a LL LL 50 SS SS SS 40     packet of so many bytes, its sequence, tag of the time
 *     word 1   the time's low 56 bits
 *     byte 16  its high bits
 */
#define PERFETTO_TIMED_BYTES 17
static inline uint64_t
perfetto_timed_word(size_t bytes, uint32_t sequence)
{
    size_t length = bytes - 3; /* without the tag and itself */
    uint64_t head = (PERFETTO_PACKET << 3 | PROTO_BYTES) | ((length & 0x7f) | 0x80) << 8 | length >> 7 << 16;
    uint64_t varint = ((sequence & 0x7f) | 0x80) | ((sequence >> 7 & 0x7f) | 0x80) << 8 | (sequence >> 14 & 0x7f) << 16;
    return head | (uint64_t)(PACKET_SEQUENCE << 3) << 24 | varint << 32 | (uint64_t)(PACKET_TIMESTAMP << 3) << 56;
}

/* Fill in the time. The byte behind it stays, as what follows it in its word. */
static inline void
perfetto_put_time(uint64_t *packet, uint64_t ns)
{
    packet[1] = proto_word(ns & PROTO_WORD_MAX, false);
    packet[2] = (packet[2] & ~UINT64_C(0xff)) | (ns >> 56 & 0x7f);
}

/*
 * The time of the packet that begins there, in a blob record of so many words; 0: it has none, or is
 * none that perfetto_timed_word begins.
 */
static inline uint64_t
perfetto_time(const uint64_t *packet, size_t words)
{
    if (words < 3 || (packet[0] & 0xff) != (PERFETTO_PACKET << 3 | PROTO_BYTES) ||
        packet[0] >> 56 != PACKET_TIMESTAMP << 3 || (packet[0] >> 24 & 0xff) != PACKET_SEQUENCE << 3) {
        return 0;
    }
    uint64_t ns = packet[2] & 0x7f;
    for (int byte = 7; byte >= 0; byte--) ns = ns << 7 | (packet[1] >> (8 * byte) & 0x7f);
    return ns;
}

#endif /* RUBY_VM_TRACE_BASE_PERFETTO_H */
