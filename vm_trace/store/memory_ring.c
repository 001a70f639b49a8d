/*
 * Memory in place of a file. See memory_ring.h.
 */
#include "vm_trace/store/memory_ring.h"
#include "vm_trace/platform/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
grows_p(const struct rb_vm_trace_chunk_file *file)
{
    struct stat st;
    return fstat(file->fd, &st) == 0 && st.st_dev == file->device && st.st_ino == file->inode;
}

static void
begin_ring(struct rb_vm_trace_chunk_file *file)
{
    if (grows_p(file)) rb_vm_trace_platform_memory_file_keeps(file->fd);
}

static void
close_memory(struct rb_vm_trace_chunk_file *file)
{
    munmap(file->memory, (size_t)file->memory_bytes);
    file->memory = NULL; /* from here on it is a file, for its descriptor to be looked at */
    file->snapshot = false;
    file->held = NULL;
}

bool
rb_vm_trace_memory_dump(const struct rb_vm_trace_chunk_file *file, int fd)
{
    const char *from = file->memory;
    uint64_t bytes = __atomic_load_n(&file->size, __ATOMIC_RELAXED);
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
rb_vm_trace_chunk_snapshot_room(struct rb_vm_trace_chunk_snapshot *snapshot, const struct rb_vm_trace_chunk_file *file,
                                size_t in_use)
{
    size_t capacity = (size_t)(file->max_bytes / VM_TRACE_CHUNK_BYTES) + in_use;
    if (capacity <= snapshot->capacity) return true;
    struct vm_trace_snapshot_chunk *chunks = realloc(snapshot->chunks, capacity * sizeof(*chunks));
    if (!chunks) return false;
    snapshot->chunks = chunks;
    snapshot->capacity = capacity;
    return true;
}

void
rb_vm_trace_chunk_snapshot_free(struct rb_vm_trace_chunk_snapshot *snapshot)
{
    free(snapshot->chunks);
    *snapshot = (struct rb_vm_trace_chunk_snapshot){ 0 };
}

static size_t
at_front(const struct rb_vm_trace_chunk_file *file, size_t index)
{
    return (file->first_idle + index) % file->max_idle;
}

void
rb_vm_trace_memory_snapshot_begin(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk_snapshot *snapshot)
{
    /* Chunks that may still be created count for the half that writers go on in. */
    size_t most = (size_t)(file->max_bytes / VM_TRACE_CHUNK_BYTES) - 1,
           made = (size_t)(file->size / VM_TRACE_CHUNK_BYTES);
    size_t to_come = most > made ? most - made : 0, half = most / 2;
    size_t older = half > to_come ? half - to_come : 0;

    size_t idle = file->idle_count;
    for (size_t i = 0; i < idle; i++) {
        snapshot->chunks[i] =
            (struct vm_trace_snapshot_chunk){ file->idle[at_front(file, i)], VM_TRACE_CHUNK_WORDS, false };
    }
    snapshot->count = snapshot->idle = idle;
    snapshot->older = older < idle ? older : idle;
    file->snapshot = true;
    file->held = snapshot;
    file->idle_count = file->older = snapshot->older;
    file->popped = 0;
}

void
rb_vm_trace_memory_snapshot_in_use(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk_snapshot *snapshot,
                                   uint64_t offset, size_t words)
{
    for (size_t i = 0; i < snapshot->count; i++) {
        if (snapshot->chunks[i].offset == offset) return;
    }
    snapshot->chunks[snapshot->count++] = (struct vm_trace_snapshot_chunk){ offset, words, false };
}

static bool
hold(struct rb_vm_trace_chunk_file *file, uint64_t offset)
{
    struct rb_vm_trace_chunk_snapshot *snapshot = file->held;
    for (size_t i = snapshot->idle; i < snapshot->count; i++) {
        if (snapshot->chunks[i].offset != offset) continue;
        snapshot->chunks[i].released = true;
        return true;
    }
    return false;
}

/* Behind those that are older than it. */
static void
insert_idle(struct rb_vm_trace_chunk_file *file, uint64_t offset)
{
    for (size_t i = file->idle_count++; i > file->older; i--) {
        file->idle[at_front(file, i)] = file->idle[at_front(file, i - 1)];
    }
    file->idle[at_front(file, file->older++)] = offset;
}

static bool
give_back(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk_snapshot *snapshot, size_t index)
{
    struct vm_trace_snapshot_chunk *chunk = &snapshot->chunks[index];
    if (index < snapshot->older) return file->popped <= index; /* it never left the ring */
    if (index < snapshot->idle) {
        insert_idle(file, chunk->offset);
    }
    else {
        if (chunk->released) rb_vm_trace_chunk_file_push_idle(file, chunk->offset);
        chunk->offset = UINT64_MAX; /* held no longer */
    }
    return true;
}

bool
rb_vm_trace_memory_give_back(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk_snapshot *snapshot,
                             size_t index)
{
    pthread_mutex_lock(&file->lock);
    bool whole = file->snapshot && give_back(file, snapshot, index);
    pthread_mutex_unlock(&file->lock);
    return whole;
}

void
rb_vm_trace_memory_snapshot_end(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk_snapshot *snapshot,
                                size_t index)
{
    pthread_mutex_lock(&file->lock);
    for (; file->snapshot && index < snapshot->count; index++) give_back(file, snapshot, index);
    file->snapshot = false;
    file->held = NULL;
    file->older = 0;
    pthread_mutex_unlock(&file->lock);
}

/* --- making it ----------------------------------------------------------------------------------- */

static const struct vm_trace_chunk_memory calls = {
    .grows_p = grows_p, .begin_ring = begin_ring, .hold = hold, .close = close_memory
};

const char *
rb_vm_trace_memory_open(struct rb_vm_trace_chunk_file *file)
{
    int fd = rb_vm_trace_platform_memory_file();
    if (fd < 0) return strerror(errno);
    /* As with a file: see rb_vm_trace_chunk_file_open. */
    if (fcntl(fd, F_SETFL, O_APPEND) != 0) {
        int error = errno;
        close(fd);
        return strerror(error);
    }
    /* Addresses for all that it may become; there is memory behind them as far as it has grown. */
    void *at = mmap(NULL, (size_t)file->max_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        int error = errno;
        close(fd);
        return strerror(error);
    }
    const char *why = rb_vm_trace_chunk_file_begin(file, fd);
    if (why) {
        munmap(at, (size_t)file->max_bytes);
        return why;
    }
    file->memory = at;
    file->memory_calls = &calls;
    file->memory_bytes = file->max_bytes;
    return NULL;
}
