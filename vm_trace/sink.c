/*
 * The trace file. See sink.h for its rules.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* fallocate */
#endif
#include "sink.h"
#include "fxt.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is written at once; a chunk is a whole number of these. */
#define BLOCK_BYTES ((size_t)1 << 16)
#define BLOCK_WORDS (BLOCK_BYTES / FXT_WORD_BYTES)

static uint64_t padding_block[BLOCK_WORDS];
static pthread_once_t padding_once = PTHREAD_ONCE_INIT;

static void
make_padding_block(void)
{
    for (size_t i = 0; i < BLOCK_WORDS; i += SINK_GRID_WORDS) {
        padding_block[i] = fxt_padding_header(SINK_GRID_WORDS);
    }
}

/* Take away a stale trace of our own; false when what is there is not ours to remove. */
static const char *
remove_stale(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT ? NULL : strerror(errno);
    if (!S_ISREG(st.st_mode)) return "it exists and is not a regular file";
    if (st.st_uid != geteuid()) return "it exists and belongs to another user";
    if (unlink(path) != 0 && errno != ENOENT) return strerror(errno);
    return NULL;
}

const char *
rb_vm_trace_sink_open(struct rb_vm_trace_sink *sink, const char *path)
{
    /* O_EXCL follows no link; a few rounds, for someone may make the file again meanwhile. */
    int fd = -1;
    for (int round = 0; round < 3; round++) {
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST) break;
        const char *why = remove_stale(path);
        if (why) return why;
        errno = EEXIST;
    }
    if (fd < 0) return strerror(errno);

    struct stat st;
    if (fstat(fd, &st) != 0) {
        const char *why = strerror(errno);
        close(fd);
        return why;
    }
    pthread_once(&padding_once, make_padding_block);
    sink->fd = fd;
    sink->device = st.st_dev;
    sink->inode = st.st_ino;
    sink->size = 0;
    sink->error = 0;
    return NULL;
}

/*
 * A program that closes all descriptors it knows nothing of, as daemons do, closes ours, and its
 * next file gets the number. That must never be written to.
 */
static bool
sink_fd_is_ours(const struct rb_vm_trace_sink *sink)
{
    struct stat st;
    return fstat(sink->fd, &st) == 0 && st.st_dev == sink->device && st.st_ino == sink->inode;
}

/* Write all of a block, or fail with errno set. */
static bool
write_block(int fd, const uint64_t *words, uint64_t offset)
{
    const char *bytes = (const char *)words;
    for (size_t done = 0; done < BLOCK_BYTES; ) {
        ssize_t n = pwrite(fd, bytes + done, BLOCK_BYTES - done, (off_t)(offset + done));
        if (n > 0) {
            done += (size_t)n;
        }
        else if (n == 0) {
            errno = ENOSPC;
            return false;
        }
        else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* Grow the file by one chunk of padding. Returns 0 or an errno. */
static int
grow(struct rb_vm_trace_sink *sink)
{
    if (!sink_fd_is_ours(sink)) return EBADF;

    /* Past the limit the kernel would send SIGXFSZ, which kills: look first. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        sink->size + SINK_CHUNK_BYTES > limit.rlim_cur) {
        return EFBIG;
    }
#ifdef FALLOC_FL_KEEP_SIZE
    /* Ask for the space without a change of size, for new bytes would be zeros. */
    if (fallocate(sink->fd, FALLOC_FL_KEEP_SIZE, (off_t)sink->size, (off_t)SINK_CHUNK_BYTES) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) {
        return errno;
    }
#endif
    for (size_t done = 0; done < SINK_CHUNK_BYTES; done += BLOCK_BYTES) {
        const uint64_t *block = padding_block;
        uint64_t first[BLOCK_WORDS];
        if (sink->size + done == 0) {
            memcpy(first, padding_block, sizeof(first));
            first[0] = FXT_MAGIC_RECORD;
            first[1] = fxt_padding_header(SINK_GRID_WORDS - 1);
            block = first;
        }
        if (!write_block(sink->fd, block, sink->size + done)) {
            int error = errno;
            /* A part of a chunk is valid, but nobody would use it. */
            if (ftruncate(sink->fd, (off_t)sink->size) != 0) { /* it stays as padding */ }
            return error;
        }
    }
    return 0;
}

bool
rb_vm_trace_sink_reserve(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk_out)
{
    bool ok = false;

    pthread_mutex_lock(&sink->lock);
    if (sink->fd >= 0 && sink->error == 0) {
        sink->error = grow(sink);
        if (sink->error == 0) {
            /* Not MAP_POPULATE: it would map the pages for reading, and each would fault once more. */
            void *at = mmap(NULL, SINK_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                            sink->fd, (off_t)sink->size);
            if (at == MAP_FAILED) {
                sink->error = errno;
            }
            else {
                chunk_out->words = at;
                chunk_out->first = sink->size == 0 ? 1 : 0;
                chunk_out->offset = sink->size;
                ok = true;
            }
            sink->size += SINK_CHUNK_BYTES;
        }
    }
    pthread_mutex_unlock(&sink->lock);
    return ok;
}

void
rb_vm_trace_sink_release(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk, size_t used)
{
    if (!chunk->words) return;
    munmap(chunk->words, SINK_CHUNK_BYTES);
    chunk->words = NULL;

    pthread_mutex_lock(&sink->lock);
    if (sink->fd >= 0 && chunk->offset + SINK_CHUNK_BYTES == sink->size && sink_fd_is_ours(sink)) {
        /* To the end of the page: the next chunk is mapped from there, and the record of
         * padding that fills the page stays whole. */
        uint64_t size = chunk->offset +
            (used + SINK_GRID_WORDS - 1) / SINK_GRID_WORDS * SINK_GRID_WORDS * FXT_WORD_BYTES;
        if (ftruncate(sink->fd, (off_t)size) == 0) sink->size = size;
    }
    pthread_mutex_unlock(&sink->lock);
}

void
rb_vm_trace_chunk_drop(struct rb_vm_trace_chunk *chunk)
{
    if (chunk->words) munmap(chunk->words, SINK_CHUNK_BYTES);
    chunk->words = NULL;
}

void
rb_vm_trace_sink_close(struct rb_vm_trace_sink *sink)
{
    if (sink->fd >= 0 && sink_fd_is_ours(sink)) close(sink->fd);
    sink->fd = -1;
}
