/* msan.c - linked into a tool built with MemorySanitizer: zlib is not built with it, so what zlib has written is said to be written.
 * See scripts/check-sanitizers.sh. */
#include <sanitizer/msan_interface.h>
#include <zlib.h>

int __real_inflate(z_stream *stream, int flush);
int __real_deflate(z_stream *stream, int flush);
int __wrap_inflate(z_stream *stream, int flush);
int __wrap_deflate(z_stream *stream, int flush);
int __real_gzwrite(gzFile file, voidpc bytes, unsigned len);
int __real_gzclose(gzFile file);
int __wrap_gzwrite(gzFile file, voidpc bytes, unsigned len);
int __wrap_gzclose(gzFile file);

int
__wrap_inflate(z_stream *stream, int flush)
{
    Bytef *out = stream->next_out;
    int result = __real_inflate(stream, flush);
    __msan_unpoison(out, (size_t)(stream->next_out - out));
    return result;
}

int
__wrap_deflate(z_stream *stream, int flush)
{
    Bytef *out = stream->next_out;
    int result = __real_deflate(stream, flush);
    __msan_unpoison(out, (size_t)(stream->next_out - out));
    return result;
}

/* These write what they made themselves. */
int
__wrap_gzwrite(gzFile file, voidpc bytes, unsigned len)
{
    __msan_check_mem_is_initialized(bytes, len);
    __msan_scoped_disable_interceptor_checks();
    int result = __real_gzwrite(file, bytes, len);
    __msan_scoped_enable_interceptor_checks();
    return result;
}

int
__wrap_gzclose(gzFile file)
{
    __msan_scoped_disable_interceptor_checks();
    int result = __real_gzclose(file);
    __msan_scoped_enable_interceptor_checks();
    return result;
}
