/* decompress.c - see decompress.h */
#include <errno.h>
#include <string.h>
#ifdef HAVE_ZSTD
# include <zstd.h>
#endif

#include "fxt/decompress.h"

enum compression
compression_of(const uint8_t *bytes, size_t count)
{
    static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (count >= sizeof gzip && memcmp(bytes, gzip, sizeof gzip) == 0) return COMPRESSION_GZIP;
    if (count >= sizeof zstd && memcmp(bytes, zstd, sizeof zstd) == 0) return COMPRESSION_ZSTD;
    return COMPRESSION_NONE;
}

/* --- gzip --------------------------------------------------------------------------------------- */

static size_t
inflate_some(struct decompressor *decompressor, const uint8_t **from, size_t *from_bytes, uint8_t *to, size_t room)
{
    z_stream *gzip = &decompressor->gzip;
    if (!decompressor->in_member) inflateReset(gzip);
    decompressor->in_member = true;
    gzip->next_in = (uint8_t *)*from;
    gzip->avail_in = (uInt)*from_bytes;
    gzip->next_out = to;
    gzip->avail_out = (uInt)room;
    int result = inflate(gzip, Z_NO_FLUSH);
    *from = gzip->next_in;
    *from_bytes = gzip->avail_in;
    if (result == Z_STREAM_END) decompressor->in_member = false;
    else if (result != Z_OK && result != Z_BUF_ERROR) decompressor->fault = gzip->msg ? gzip->msg : zError(result);
    return room - gzip->avail_out;
}

/* --- Zstandard ------------------------------------------------------------------------------------ */

#ifdef HAVE_ZSTD
static size_t
unzstd_some(struct decompressor *decompressor, const uint8_t **from, size_t *from_bytes, uint8_t *to, size_t room)
{
    ZSTD_inBuffer in = {*from, *from_bytes, 0};
    ZSTD_outBuffer out = {to, room, 0};
    size_t result = ZSTD_decompressStream(decompressor->zstd, &out, &in);
    *from += in.pos;
    *from_bytes -= in.pos;
    decompressor->in_member = result != 0;
    if (ZSTD_isError(result)) decompressor->fault = ZSTD_getErrorName(result);
    return out.pos;
}
#endif

/* --- both ------------------------------------------------------------------------------------------- */

int
decompress_begin(struct decompressor *decompressor, enum compression kind)
{
    enum { GZIP_WINDOW_BITS = 15 + 16 }; /* 16: with a gzip header */
    *decompressor = (struct decompressor){.kind = kind};
    if (kind == COMPRESSION_GZIP) return inflateInit2(&decompressor->gzip, GZIP_WINDOW_BITS) == Z_OK ? 0 : ENOMEM;
#ifdef HAVE_ZSTD
    decompressor->zstd = ZSTD_createDStream();
    return decompressor->zstd != NULL ? 0 : ENOMEM;
#else
    return ENOTSUP;
#endif
}

size_t
decompress(struct decompressor *decompressor, const uint8_t **from, size_t *from_bytes, uint8_t *to, size_t room)
{
#ifdef HAVE_ZSTD
    if (decompressor->kind == COMPRESSION_ZSTD) return unzstd_some(decompressor, from, from_bytes, to, room);
#endif
    return inflate_some(decompressor, from, from_bytes, to, room);
}

void
decompress_end(struct decompressor *decompressor)
{
    if (decompressor->kind == COMPRESSION_GZIP) inflateEnd(&decompressor->gzip);
#ifdef HAVE_ZSTD
    if (decompressor->kind == COMPRESSION_ZSTD) ZSTD_freeDStream(decompressor->zstd);
#endif
    decompressor->kind = COMPRESSION_NONE;
}
