#ifndef PACKET_H
#define PACKET_H
/* packet.h - fields of protocol buffers, in which Perfetto's packets in blob records are written. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum proto_type { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

/* Bytes of a message that are still to be read. */
struct proto {
    const uint8_t *at;
    const uint8_t *end;
    bool damaged; /* it ended within a field, or has a field of no known type */
};

struct proto_field {
    uint32_t number;
    enum proto_type type;
    uint64_t value;      /* PROTO_VARINT */
    struct proto message; /* PROTO_BYTES */
};

static inline struct proto
proto_of(const void *bytes, size_t len)
{
    return (struct proto){.at = bytes, .end = (const uint8_t *)bytes + len};
}

/* Returns false at the end, and in what is damaged. */
static inline bool
proto_varint(struct proto *proto, uint64_t *value_out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && proto->at < proto->end; shift += 7) {
        uint8_t byte = *proto->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        *value_out = value;
        return true;
    }
    proto->damaged = true;
    return false;
}

/* Reads the next field. Returns false at the end, and in what is damaged. */
static inline bool
proto_next(struct proto *proto, struct proto_field *field_out)
{
    uint64_t tag, len = 0;
    if (proto->at == proto->end || proto->damaged || !proto_varint(proto, &tag)) return false;
    *field_out = (struct proto_field){.number = (uint32_t)(tag >> 3), .type = (enum proto_type)(tag & 7)};
    switch (field_out->type) {
      case PROTO_VARINT: return proto_varint(proto, &field_out->value);
      case PROTO_FIXED64: len = 8; break;
      case PROTO_FIXED32: len = 4; break;
      case PROTO_BYTES:
        if (!proto_varint(proto, &len)) return false;
        break;
      default: len = UINT64_MAX; break;
    }
    if (tag >> 3 == 0 || tag >> 35 != 0 || len > (uint64_t)(proto->end - proto->at)) {
        proto->damaged = true;
        return false;
    }
    field_out->message = proto_of(proto->at, (size_t)len);
    proto->at += len;
    return true;
}

/* The field numbers of Perfetto's messages that are read. */
enum {
    TRACE_PACKET = 1,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    PACKET_STACK_SAMPLE = 135,
    SEQUENCE_STATE_CLEARED = 1,
    SEQUENCE_NEEDS_STATE = 2,
};

/* The value of a field PACKET_TIMESTAMP, if it can be a time. */
static inline void
take_packet_time(const struct proto_field *field, int64_t *time)
{
    if (field->type == PROTO_VARINT && field->value <= INT64_MAX) *time = (int64_t)field->value;
}

/* The time of the packet; -1 if it has none. */
static inline int64_t
packet_time(struct proto packet)
{
    int64_t time = -1;
    for (struct proto_field field; proto_next(&packet, &field);) {
        if (field.number == PACKET_TIMESTAMP) take_packet_time(&field, &time);
    }
    return time;
}

#endif
