/*
 * The trace file. See chunk_file.h for its rules.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* fallocate, MAP_ANONYMOUS */
#endif
#include "vm_trace/store/chunk_file.h"
#include "vm_trace/store/file_claim.h"
#include "vm_trace/base/fxt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* A chunk is written from a piece of padding, over and over. */
#define PIECE_BYTES ((size_t)1 << 16)
#define PIECE_WORDS (PIECE_BYTES / FXT_WORD_BYTES)
#define PIECES (SINK_CHUNK_BYTES / PIECE_BYTES)
#define PAGE_BYTES (SINK_GRID_WORDS * FXT_WORD_BYTES)

int64_t rb_vm_trace_sink_wait_ns = SINK_WAIT_NS;

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

const char *
rb_vm_trace_sink_open(struct rb_vm_trace_sink *sink, const char *path)
{
    const char *why;
    /* O_APPEND: bytes written after a cut must not leave a hole, for zeros are no records. */
    int fd = rb_vm_trace_claim_create(path, O_RDWR | O_APPEND, &why);
    return fd < 0 ? why : rb_vm_trace_sink_begin(sink, fd);
}

const char *
rb_vm_trace_sink_open_beside(struct rb_vm_trace_sink *sink, char **path, uint32_t pid, char **kept_out, const char **why_kept_out)
{
    *kept_out = NULL;
    *why_kept_out = NULL;
    const char *why = rb_vm_trace_sink_open(sink, *path), *why_kept = why;
    if (!why || errno != EBUSY) return why;
    char *name = malloc(strlen(*path) + CLAIM_SUFFIX_BYTES);
    if (!name) return strerror(ENOMEM);
    for (unsigned n = 1; why && errno == EBUSY && n < CLAIM_NAMES; n++) {
        rb_vm_trace_claim_name(name, *path, pid, n);
        why = rb_vm_trace_sink_open(sink, name);
    }
    *kept_out = *path;
    *why_kept_out = why_kept;
    *path = name;
    return why;
}

/* Nobody waits. The time of waits must not depend on what the clock on the wall is set to. */
static void
begin_waiting(struct rb_vm_trace_sink *sink)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sink->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

const char *
rb_vm_trace_sink_begin(struct rb_vm_trace_sink *sink, int fd)
{
    struct stat st;
    uint64_t *idle = NULL;
    size_t max_idle = sink->keep_newest ? (size_t)(sink->max_bytes / SINK_CHUNK_BYTES) : 0;
    if (fstat(fd, &st) != 0 || (max_idle > 0 && !(idle = malloc(max_idle * sizeof(*idle))))) {
        int error = errno;
        close(fd);
        errno = error;
        return strerror(error);
    }
    pthread_once(&padding_once, make_padding);
    free(sink->idle);
    sink->fd = fd;
    sink->device = st.st_dev;
    sink->inode = st.st_ino;
    sink->size = 0;
    sink->error = sink->reason = sink->trim_error = 0;
    sink->full[0] = '\0';
    sink->ended = sink->starved = sink->cut = sink->frozen = false;
    sink->recording = sink->disk_busy = sink->making = sink->making_again = sink->next_wanted = sink->demanded = sink->late = false;
    begin_waiting(sink);
    sink->held = NULL;
    sink->idle = idle;
    sink->first_idle = sink->idle_count = sink->max_idle = 0;
    sink->own = sink->shared = 0;
    sink->dropped = (struct vm_trace_counts){ 0, 0 };
    return NULL;
}

void
rb_vm_trace_sink_discard(struct rb_vm_trace_sink *sink, const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && st.st_dev == sink->device && st.st_ino == sink->inode) unlink(path);
    rb_vm_trace_sink_close(sink);
}

/*
 * What others did to the file. A program that closes all descriptors it knows nothing of, as
 * daemons do, closes ours, and its next file gets the number: that must never be written to.
 */
static int
file_trouble(const struct rb_vm_trace_sink *sink)
{
    struct stat st;
    if (sink->memory) return 0; /* nobody can cut it short (it is sealed), and its descriptor is for growing only */
    if (fstat(sink->fd, &st) != 0) return errno;
    if (st.st_dev != sink->device || st.st_ino != sink->inode) return EBADF;
    if (st.st_nlink == 0) return SINK_REMOVED;
    if ((uint64_t)st.st_size < sink->size) return SINK_CUT;
    return __atomic_load_n(&sink->cut, __ATOMIC_RELAXED) ? SINK_REFUSED : 0;
}

/*
 * Append a chunk of padding, or fail with errno set. In one call where the kernel lets us: it then
 * takes its memory in large pieces, which costs half as much, now and when they are mapped.
 */
