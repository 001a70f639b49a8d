/*
 * Compressing a finished file. See compression.h.
 */
#include "vm_trace/store/compression.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PART_BYTES = 1 << 20, /* what is read and compressed at a time */
    LEVEL = 1             /* the fastest: records of a trace repeat each other, so more gains little */
};

/* zlib.h */
typedef void *gz_file;
static struct {
    gz_file (*dopen)(int fd, const char *mode);
    int (*write)(gz_file file, const void *bytes, unsigned size);
    int (*close)(gz_file file);
} gz;

/* zstd.h */
static struct {
    size_t (*compress)(void *to, size_t capacity, const void *from, size_t size, int level);
    size_t (*bound)(size_t size);
    unsigned (*is_error)(size_t code);
} zstd;

static const struct {
    const char *name, *suffix, *library;
} all[] = {
    [VM_TRACE_UNCOMPRESSED] = { "none", "", NULL },
    [VM_TRACE_GZIP] = { "gzip", ".gz", "libz.so.1" },
    [VM_TRACE_ZSTD] = { "zstd", ".zst", "libzstd.so.1" }
};

bool
rb_vm_trace_compression_named(const char *name, enum vm_trace_compression *compression_out)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].name, name) != 0) continue;
        *compression_out = (enum vm_trace_compression)i;
        return true;
    }
    return false;
}

const char *
rb_vm_trace_compression_suffix(enum vm_trace_compression compression)
{
    return all[compression].suffix;
}

/* --- libraries --------------------------------------------------------------------------------------------- */

/* ISO C has no conversion of an object's address to a function's; POSIX says that this works (dlsym). */
static bool
find(void *library, const char *name, void *function_out)
{
    void *address = dlsym(library, name);
    memcpy(function_out, &address, sizeof(address));
    return address != NULL;
}

static bool
find_functions(enum vm_trace_compression compression, void *library)
{
    if (compression == VM_TRACE_GZIP)
        return find(library, "gzdopen", &gz.dopen) && find(library, "gzwrite", &gz.write) &&
            find(library, "gzclose", &gz.close);
    return find(library, "ZSTD_compress", &zstd.compress) && find(library, "ZSTD_compressBound", &zstd.bound) &&
        find(library, "ZSTD_isError", &zstd.is_error);
}

const char *
rb_vm_trace_compression_load(enum vm_trace_compression compression)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool loaded[sizeof(all) / sizeof(all[0])];
    if (!all[compression].library) return NULL;
    pthread_mutex_lock(&lock);
    if (!loaded[compression]) {
        void *library = dlopen(all[compression].library, RTLD_NOW | RTLD_LOCAL);
        loaded[compression] = library && find_functions(compression, library);
    }
    bool ok = loaded[compression];
    pthread_mutex_unlock(&lock);
    if (ok) return NULL;
    return compression == VM_TRACE_GZIP ? "this system has no libz.so.1 (zlib)" : "this system has no libzstd.so.1";
}

/* --- files ------------------------------------------------------------------------------------------------- */

static bool
read_all(int fd, char *to, size_t bytes, uint64_t at)
{
    while (bytes > 0) {
        ssize_t n = pread(fd, to, bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO; /* someone has cut it */
        if (n <= 0) return false;
        to += n;
        at += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool
write_all(int fd, const char *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, from, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        from += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* `room` has space for zstd.bound(PART_BYTES). */
static bool
zstd_part(int to, const char *part, size_t bytes, char *room)
{
    size_t size = zstd.compress(room, zstd.bound(PART_BYTES), part, bytes, LEVEL);
    if (!zstd.is_error(size)) return write_all(to, room, size);
    errno = ENOMEM; /* nothing else can go wrong in so much room */
    return false;
}

/* A copy of the descriptor is gzip's: it closes it. */
static gz_file
open_gzip(int to)
{
    int copy = fcntl(to, F_DUPFD_CLOEXEC, 0);
    gz_file file = copy >= 0 ? gz.dopen(copy, "wb1") : NULL;
    if (copy >= 0 && !file) {
        close(copy);
        errno = ENOMEM;
    }
    return file;
}

/* zlib keeps errno of a write that failed, or there was no memory. */
static bool
gzip_part(gz_file file, const char *part, size_t bytes)
{
    errno = ENOMEM;
    return gz.write(file, part, (unsigned)bytes) == (int)bytes;
}

int
rb_vm_trace_compress(enum vm_trace_compression compression, int from, uint64_t bytes, int to)
{
    bool gzip = compression == VM_TRACE_GZIP;
    char *part = malloc(PART_BYTES), *room = gzip ? NULL : malloc(zstd.bound(PART_BYTES));
    gz_file file = gzip && part ? open_gzip(to) : NULL;
    bool ok = part && (file || room);
    int error = ok ? 0 : errno ? errno : ENOMEM;
    for (uint64_t at = 0; ok && at < bytes; at += PART_BYTES) {
        size_t size = bytes - at < PART_BYTES ? (size_t)(bytes - at) : PART_BYTES;
        ok = read_all(from, part, size, at) && (gzip ? gzip_part(file, part, size) : zstd_part(to, part, size, room));
        if (!ok) error = errno;
    }
    if (file && gz.close(file) != 0 && !error) error = errno ? errno : EIO;
    free(room);
    free(part);
    return error;
}
