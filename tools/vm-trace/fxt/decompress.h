#ifndef DECOMPRESS_H
#define DECOMPRESS_H
/* decompress.h - compressed bytes as a stream: gzip (RFC 1952) by zlib, Zstandard (RFC 8878) by libzstd. One member or
 * frame may follow another. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

enum compression { COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD };

struct decompressor {
    enum compression kind;
    bool in_member;    /* the data may not end here */
    const char *fault; /* what is wrong with the data, static; or NULL */
    z_stream gzip;
    void *zstd;
};

/* Returns what the first bytes of a file show. */
enum compression compression_of(const uint8_t *bytes, size_t count);
/* Returns 0; ENOMEM; or ENOTSUP for Zstandard in a tool that was built without libzstd. */
int decompress_begin(struct decompressor *decompressor, enum compression kind);
/* Decompresses into `to`. Consumes bytes of *from, and moves it. Returns how many bytes were written. */
size_t decompress(struct decompressor *decompressor, const uint8_t **from, size_t *from_bytes, uint8_t *to, size_t room);
void decompress_end(struct decompressor *decompressor);

#endif
