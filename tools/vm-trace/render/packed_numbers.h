#ifndef PACKED_NUMBERS_H
#define PACKED_NUMBERS_H
/* packed_numbers.h - many numbers in little text: varints (7 bits a byte, lowest first, the top bit
 * says that more follow), compressed with zlib, in base64. A browser unpacks it with
 * DecompressionStream("deflate").
 *
 *      packed_begin -> packed_number for each -> packed_end
 */
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

enum { PACKED_IN_BYTES = 64 * 1024, PACKED_OUT_BYTES = 48 * 1024 };

struct packed_numbers {
    FILE *out;
    z_stream zlib;
    uint64_t bytes; /* before compression */
    size_t in_count;
    uint8_t in[PACKED_IN_BYTES];
    uint8_t compressed[PACKED_OUT_BYTES]; /* a multiple of 3, so base64 has padding only at the end */
};

/* Prints to `out`; the caller checks it for errors. */
void packed_begin(struct packed_numbers *packed, FILE *out);
void packed_number(struct packed_numbers *packed, uint64_t number);
void packed_end(struct packed_numbers *packed);

#endif
