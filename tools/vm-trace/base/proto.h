#ifndef PROTO_H
#define PROTO_H
/* proto.h - protocol buffers, field by field: Perfetto's packets in blob records, and the profiles of pprof.
 *
 * The encoding is that of https://protobuf.dev/programming-guides/encoding/ . Reading takes nothing from the heap, and
 * goes no further than the bytes that it is given. What a message means is in the files that read or write it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum proto_type { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

enum { PROTO_VARINT_MAX = 10 }; /* bytes */

/* --- reading ----------------------------------------------------------------------------------- */

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

/* --- writing ----------------------------------------------------------------------------------- */

/* Writes at most PROTO_VARINT_MAX bytes; returns their end. */
static inline uint8_t *
proto_put_varint(uint8_t *to, uint64_t value)
{
    for (; value > 0x7f; value >>= 7) *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

static inline uint8_t *
proto_put_tag(uint8_t *to, uint32_t field, enum proto_type type)
{
    return proto_put_varint(to, (uint64_t)field << 3 | type);
}

/* A message that is kept until it is complete, because its length precedes it. Zeroed: empty. Free its bytes. */
struct proto_message {
    uint8_t *bytes;
    size_t len, capacity;
};

void proto_add_varint(struct proto_message *message, uint64_t value);
void proto_add_uint(struct proto_message *message, uint32_t field, uint64_t value);
void proto_add_bytes(struct proto_message *message, uint32_t field, const void *bytes, size_t len);
/* Adds the other message as a field, and empties it. */
void proto_add_message(struct proto_message *message, uint32_t field, struct proto_message *inner);
/* Writes the fields, and empties the message. */
void proto_write(FILE *out, struct proto_message *message);

#endif
