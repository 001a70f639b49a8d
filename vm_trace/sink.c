/*
 * The trace file. See sink.h for its rules.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* fallocate, pwritev */
#endif
#include "sink.h"
#include "fxt.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* A chunk is written from a piece of padding, over and over. */
#define PIECE_BYTES ((size_t)1 << 16)
#define PIECE_WORDS (PIECE_BYTES / FXT_WORD_BYTES)
#define PIECES (SINK_CHUNK_BYTES / PIECE_BYTES)
#define PAGE_BYTES (SINK_GRID_WORDS * FXT_WORD_BYTES)

static uint64_t padding_piece[PIECE_WORDS];
static uint64_t first_page[SINK_GRID_WORDS]; /* of the file: the magic number and padding */
static pthread_once_t padding_once = PTHREAD_ONCE_INIT;

static void
make_padding(void)
{
    for (size_t i = 0; i < PIECE_WORDS; i += SINK_GRID_WORDS) {
        padding_piece[i] = fxt_padding_header(SINK_GRID_WORDS);
    }
    first_page[0] = FXT_MAGIC_RECORD;
    first_page[1] = fxt_padding_header(SINK_GRID_WORDS - 1);
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
    pthread_once(&padding_once, make_padding);
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

/*
 * Write a chunk of padding, or fail with errno set. In one call where the kernel lets us: it then
 * takes its memory in large pieces, which costs half as much, now and when they are mapped.
 */
static bool
write_padding(int fd, uint64_t offset)
{
    for (size_t done = 0; done < SINK_CHUNK_BYTES; ) {
        struct iovec pieces[PIECES + 1];
        int count = 0;
        for (size_t at = done; at < SINK_CHUNK_BYTES; count++) {
            bool first = offset == 0 && at < PAGE_BYTES;
            size_t in_piece = at % PIECE_BYTES;
            size_t bytes = (first ? PAGE_BYTES : PIECE_BYTES) - in_piece;
            pieces[count].iov_base = (char *)(first ? first_page : padding_piece) + in_piece;
            pieces[count].iov_len = bytes;
            at += bytes;
        }
        ssize_t n = pwritev(fd, pieces, count, (off_t)(offset + done));
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
    if (!write_padding(sink->fd, sink->size)) {
        int error = errno;
        /* A part of a chunk is valid, but nobody would use it. */
        if (ftruncate(sink->fd, (off_t)sink->size) != 0) { /* it stays as padding */ }
        return error;
    }
    return 0;
}

/*
 * Map the chunk at `offset`, at an address that is as far from a multiple of the chunk's size as
 * the offset is: a large piece of the page cache is mapped by one fault only when it does not lie
 * across an entry of the page table's next level, and else by one a page, 5 us each (Linux 6.18).
 * Not MAP_POPULATE: it would map the pages for reading, and each would fault once more.
 */
static void *
map_chunk(int fd, uint64_t offset)
{
    char *room = mmap(NULL, 2 * SINK_CHUNK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return MAP_FAILED;
    size_t before = (size_t)((offset - (uintptr_t)room) % SINK_CHUNK_BYTES);
    void *at = mmap(room + before, SINK_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
    int error = errno;
    if (at == MAP_FAILED) {
        munmap(room, 2 * SINK_CHUNK_BYTES);
    }
    else {
        if (before) munmap(room, before);
        munmap(room + before + SINK_CHUNK_BYTES, SINK_CHUNK_BYTES - before);
    }
    errno = error;
    return at;
}

bool
rb_vm_trace_sink_reserve(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk_out)
{
    bool ok = false;

    pthread_mutex_lock(&sink->lock);
    if (sink->fd >= 0 && sink->error == 0) {
        sink->error = grow(sink);
        if (sink->error == 0) {
            void *at = map_chunk(sink->fd, sink->size);
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
