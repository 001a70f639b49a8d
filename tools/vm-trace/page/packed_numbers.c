/* packed_numbers.c - see packed_numbers.h */
#include <stdlib.h>
#include <string.h>

#include "base/proto.h"
#include "base/status.h"
#include "page/packed_numbers.h"

enum { LEVEL = 6 };

void
packed_begin(struct packed_numbers *packed, FILE *out, enum packed_format format)
{
    packed->out = out;
    packed->format = format;
    packed->bytes = 0;
    packed->in_count = 0;
    memset(&packed->zlib, 0, sizeof packed->zlib);
    if (format == PACKED_PLAIN) return;
    if (deflateInit(&packed->zlib, LEVEL) != Z_OK) {
        fputs("vm-trace: out of memory\n", stderr);
        exit(STATUS_CANNOT_READ);
    }
    packed->zlib.next_out = packed->compressed;
    packed->zlib.avail_out = PACKED_OUT_BYTES;
}

static void
print_base64(FILE *out, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        uint32_t word = (uint32_t)bytes[i] << 16;
        if (i + 1 < count) word |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < count) word |= bytes[i + 2];
        char text[4] = {digits[word >> 18], digits[word >> 12 & 63], digits[word >> 6 & 63], digits[word & 63]};
        if (i + 1 >= count) text[2] = '=';
        if (i + 2 >= count) text[3] = '=';
        fwrite(text, 1, sizeof text, out);
    }
}

static void
write_all(struct packed_numbers *packed, int flush)
{
    if (packed->format == PACKED_PLAIN) {
        print_base64(packed->out, packed->in, packed->in_count);
        packed->in_count = 0;
        return;
    }
    packed->zlib.next_in = packed->in;
    packed->zlib.avail_in = (unsigned)packed->in_count;
    packed->in_count = 0;
    int result;
    do {
        result = deflate(&packed->zlib, flush);
        if (packed->zlib.avail_out > 0) continue;
        print_base64(packed->out, packed->compressed, PACKED_OUT_BYTES);
        packed->zlib.next_out = packed->compressed;
        packed->zlib.avail_out = PACKED_OUT_BYTES;
    } while (packed->zlib.avail_in > 0 || (flush == Z_FINISH && result != Z_STREAM_END));
}

void
packed_number(struct packed_numbers *packed, uint64_t number)
{
    uint8_t bytes[PROTO_VARINT_MAX];
    size_t count = (size_t)(proto_put_varint(bytes, number) - bytes);
    for (size_t i = 0; i < count; i++) {
        if (packed->in_count == PACKED_IN_BYTES) write_all(packed, Z_NO_FLUSH);
        packed->in[packed->in_count++] = bytes[i];
    }
    packed->bytes += count;
}

void
packed_end(struct packed_numbers *packed)
{
    write_all(packed, Z_FINISH);
    if (packed->format == PACKED_PLAIN) return;
    print_base64(packed->out, packed->compressed, PACKED_OUT_BYTES - packed->zlib.avail_out);
    deflateEnd(&packed->zlib);
}
