/* proto.c - see proto.h */
#include <string.h>

#include "base/proto.h"
#include "base/xalloc.h"

/* Room for so many bytes at the end. */
static uint8_t *
room(struct proto_message *message, size_t bytes)
{
    while (message->capacity - message->len < bytes) {
        message->capacity = grown_capacity(message->capacity, sizeof message->capacity);
        message->bytes = xrealloc(message->bytes, message->capacity, 1);
    }
    return message->bytes + message->len;
}

static void
add_tag(struct proto_message *message, uint32_t field, enum proto_type type)
{
    message->len = (size_t)(proto_put_tag(room(message, PROTO_VARINT_MAX), field, type) - message->bytes);
}

void
proto_add_varint(struct proto_message *message, uint64_t value)
{
    message->len = (size_t)(proto_put_varint(room(message, PROTO_VARINT_MAX), value) - message->bytes);
}

void
proto_add_uint(struct proto_message *message, uint32_t field, uint64_t value)
{
    add_tag(message, field, PROTO_VARINT);
    proto_add_varint(message, value);
}

void
proto_add_bytes(struct proto_message *message, uint32_t field, const void *bytes, size_t len)
{
    add_tag(message, field, PROTO_BYTES);
    proto_add_varint(message, len);
    if (len > 0) memcpy(room(message, len), bytes, len);
    message->len += len;
}

void
proto_add_message(struct proto_message *message, uint32_t field, struct proto_message *inner)
{
    proto_add_bytes(message, field, inner->bytes, inner->len);
    inner->len = 0;
}

void
proto_write(FILE *out, struct proto_message *message)
{
    fwrite(message->bytes, 1, message->len, out);
    message->len = 0;
}
