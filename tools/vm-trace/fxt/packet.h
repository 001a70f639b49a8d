#ifndef PACKET_H
#define PACKET_H
/* packet.h - Perfetto's packets in blob records. */
#include "base/proto.h"

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