static bool
append_padding(int fd, bool at_start)
{
    for (size_t done = 0; done < SINK_CHUNK_BYTES; ) {
        struct iovec pieces[PIECES + 1];
        int count = 0;
        for (size_t at = done; at < SINK_CHUNK_BYTES; count++) {
            bool first = at_start && at < PAGE_BYTES;
            size_t in_piece = at % PIECE_BYTES;
            size_t bytes = (first ? PAGE_BYTES : PIECE_BYTES) - in_piece;
            pieces[count].iov_base = (char *)(first ? first_page : padding_piece) + in_piece;
            pieces[count].iov_len = bytes;
            at += bytes;
        }
        ssize_t n = writev(fd, pieces, count);
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

/* By who uses the file. Others read it with the lock, which that one may not hold. */
static void
set_size(struct rb_vm_trace_sink *sink, uint64_t size)
{
    __atomic_store_n(&sink->size, size, __ATOMIC_RELAXED);
}

/* Past the limit the kernel would send SIGXFSZ, which kills: look first. */
static bool
rlimit_allows(uint64_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

/* Cut off the last part of a path; "/" stays. Returns what was cut off first, or NULL: nothing. */
static char *
cut_last_part(char *path, char *was_out)
{
    char *slash = strrchr(path, '/');
    if (!slash || path[1] == '\0') return NULL;
    char *end = slash == path ? slash + 1 : slash;
    *was_out = *end;
    *end = '\0';
    return end;
}

/* Write into sink->full where the disk is mounted, and how many bytes it has free. */
static void
describe_full(struct rb_vm_trace_sink *sink, uint64_t free_bytes)
{
    enum { MOST_NAMED = 80 }; /* of a longer path the end: the text must fit into the last words */
    char link[64], path[4096], was, *end;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", sink->fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    cut_last_part(path, &was); /* from its folder on, for overlayfs tells of another device for files */
    struct stat folder, above;
    bool known = stat(path, &folder) == 0;
    while (known && (end = cut_last_part(path, &was)) != NULL) {
        if (stat(path, &above) == 0 && above.st_dev == folder.st_dev) continue;
        *end = was;
        break;
    }
    size_t bytes = strlen(path);
    const char *name = bytes == 0 ? "the disk" : bytes > MOST_NAMED ? path + bytes - MOST_NAMED : path;
    snprintf(sink->full, sizeof(sink->full), "%.*s is full (%llu MiB free)", MOST_NAMED, name, (unsigned long long)(free_bytes >> 20));
}

/*
 * Whether its disk has less space than is to stay free. What is written at the end may use that.
 * Takes 1 us where the disk is local.
 */
static bool
disk_full(struct rb_vm_trace_sink *sink)
{
    struct statfs disk;
    if (!sink->min_free_bytes || sink->memory || sink->ended || fstatfs(sink->fd, &disk) != 0) return false;
    uint64_t unit = (uint64_t)(disk.f_frsize ? disk.f_frsize : disk.f_bsize);
    uint64_t all_bytes = disk.f_blocks * unit, free_bytes = disk.f_bavail * unit, least = sink->min_free_bytes;
    if (all_bytes == 0) return false; /* a file system that does not count */
    if (least == SINK_MIN_FREE_DEFAULT) {
        const uint64_t gib = UINT64_C(1) << 30;
        least = all_bytes / 20 < gib ? all_bytes / 20 : gib;
    }
    if (free_bytes >= least) return false;
    describe_full(sink, free_bytes);
    return true;
}

/* Read from `offset` on till the buffer is full or the file ends. */
static size_t
read_words(int fd, uint64_t offset, uint64_t *words, size_t count)
{
    char *bytes = (char *)words;
    size_t size = count * FXT_WORD_BYTES, done = 0;
    while (done < size) {
        ssize_t n = pread(fd, bytes + done, size - done, (off_t)(offset + done));
        if (n == 0 || (n < 0 && errno != EINTR)) break;
        if (n > 0) done += (size_t)n;
    }
    return done / FXT_WORD_BYTES;
}

/* Where the last word ends that is not 0, of those before `size`; 0 when there is none. False: the file is shorter. */
static bool
end_of_content(int fd, uint64_t size, uint64_t *end_out)
{
    uint64_t page[SINK_GRID_WORDS], end = size - size % FXT_WORD_BYTES;
    while (end > 0) {
        size_t words = end >= PAGE_BYTES ? SINK_GRID_WORDS : (size_t)(end / FXT_WORD_BYTES);
        if (read_words(fd, end - words * FXT_WORD_BYTES, page, words) != words) return false;
        for (; words > 0 && page[words - 1] == 0; words--) end -= FXT_WORD_BYTES;
        if (words > 0) break;
    }
    *end_out = end;
    return true;
}

/*
 * Make the file shorter: `size` bytes. Where someone else cuts it below that just before, the same
 * call makes it longer, with zeros, which are no records. That is seen by the last word that was
 * not zero, and the zeros are cut off. Returns 0, SINK_CUT in such a case, or an errno.
 */
static int
shorten(int fd, uint64_t size)
{
    enum { ROUNDS = 100 }; /* someone may cut it over and over */
    int result = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t content, now;
        if (!end_of_content(fd, size, &content)) return SINK_CUT;
        if (ftruncate(fd, (off_t)size) != 0) return errno;
        if (!end_of_content(fd, size, &now)) return SINK_CUT;
        if (now >= content) return result;
        result = SINK_CUT;
        size = now;
    }
    return SINK_CUT;
}

/* Take back what was appended behind `size`, which may not be where the file ended. */
static void
take_back(struct rb_vm_trace_sink *sink, uint64_t appended)
{
    struct stat st;
    if (fstat(sink->fd, &st) != 0 || (uint64_t)st.st_size < appended) return;
    shorten(sink->fd, (uint64_t)st.st_size - appended); /* or it stays as padding */
}

/* Grow the file by one chunk of padding. Returns 0 or what went wrong. */
static int
grow(struct rb_vm_trace_sink *sink)
{
    if (!rlimit_allows(sink->size + SINK_CHUNK_BYTES)) return EFBIG;
    if (disk_full(sink)) return SINK_FULL;
#ifdef FALLOC_FL_KEEP_SIZE
    /* Ask for the space without a change of size, for new bytes would be zeros. */
    if (fallocate(sink->fd, FALLOC_FL_KEEP_SIZE, (off_t)sink->size, (off_t)SINK_CHUNK_BYTES) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) {
        return errno;
    }
#endif
    if (!append_padding(sink->fd, sink->size == 0)) {
        int error = errno;
        /* A part of a chunk is valid, but nobody would use it. */
        if (file_trouble(sink) == 0) shorten(sink->fd, sink->size); /* or it stays as padding */
        return error;
    }
    set_size(sink, sink->size + SINK_CHUNK_BYTES);
    int trouble = file_trouble(sink); /* it was cut just before: the new chunk is not where it should be */
    if (trouble == SINK_CUT) take_back(sink, SINK_CHUNK_BYTES);
    return trouble;
}

/*
 * Map the chunk at `offset`, at an address that is as far from a multiple of the chunk's size as
 * the offset is: a large piece of the page cache is mapped by one fault only when it does not lie
 * across an entry of the page table's next level, and else by one a page, 5 us each (Linux 6.18).
 * Not MAP_POPULATE: it would map the pages for reading, and each would fault once more.
 *
 * sink->renewing is where it is mapped, from before that until the caller is done with it: a child
 * that is forked meanwhile unmaps it.
 */
static void *
map_chunk(struct rb_vm_trace_sink *sink, uint64_t offset)
{
    char *room = mmap(NULL, 2 * SINK_CHUNK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return MAP_FAILED;
    size_t before = (size_t)((offset - (uintptr_t)room) % SINK_CHUNK_BYTES);
    __atomic_store_n(&sink->renewing, room + before, __ATOMIC_RELEASE);
    void *at = mmap(room + before, SINK_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, sink->fd, (off_t)offset);
    int error = errno;
    if (at == MAP_FAILED) {
        __atomic_store_n(&sink->renewing, NULL, __ATOMIC_RELEASE);
        munmap(room, 2 * SINK_CHUNK_BYTES);
    }
    else {
        if (before) munmap(room, before);
        munmap(room + before + SINK_CHUNK_BYTES, SINK_CHUNK_BYTES - before);
    }
    errno = error;
    return at;
}

static void
done_with_mapping(struct rb_vm_trace_sink *sink)
{
    __atomic_store_n(&sink->renewing, NULL, __ATOMIC_RELEASE);
}

static void *
map_at(struct rb_vm_trace_sink *sink, uint64_t offset)
{
    if (sink->memory) return sink->memory + offset;
    void *at = map_chunk(sink, offset);
    done_with_mapping(sink);
    if (at != MAP_FAILED) return at;
    sink->error = errno;
    return NULL;
}

static void
unmap(const struct rb_vm_trace_sink *sink, void *at)
{
    if (!sink->memory) munmap(at, SINK_CHUNK_BYTES);
}

void
rb_vm_trace_sink_push_idle(struct rb_vm_trace_sink *sink, uint64_t offset)
{
    sink->idle[(sink->first_idle + sink->idle_count++) % sink->max_idle] = offset;
}

/* The chunk that was given back first. There is one. */
static uint64_t
pop_idle(struct rb_vm_trace_sink *sink)
{
    uint64_t offset = sink->idle[sink->first_idle];
    sink->first_idle = (sink->first_idle + 1) % sink->max_idle;
    sink->idle_count--;
    if (sink->frozen) {
        sink->popped++;
        if (sink->older > 0) sink->older--;
    }
    return offset;
}

/*
 * Map the chunk at `offset` and make it fresh; what stood in it is counted. NULL, and *error_out
 * says why. sink->renewing stays, as with map_chunk.
 */
static void *
renew(struct rb_vm_trace_sink *sink, uint64_t offset, struct vm_trace_counts *dropped, int *error_out)
{
    void *at = sink->memory ? sink->memory + offset : map_chunk(sink, offset);
    if (at == MAP_FAILED) {
        *error_out = errno;
        return NULL;
    }
    __atomic_store_n(&sink->renewing, at, __ATOMIC_RELEASE);
    /* What gives way in memory is counted when a trace is saved. */
    bool whole = sink->memory || rb_vm_trace_records_count(at, SINK_CHUNK_WORDS, sink->sampled_categories, dropped) == SINK_CHUNK_WORDS;
    whole = whole && rb_vm_trace_records_renew(at, SINK_CHUNK_WORDS);
    if (whole) return at;
    done_with_mapping(sink);
    unmap(sink, at);
    *error_out = file_trouble(sink);
    if (!*error_out) *error_out = SINK_DAMAGED;
    return NULL;
}

/* The same for the chunk that was given back first. NULL, without an error, when there is none. */
static void *
reuse(struct rb_vm_trace_sink *sink, uint64_t *offset_out)
{
    if (sink->idle_count == 0) {
        sink->starved = true;
        return NULL;
    }
    *offset_out = pop_idle(sink);
    void *at = renew(sink, *offset_out, &sink->dropped, &sink->error);
    done_with_mapping(sink);
    return at;
}

/* Room at the end of a limited file that keeps its oldest events: for what is written last. */
static uint64_t
kept_for_the_end(const struct rb_vm_trace_sink *sink)
{
    if (sink->ended || sink->keep_newest) return 0;
    uint64_t share = sink->max_bytes / 8 / SINK_CHUNK_BYTES * SINK_CHUNK_BYTES;
    return share ? share : SINK_CHUNK_BYTES;
}

static bool
limit_allows(const struct rb_vm_trace_sink *sink)
{
    if (sink->memory && !sink->memory_calls->grows_p(sink)) return false;
    uint64_t size = __atomic_load_n(&sink->size, __ATOMIC_RELAXED);
    return !sink->max_bytes || size + SINK_CHUNK_BYTES + kept_for_the_end(sink) <= sink->max_bytes;
}

/* A fresh chunk, mapped; NULL when there is none. */
static void *
next_chunk(struct rb_vm_trace_sink *sink, uint64_t *offset_out)
{
    sink->error = file_trouble(sink);
    if (sink->error) return NULL;
    if (!limit_allows(sink)) {
        if (sink->keep_newest) return reuse(sink, offset_out);
        sink->error = SINK_LIMIT;
        return NULL;
    }
    *offset_out = sink->size;
    sink->error = grow(sink);
    /* Then what is there is all that it gets. */
    if (sink->max_idle > 0 && ((sink->error && sink->memory) || (sink->error == SINK_FULL && sink->idle_count > 0))) {
        sink->max_bytes = sink->size;
        if (sink->idle_count == 0) sink->reason = sink->error; /* too little for anyone who needs one more */
        sink->error = 0;
        return reuse(sink, offset_out);
    }
    if (sink->error) return NULL;
    if (sink->memory) sink->memory_calls->touch(sink->memory + *offset_out);
    return map_at(sink, *offset_out);
}

/* Cut padding off the end of the file. */
static void
trim(struct rb_vm_trace_sink *sink, uint64_t size)
{
    int error = shorten(sink->fd, size);
    if (error == 0) set_size(sink, size);
    else if (error != SINK_CUT) sink->trim_error = error;
}

/* Make the file end before its last chunk, which nobody uses. */
static void
cut_last_chunk(struct rb_vm_trace_sink *sink)
{
    uint64_t size = sink->size - SINK_CHUNK_BYTES;
    if (file_trouble(sink) == 0) trim(sink, size);
}

static void
drop_ready(struct rb_vm_trace_sink *sink)
{
    if (!sink->ready.words) return;
    if (sink->memory) {
        sink->ready.words = NULL;
        return;
    }
    bool last = sink->ready.offset + SINK_CHUNK_BYTES == sink->size;
    rb_vm_trace_chunk_drop(&sink->ready);
    if (last) cut_last_chunk(sink);
    else if (sink->max_idle > 0) rb_vm_trace_sink_push_idle(sink, sink->ready.offset); /* it was idle before */
}

/*
 * With every page mapped for writing, so that none faults when it is written to first. NULL: errno
 * says why. sink->renewing stays.
 */
static void *
map_and_touch(struct rb_vm_trace_sink *sink, uint64_t offset)
{
    if (sink->memory) {
        sink->memory_calls->touch(sink->memory + offset);
        return sink->memory + offset;
    }
    char *at = map_chunk(sink, offset);
    if (at == MAP_FAILED) return NULL;
    for (size_t byte = 0; byte < SINK_CHUNK_BYTES; byte += PAGE_BYTES) {
        __atomic_fetch_or((uint64_t *)(at + byte), 0, __ATOMIC_RELAXED);
    }
    return at;
}

/*
 * The oldest chunk of memory, made fresh. Without the lock meanwhile, for others want to give theirs
 * back, or to freeze what is there.
 */
static void
renew_oldest(struct rb_vm_trace_sink *sink)
{
    if (sink->idle_count < 2) return; /* the last one stays, or a writer might have to give up its own */
    uint64_t offset = pop_idle(sink);
    uint64_t *at = (uint64_t *)(sink->memory + offset);
    pthread_mutex_unlock(&sink->lock);
    bool whole = rb_vm_trace_records_renew(at, SINK_CHUNK_WORDS);
    pthread_mutex_lock(&sink->lock);
    /* One that someone wrote into is found to be so when its turn comes again. */
    if (whole) sink->ready = (struct rb_vm_trace_chunk){ .words = at, .offset = offset };
    else rb_vm_trace_sink_push_idle(sink, offset);
}

/* Cut off what is not used of the chunk at `offset`, the last of the file. */
static void
cut_last_rest(struct rb_vm_trace_sink *sink, uint64_t offset, size_t used)
{
    /* To the end of the page: the next chunk is mapped from there, and the record of
     * padding that fills the page stays whole. */
    trim(sink, offset + (used + SINK_GRID_WORDS - 1) / SINK_GRID_WORDS * SINK_GRID_WORDS * FXT_WORD_BYTES);
}

/* The same if it is the last that someone writes to. */
static void
cut_rest(struct rb_vm_trace_sink *sink, uint64_t offset, size_t used)
{
    uint64_t end = offset + SINK_CHUNK_BYTES;
    if (sink->ready.words && sink->ready.offset == end) drop_ready(sink);
    if (sink->size == end) cut_last_rest(sink, offset, used);
}

/* The work of the thread in memory: the next chunk. What fails here is left to fail again for the one who needs it. */
static void
make_ready_in_memory(struct rb_vm_trace_sink *sink)
{
    if (file_trouble(sink)) return;
    if (!limit_allows(sink)) {
        renew_oldest(sink);
        return;
    }
    uint64_t offset = sink->size;
    if (grow(sink) != 0) return;
    void *at = map_and_touch(sink, offset);
    sink->ready = (struct rb_vm_trace_chunk){ .words = at, .first = offset == 0, .offset = offset };
}

/* The thread uses the file, and needs no lock for it: the slow calls must hold up nobody. */
static void
begin_disk(struct rb_vm_trace_sink *sink, bool making)
{
    sink->disk_busy = true;
    sink->making = making;
    pthread_mutex_unlock(&sink->lock);
}

static void
end_disk(struct rb_vm_trace_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    sink->disk_busy = sink->making = sink->making_again = false;
    pthread_cond_broadcast(&sink->changed);
}

/* Wait until the thread does not use the file. For who may wait. */
static void
wait_for_disk(struct rb_vm_trace_sink *sink)
{
    while (sink->disk_busy) pthread_cond_wait(&sink->changed, &sink->lock);
}

/* Where the next chunk of a file is to come from. False: from nowhere. */
static bool
plan_next(struct rb_vm_trace_sink *sink, bool *again_out, uint64_t *offset_out)
{
    *again_out = !limit_allows(sink);
    if (!*again_out) return true;
    /* What is made fresh is gone: not before a writer needs it. */
    if (sink->max_idle == 0 || !sink->demanded || sink->idle_count == 0) return false;
    *offset_out = pop_idle(sink);
    sink->making_again = true;
    return true;
}

/* No chunk is ready: say why, if a writer needed one. Else the next one who does finds out again. */
static void
end_without_chunk(struct rb_vm_trace_sink *sink, int error)
{
    if (sink->demanded && error) sink->error = sink->reason = error;
    sink->late = sink->demanded = false;
    pthread_cond_broadcast(&sink->changed);
}

/* The work of the thread for a file: the next chunk. */
static void
make_ready_in_file(struct rb_vm_trace_sink *sink)
{
    bool again;
    uint64_t offset = 0;
    if (!plan_next(sink, &again, &offset)) {
        end_without_chunk(sink, sink->keep_newest ? 0 : SINK_LIMIT);
        return;
    }
    struct vm_trace_counts dropped = { 0, 0 };
    begin_disk(sink, true);
    void *at = NULL;
    int error = file_trouble(sink);
    if (!error && again) {
        at = renew(sink, offset, &dropped, &error);
    }
    else if (!error) {
        offset = sink->size;
        error = grow(sink);
        if (!error && !(at = map_and_touch(sink, offset))) {
            error = errno;
            cut_last_chunk(sink);
        }
    }
    end_disk(sink);
    done_with_mapping(sink);
    sink->dropped.events += dropped.events;
    sink->dropped.sampled += dropped.sampled;
    if (at) {
        sink->ready = (struct rb_vm_trace_chunk){ .words = at, .first = offset == 0, .offset = offset };
        sink->late = sink->demanded = false;
        sink->made++;
    }
    else if (error == SINK_FULL && !again && sink->idle_count > 0) {
        sink->max_bytes = sink->size; /* what is there is all that it gets */
        make_ready_in_file(sink);
    }
    else {
        if (again) sink->demanded = true; /* that chunk is gone */
        end_without_chunk(sink, error);
    }
}

/* What was given back is unmapped, and what is not used of it is cut off where it is the last of the file. */
static void
clear_spent(struct rb_vm_trace_sink *sink)
{
    while (sink->spent_count > 0) {
        struct rb_vm_trace_chunk spent = sink->spent[--sink->spent_count];
        rb_vm_trace_chunk_drop(&spent); /* with the lock: a forked child must know what is mapped */
        if (!sink->recording || sink->max_idle > 0 || sink->fd < 0 || sink->size != spent.offset + SINK_CHUNK_BYTES) continue;
        begin_disk(sink, false);
        if (file_trouble(sink) == 0) cut_last_rest(sink, spent.offset, spent.used);
        end_disk(sink);
    }
}

static void
work_ahead(void *argument)
{
    struct rb_vm_trace_sink *sink = argument;
    clear_spent(sink);
    if (!sink->next_wanted) return;
    sink->next_wanted = false;
    if (sink->fd < 0 || sink->error || sink->ended || sink->ready.words) return;
    if (sink->memory) make_ready_in_memory(sink);
    else make_ready_in_file(sink);
}

static void
ask_for_next(struct rb_vm_trace_sink *sink)
{
    sink->next_wanted = true;
    rb_vm_trace_ahead_ask(&sink->ahead, &sink->lock, work_ahead, sink);
}

void
rb_vm_trace_sink_ahead(struct rb_vm_trace_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    bool may = sink->memory ? sink->max_idle > 0 : !sink->keep_newest;
    if (may && sink->fd >= 0 && !sink->error && !sink->ended) ask_for_next(sink);
    pthread_mutex_unlock(&sink->lock);
}

void
rb_vm_trace_sink_recording(struct rb_vm_trace_sink *sink, bool on)
{
    pthread_mutex_lock(&sink->lock);
    wait_for_disk(sink);
    sink->recording = on && !sink->memory && sink->fd >= 0;
    sink->late = sink->demanded = false;
    pthread_mutex_unlock(&sink->lock);
}

static void
end_ahead(struct rb_vm_trace_sink *sink)
{
    rb_vm_trace_ahead_stop(&sink->ahead);
    sink->recording = false;
    clear_spent(sink);
    drop_ready(sink);
}

/* The chunk that was made ahead, if there is one and the file is well. */
static bool
take_ready(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk_out)
{
    if (!sink->ready.words) return false;
    if (file_trouble(sink)) {
        drop_ready(sink);
        return false;
    }
    *chunk_out = sink->ready;
    sink->ready.words = NULL;
    return true;
}

/* Chunks of a limited file that can be had now, one after the other. */
static uint64_t
to_be_had(const struct rb_vm_trace_sink *sink)
{
    uint64_t size = __atomic_load_n(&sink->size, __ATOMIC_RELAXED);
    uint64_t new_ones = sink->max_bytes > size ? (sink->max_bytes - size) / SINK_CHUNK_BYTES : 0;
    if (new_ones > 0 && sink->memory && !sink->memory_calls->grows_p(sink)) new_ones = 0;
    return sink->idle_count + (sink->ready.words != NULL || sink->making_again) + new_ones;
}

/*
 * Whether one ractor may have the next chunk for itself (`instead`: of one that it has). A thousand ractors must not make a file of
 * a GiB where each has a few exits: beyond so many the rest share one. Where chunks are used again one must stay for those that have none
 * to share. While a trace is made of memory the shared one can't be used again once it is full, so there must be another.
 */
static bool
own_allowed(const struct rb_vm_trace_sink *sink, bool instead)
{
    if (sink->ended || (sink->own == 0 && !sink->frozen)) return true;
    if (sink->max_idle == 0) return sink->own < SINK_MOST_OWN + (size_t)instead;
    size_t kept = (sink->shared == 0) + (sink->memory != NULL);
    return to_be_had(sink) > kept;
}

/* Make the next chunk, and wait for the disk. */
static bool
make_now(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk_out)
{
    uint64_t offset;
    void *at = next_chunk(sink, &offset);
    if (at) *chunk_out = (struct rb_vm_trace_chunk){ .words = at, .first = offset == 0, .offset = offset };
    chunk_out->none_idle = !at && !sink->error;
    return at != NULL;
}

/* Whether there is no chunk to wait for: all that the file may have are in use. */
static bool
all_in_use(const struct rb_vm_trace_sink *sink)
{
    return !sink->making && sink->keep_newest && sink->idle_count == 0 && !limit_allows(sink);
}

static struct timespec
time_from_now(int64_t ns)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    ns += time.tv_nsec;
    time.tv_sec += (time_t)(ns / 1000000000);
    time.tv_nsec = (long)(ns % 1000000000);
    return time;
}

/* Take a chunk from the thread, and wait for it only a moment. False: there is none, or it is late. */
static bool
take_in_time(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk_out, bool own, bool instead)
{
    struct timespec until = { 0, 0 };
    uint64_t made = UINT64_MAX;
    for (unsigned waits = 0; ; ) {
        if (sink->error || sink->fd < 0) return false;
        /* Others who waited, too, may have got theirs meanwhile. */
        chunk_out->none_idle = own && !own_allowed(sink, instead);
        if (chunk_out->none_idle) return false;
        if (sink->ready.words) break;
        if (sink->late) return false;
        if (all_in_use(sink)) {
            chunk_out->none_idle = sink->starved = true;
            return false;
        }
        sink->demanded = true;
        if (!sink->making && !sink->next_wanted) ask_for_next(sink);
        if (!sink->ahead.running) return make_now(sink, chunk_out); /* no thread is to be had */
        if (made != sink->made) until = time_from_now(rb_vm_trace_sink_wait_ns); /* the first time, and when another writer got one */
        made = sink->made;
        if (pthread_cond_timedwait(&sink->changed, &sink->lock, &until) != ETIMEDOUT || sink->ready.words) continue;
        /* On a busy machine it is not the disk that is waited for. */
        bool runnable = ++waits < SINK_MOST_WAITS && rb_vm_trace_ahead_runnable_p(&sink->ahead);
        if (runnable) until = time_from_now(rb_vm_trace_sink_wait_ns);
        else __atomic_store_n(&sink->late, true, __ATOMIC_RELAXED);
    }
    *chunk_out = sink->ready;
    sink->ready.words = NULL;
    return true;
}

static bool
reserve(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk_out, bool own, bool instead)
{
    bool ok = false;

    chunk_out->words = NULL;
    chunk_out->none_idle = false;
    pthread_mutex_lock(&sink->lock);
    if (!sink->recording) wait_for_disk(sink);
    if (sink->fd >= 0 && sink->error == 0) {
        if (sink->recording) ok = take_in_time(sink, chunk_out, own, instead);
        else if (own && !own_allowed(sink, instead)) chunk_out->none_idle = true;
        else ok = take_ready(sink, chunk_out) || make_now(sink, chunk_out);
        if (sink->error) sink->reason = sink->error;
        chunk_out->own = own;
        if (ok) ++*(own ? &sink->own : &sink->shared);
    }
    pthread_mutex_unlock(&sink->lock);
    return ok;
}

bool
rb_vm_trace_sink_reserve(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk_out)
{
    return reserve(sink, chunk_out, false, false);
}

bool
rb_vm_trace_sink_reserve_own(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk_out, bool instead)
{
    return reserve(sink, chunk_out, true, instead);
}

bool
rb_vm_trace_sink_sound_p(struct rb_vm_trace_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    bool sound = sink->fd >= 0 && !sink->error && !__atomic_load_n(&sink->cut, __ATOMIC_RELAXED);
    if (sound && !sink->recording) {
        wait_for_disk(sink);
        sound = file_trouble(sink) == 0;
    }
    pthread_mutex_unlock(&sink->lock);
    return sound;
}

static void
release_now(struct rb_vm_trace_sink *sink, uint64_t offset, size_t used)
{
    if (sink->max_idle == 0 || sink->ended) cut_rest(sink, offset, used);
    else if (!sink->held || !sink->memory_calls->hold(sink, offset)) rb_vm_trace_sink_push_idle(sink, offset);
}

/* Without a touch of the file. */
static void
release_recording(struct rb_vm_trace_sink *sink, uint64_t offset)
{
    if (sink->max_idle > 0) {
        rb_vm_trace_sink_push_idle(sink, offset);
        pthread_cond_broadcast(&sink->changed); /* who waits for a chunk may get it */
    }
    else if (sink->ahead.running && __atomic_load_n(&sink->size, __ATOMIC_RELAXED) == offset + SINK_CHUNK_BYTES) {
        rb_vm_trace_ahead_ask(&sink->ahead, &sink->lock, work_ahead, sink); /* to cut it off */
    }
}

void
rb_vm_trace_sink_release(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk, size_t used)
{
    if (!chunk->words) return;
    struct rb_vm_trace_chunk given = *chunk;
    chunk->words = NULL;

    pthread_mutex_lock(&sink->lock);
    if (!sink->recording) wait_for_disk(sink);
    if (sink->ahead.running && !sink->memory && sink->spent_count < (sink->recording ? SINK_MOST_SPENT : 1)) {
        given.used = used;
        sink->spent[sink->spent_count++] = given; /* the thread is asked for the next chunk soon: 40 us less for the one who records */
        given.words = NULL;
    }
    size_t *in_use = chunk->own ? &sink->own : &sink->shared;
    if (*in_use > 0) --*in_use; /* else it is of a file before this one */
    if (sink->recording) release_recording(sink, chunk->offset);
    else if (sink->fd >= 0 && file_trouble(sink) == 0) release_now(sink, chunk->offset, used);
    pthread_mutex_unlock(&sink->lock);
    if (given.words) unmap(sink, given.words);
}

void
rb_vm_trace_sink_begin_ring(struct rb_vm_trace_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    sink->max_idle = (size_t)(sink->max_bytes / SINK_CHUNK_BYTES);
    if (sink->memory) sink->memory_calls->begin_ring(sink);
    pthread_mutex_unlock(&sink->lock);
}

int
rb_vm_trace_sink_end(struct rb_vm_trace_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    wait_for_disk(sink);
    sink->ended = true;
    end_ahead(sink);
    if (sink->error == SINK_LIMIT || sink->error == SINK_FULL) sink->error = 0;
    int trouble = sink->fd >= 0 ? file_trouble(sink) : EBADF;
    if (trouble) sink->reason = trouble;
    pthread_mutex_unlock(&sink->lock);
    return trouble;
}

/* Bytes of the whole records that the file begins with. */
static uint64_t
whole_bytes(int fd, uint64_t *buffer, uint64_t sampled_categories, struct vm_trace_counts *counts)
{
    uint64_t offset = 0;
    if (read_words(fd, 0, buffer, 1) != 1 || buffer[0] != FXT_MAGIC_RECORD) return 0;
    for (;;) {
        size_t words = read_words(fd, offset, buffer, SINK_CHUNK_WORDS);
        size_t whole = rb_vm_trace_records_count(buffer, words, sampled_categories, counts);
        if (whole == 0) return offset;
        offset += whole * FXT_WORD_BYTES;
    }
}

/* What is left, padded to a page. Returns 0, or what is wrong: SINK_CUT when it was cut once more. */
static int
mend(struct rb_vm_trace_sink *sink, uint64_t *buffer, struct vm_trace_counts *left)
{
    *left = (struct vm_trace_counts){ 0, 0 };
    uint64_t size = whole_bytes(sink->fd, buffer, sink->sampled_categories, left);
    if (left->events == 0) size = 0; /* not even the settings: begin anew */
    int error = shorten(sink->fd, size);
    if (error) return error;
    size_t words = (SINK_GRID_WORDS - size / FXT_WORD_BYTES % SINK_GRID_WORDS) % SINK_GRID_WORDS;
    if (words > 0) {
        memset(buffer, 0, words * FXT_WORD_BYTES);
        buffer[0] = fxt_padding_header(words);
        size_t bytes = words * FXT_WORD_BYTES;
        if (!rlimit_allows(size + bytes)) return EFBIG;
        if (write(sink->fd, buffer, bytes) != (ssize_t)bytes) return EIO;
        size += bytes;
    }
    struct stat st;
    if (fstat(sink->fd, &st) != 0) return errno;
    if ((uint64_t)st.st_size != size) return SINK_CUT;
    sink->size = size;
    sink->cut = false;
    sink->error = 0;
    sink->dropped = (struct vm_trace_counts){ 0, 0 };
    sink->max_bytes = 0; /* what is left is less; and no chunk is where it was */
    return 0;
}

bool
rb_vm_trace_sink_mend(struct rb_vm_trace_sink *sink, struct vm_trace_counts *left_out)
{
    *left_out = (struct vm_trace_counts){ 0, 0 };
    uint64_t *buffer = malloc(SINK_CHUNK_BYTES);
    if (!buffer) return false;
    pthread_mutex_lock(&sink->lock);
    wait_for_disk(sink);
    enum { ROUNDS = 100 }; /* someone may cut it over and over */
    int error = sink->fd >= 0 ? file_trouble(sink) : EBADF;
    for (int round = 0; round < ROUNDS && (error == SINK_CUT || error == SINK_REFUSED); round++) {
        error = mend(sink, buffer, left_out);
    }
    pthread_mutex_unlock(&sink->lock);
    free(buffer);
    return error == 0;
}

static bool
put_memory_under(void *at, const void *address)
{
    if (!at || (uintptr_t)address - (uintptr_t)at >= SINK_CHUNK_BYTES) return false;
    return mmap(at, SINK_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
}

bool
rb_vm_trace_sink_fault(struct rb_vm_trace_sink *sink, const struct rb_vm_trace_chunk *chunk, const void *address)
{
    /* All that is called and touched here is allowed in a signal handler. */
    int saved = errno;
    bool ours = (chunk && put_memory_under(chunk->words, address)) ||
        put_memory_under(__atomic_load_n(&sink->renewing, __ATOMIC_ACQUIRE), address);
    if (ours) __atomic_store_n(&sink->cut, true, __ATOMIC_RELAXED);
    errno = saved;
    return ours;
}

const char *
rb_vm_trace_sink_reason(const struct rb_vm_trace_sink *sink, int error)
{
    switch (error) {
      case SINK_LIMIT: return "the limit of the file's size is reached";
      case SINK_CUT: return "another program cut the file short";
      case SINK_REMOVED: return "the file was removed";
      case SINK_DAMAGED: return "another program wrote into the file";
      case SINK_FULL: return sink->full;
      case SINK_REFUSED: return "the file system refused a page of the file";
      default: return strerror(error);
    }
}

void
rb_vm_trace_chunk_drop(struct rb_vm_trace_chunk *chunk)
{
    if (chunk->words) munmap(chunk->words, SINK_CHUNK_BYTES);
    chunk->words = NULL;
}

int
rb_vm_trace_sink_append(struct rb_vm_trace_sink *sink, const uint64_t *words, size_t count)
{
    const char *from = (const char *)words;
    size_t bytes = count * FXT_WORD_BYTES;
    if (!rlimit_allows(sink->size + bytes)) return EFBIG;
    if (disk_full(sink)) return SINK_FULL;
    for (size_t done = 0; done < bytes; ) {
        ssize_t n = write(sink->fd, from + done, bytes - done);
        if (n == 0) return ENOSPC;
        if (n < 0 && errno != EINTR) return errno;
        if (n > 0) done += (size_t)n;
    }
    sink->size += bytes;
    return 0;
}

/* `ours`: this process wrote it, and not the one that it was forked from, which shares the lock. */
static void
close_file(struct rb_vm_trace_sink *sink, bool ours)
{
    bool locked = ours && !sink->memory;
    if (sink->memory) sink->memory_calls->close(sink);
    /* With an errno it can't be known whose descriptor it is. */
    if (sink->fd >= 0 && file_trouble(sink) <= 0) {
        if (locked && flock(sink->fd, LOCK_UN) != 0) { /* then it goes with the last chunk that is mapped */ }
        close(sink->fd);
    }
    sink->fd = -1;
    free(sink->idle);
    sink->idle = NULL;
    sink->max_idle = sink->idle_count = 0;
}

void
rb_vm_trace_sink_close(struct rb_vm_trace_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    end_ahead(sink);
    close_file(sink, true);
    pthread_mutex_unlock(&sink->lock);
}

void
rb_vm_trace_sink_after_fork(struct rb_vm_trace_sink *sink)
{
    rb_vm_trace_ahead_after_fork(&sink->ahead);
    for (size_t i = 0; i < sink->spent_count; i++) rb_vm_trace_chunk_drop(&sink->spent[i]);
    rb_vm_trace_chunk_drop(&sink->ready);
    /* Of a chunk that the thread was making. In memory all of it is unmapped. */
    if (sink->disk_busy && sink->renewing) munmap(sink->renewing, SINK_CHUNK_BYTES);
    sink->renewing = NULL;
    sink->spent_count = 0;
    sink->recording = sink->disk_busy = sink->making = sink->making_again = sink->next_wanted = sink->demanded = sink->late = false;
    begin_waiting(sink); /* who waited is no more */
    close_file(sink, false);
}
