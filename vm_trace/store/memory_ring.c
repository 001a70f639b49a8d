/*
 * Memory in place of a file. See memory_ring.h.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* memfd_create, F_ADD_SEALS, MADV_POPULATE_WRITE */
#endif
#include "vm_trace/store/memory_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
grows_p(const struct rb_vm_trace_sink *sink)
{
    struct stat st;
    return fstat(sink->fd, &st) == 0 && st.st_dev == sink->device && st.st_ino == sink->inode;
}

static void
touch(void *chunk)
{
#ifdef MADV_POPULATE_WRITE
    if (madvise(chunk, SINK_CHUNK_BYTES, MADV_POPULATE_WRITE) != 0) { /* then they come one by one */ }
#endif
}

static void
begin_ring(struct rb_vm_trace_sink *sink)
{
    if (grows_p(sink) && fcntl(sink->fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) { /* an old kernel */ }
}

static void
close_memory(struct rb_vm_trace_sink *sink)
{
    munmap(sink->memory, (size_t)sink->memory_bytes);
    sink->memory = NULL; /* from here on it is a file, for its descriptor to be looked at */
    sink->frozen = false;
    sink->held = NULL;
}

bool
rb_vm_trace_memory_dump(const struct rb_vm_trace_sink *sink, int fd)
{
    const char *from = sink->memory;
    uint64_t bytes = __atomic_load_n(&sink->size, __ATOMIC_RELAXED);
    for (uint64_t done = 0; done < bytes; ) {
        ssize_t n = write(fd, from + done, (size_t)(bytes - done));
        if (n == 0) errno = ENOSPC;
        if (n == 0 || (n < 0 && errno != EINTR)) return false;
        if (n > 0) done += (uint64_t)n;
    }
    return true;
}

/* --- freezing ---------------------------------------------------------------------------------- */

bool
rb_vm_trace_frozen_room(struct rb_vm_trace_frozen *frozen, const struct rb_vm_trace_sink *sink, size_t in_use)
{
    size_t capacity = (size_t)(sink->max_bytes / SINK_CHUNK_BYTES) + in_use;
    if (capacity <= frozen->capacity) return true;
    struct vm_trace_frozen_chunk *chunks = realloc(frozen->chunks, capacity * sizeof(*chunks));
    if (!chunks) return false;
    frozen->chunks = chunks;
    frozen->capacity = capacity;
    return true;
}

void
rb_vm_trace_frozen_free(struct rb_vm_trace_frozen *frozen)
{
    free(frozen->chunks);
    *frozen = (struct rb_vm_trace_frozen){ 0 };
}

static size_t
at_front(const struct rb_vm_trace_sink *sink, size_t index)
{
    return (sink->first_idle + index) % sink->max_idle;
}

void
rb_vm_trace_memory_freeze(struct rb_vm_trace_sink *sink, struct rb_vm_trace_frozen *frozen)
{
    /* What may still be made anew counts for the half that writers go on in. */
    size_t most = (size_t)(sink->max_bytes / SINK_CHUNK_BYTES) - 1, made = (size_t)(sink->size / SINK_CHUNK_BYTES);
    size_t to_come = most > made ? most - made : 0, half = most / 2;
    size_t older = half > to_come ? half - to_come : 0;

    size_t idle = sink->idle_count;
    for (size_t i = 0; i < idle; i++) {
        frozen->chunks[i] = (struct vm_trace_frozen_chunk){ sink->idle[at_front(sink, i)], SINK_CHUNK_WORDS, false };
    }
    frozen->count = frozen->idle = idle;
    frozen->older = older < idle ? older : idle;
    sink->frozen = true;
    sink->held = frozen;
    sink->idle_count = sink->older = frozen->older;
    sink->popped = 0;
}

void
rb_vm_trace_memory_freeze_in_use(struct rb_vm_trace_sink *sink, struct rb_vm_trace_frozen *frozen, uint64_t offset, size_t words)
{
    for (size_t i = 0; i < frozen->count; i++) {
        if (frozen->chunks[i].offset == offset) return;
    }
    frozen->chunks[frozen->count++] = (struct vm_trace_frozen_chunk){ offset, words, false };
}

static bool
hold(struct rb_vm_trace_sink *sink, uint64_t offset)
{
    struct rb_vm_trace_frozen *frozen = sink->held;
    for (size_t i = frozen->idle; i < frozen->count; i++) {
        if (frozen->chunks[i].offset != offset) continue;
        frozen->chunks[i].released = true;
        return true;
    }
    return false;
}

/* Behind those that are older than it. */
static void
insert_idle(struct rb_vm_trace_sink *sink, uint64_t offset)
{
    for (size_t i = sink->idle_count++; i > sink->older; i--) {
        sink->idle[at_front(sink, i)] = sink->idle[at_front(sink, i - 1)];
    }
    sink->idle[at_front(sink, sink->older++)] = offset;
}

static bool
give_back(struct rb_vm_trace_sink *sink, struct rb_vm_trace_frozen *frozen, size_t index)
{
    struct vm_trace_frozen_chunk *chunk = &frozen->chunks[index];
    if (index < frozen->older) return sink->popped <= index; /* it never left the ring */
    if (index < frozen->idle) {
        insert_idle(sink, chunk->offset);
    }
    else {
        if (chunk->released) rb_vm_trace_sink_push_idle(sink, chunk->offset);
        chunk->offset = UINT64_MAX; /* held no longer */
    }
    return true;
}

bool
rb_vm_trace_memory_give_back(struct rb_vm_trace_sink *sink, struct rb_vm_trace_frozen *frozen, size_t index)
{
    pthread_mutex_lock(&sink->lock);
    bool whole = sink->frozen && give_back(sink, frozen, index);
    pthread_mutex_unlock(&sink->lock);
    return whole;
}

void
rb_vm_trace_memory_thaw(struct rb_vm_trace_sink *sink, struct rb_vm_trace_frozen *frozen, size_t index)
{
    pthread_mutex_lock(&sink->lock);
    for (; sink->frozen && index < frozen->count; index++) give_back(sink, frozen, index);
    sink->frozen = false;
    sink->held = NULL;
    sink->older = 0;
    pthread_mutex_unlock(&sink->lock);
}

/* --- making it ----------------------------------------------------------------------------------- */

static const struct vm_trace_chunk_memory calls = {
    .grows_p = grows_p, .touch = touch, .begin_ring = begin_ring, .hold = hold, .close = close_memory
};

const char *
rb_vm_trace_memory_open(struct rb_vm_trace_sink *sink)
{
    int fd = memfd_create("vm_trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return strerror(errno);
    /* As with a file: see rb_vm_trace_sink_open. */
    if (fcntl(fd, F_SETFL, O_APPEND) != 0) {
        int error = errno;
        close(fd);
        return strerror(error);
    }
    /* Addresses for all that it may become; there is memory behind them as far as it has grown. */
    void *at = mmap(NULL, (size_t)sink->max_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        int error = errno;
        close(fd);
        return strerror(error);
    }
    const char *why = rb_vm_trace_sink_begin(sink, fd);
    if (why) {
        munmap(at, (size_t)sink->max_bytes);
        return why;
    }
    sink->memory = at;
    sink->memory_calls = &calls;
    sink->memory_bytes = sink->max_bytes;
    return NULL;
}
