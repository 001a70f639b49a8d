#ifndef PACKED_NUMBERS_H
#define PACKED_NUMBERS_H
/* packed_numbers.h - many numbers in little text: varints (7 bits a byte, lowest first, the top bit
 * says that more follow), compressed with zlib or not, in base64. A browser unpacks zlib's format with
 * DecompressionStream("deflate"), while it shows the rest of the page.
 *
 *      packed_begin -> packed_number for each -> packed_end
 */
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

enum { PACKED_IN_BYTES = 48 * 1024, PACKED_OUT_BYTES = 48 * 1024 };

enum packed_format { PACKED_ZLIB, PACKED_PLAIN };

struct packed_numbers {
    FILE *out;
    enum packed_format format;
    z_stream zlib;
    uint64_t bytes; /* before compression */
    size_t in_count;
    uint8_t in[PACKED_IN_BYTES]; /* a multiple of 3, as below */
    uint8_t compressed[PACKED_OUT_BYTES]; /* a multiple of 3, so base64 has padding only at the end */
};

/* Prints to `out`; the caller checks it for errors. */
void packed_begin(struct packed_numbers *packed, FILE *out, enum packed_format format);
void packed_number(struct packed_numbers *packed, uint64_t number);
void packed_end(struct packed_numbers *packed);

static inline unsigned
packed_number_bytes(uint64_t number)
{
    unsigned bytes = 1;
    for (; number > 127; number >>= 7) bytes++;
    return bytes;
}

#endif
