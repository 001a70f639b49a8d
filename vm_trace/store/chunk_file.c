/*
 * The trace file. See chunk_file.h for its rules.
 */
#include "vm_trace/store/chunk_file.h"
#include "vm_trace/store/file_claim.h"
#include "vm_trace/platform/platform.h"
#include "vm_trace/schema/fxt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* A chunk is written from a piece of padding, over and over. */
#define PIECE_BYTES ((size_t)1 << 16)
#define PIECE_WORDS (PIECE_BYTES / FXT_WORD_BYTES)
#define PIECES (CHUNK_FILE_GROWTH_BYTES / PIECE_BYTES)
#define PAGE_BYTES (VM_TRACE_PAGE_WORDS * FXT_WORD_BYTES)

int64_t rb_vm_trace_chunk_file_wait_ns = CHUNK_FILE_WAIT_NS;
size_t rb_vm_trace_chunk_file_page_bytes;

static uint64_t padding_piece[PIECE_WORDS];
static uint64_t first_page[VM_TRACE_PAGE_WORDS]; /* of the file: the magic number and padding */
static pthread_once_t padding_once = PTHREAD_ONCE_INIT;

static void
make_padding(void)
{
    if (!rb_vm_trace_chunk_file_page_bytes) rb_vm_trace_chunk_file_page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < PIECE_WORDS; i += VM_TRACE_PAGE_WORDS) {
        padding_piece[i] = fxt_padding_header(VM_TRACE_PAGE_WORDS);
    }
    first_page[0] = FXT_MAGIC_RECORD;
    first_page[1] = fxt_padding_header(VM_TRACE_PAGE_WORDS - 1);
}

const char *
rb_vm_trace_chunk_file_open(struct rb_vm_trace_chunk_file *file, const char *path)
{
    const char *why;
    /* O_APPEND: bytes written after a cut must not leave a hole, for zeros are no records. */
    int fd = rb_vm_trace_claim_create(path, O_RDWR | O_APPEND, &why);
    return fd < 0 ? why : rb_vm_trace_chunk_file_begin(file, fd);
}

const char *
rb_vm_trace_chunk_file_open_beside(struct rb_vm_trace_chunk_file *file, char **path, uint32_t pid, char **kept_out,
                                   const char **why_kept_out)
{
    *kept_out = NULL;
    *why_kept_out = NULL;
    const char *why = rb_vm_trace_chunk_file_open(file, *path), *why_kept = why;
    if (!why || errno != EBUSY) return why;
    char *name = malloc(strlen(*path) + CLAIM_SUFFIX_BYTES);
    if (!name) return strerror(ENOMEM);
    for (unsigned n = 1; why && errno == EBUSY && n < CLAIM_NAMES; n++) {
        rb_vm_trace_claim_name(name, *path, pid, n);
        why = rb_vm_trace_chunk_file_open(file, name);
    }
    *kept_out = *path;
    *why_kept_out = why_kept;
    *path = name;
    return why;
}

/* Nobody waits. */
static void
begin_waiting(struct rb_vm_trace_chunk_file *file)
{
    rb_vm_trace_platform_cond_init(&file->changed);
}

const char *
rb_vm_trace_chunk_file_begin(struct rb_vm_trace_chunk_file *file, int fd)
{
    struct stat st;
    uint64_t *idle = NULL;
    size_t max_idle = file->keep_newest ? (size_t)(file->max_bytes / VM_TRACE_CHUNK_BYTES) : 0;
    if (fstat(fd, &st) != 0 || (max_idle > 0 && !(idle = malloc(max_idle * sizeof(*idle))))) {
        int error = errno;
        close(fd);
        errno = error;
        return strerror(error);
    }
    pthread_once(&padding_once, make_padding);
    free(file->idle);
    file->fd = fd;
    file->device = st.st_dev;
    file->inode = st.st_ino;
    file->size = 0;
    file->error = file->reason = file->trim_error = 0;
    file->full[0] = '\0';
    file->ended = file->starved = file->cut = file->snapshot = false;
    file->collapses = true;
    file->recording = file->disk_busy = file->at_disk = file->making_again = file->next_wanted =
        file->demanded = file->late = false;
    begin_waiting(file);
    file->held = NULL;
    file->idle = idle;
    file->first_idle = file->idle_count = file->max_idle = 0;
    file->own = file->shared = 0;
    file->dropped = (struct vm_trace_counts){ 0, 0 };
    return NULL;
}

void
rb_vm_trace_chunk_file_discard(struct rb_vm_trace_chunk_file *file, const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && st.st_dev == file->device && st.st_ino == file->inode) unlink(path);
    rb_vm_trace_chunk_file_close(file);
}

/*
 * What others did to the file. A program that closes all descriptors it knows nothing of, as
 * daemons do, closes ours, and its next file gets the number: that must never be written to.
 */
static int
file_trouble(const struct rb_vm_trace_chunk_file *file)
{
    struct stat st;
    if (file->memory) return 0; /* nobody can cut it short (it is sealed), and its descriptor is for growing only */
    if (fstat(file->fd, &st) != 0) return errno;
    if (st.st_dev != file->device || st.st_ino != file->inode) return EBADF;
    if (st.st_nlink == 0) return CHUNK_FILE_REMOVED;
    if ((uint64_t)st.st_size < file->size) return CHUNK_FILE_CUT;
    return __atomic_load_n(&file->cut, __ATOMIC_RELAXED) ? CHUNK_FILE_REFUSED : 0;
}

/*
 * Append so many bytes of padding, at most CHUNK_FILE_GROWTH_BYTES, or fail with errno set. In one
 * call where the kernel lets us: it then takes its memory in large pieces.
 */
static bool
append_padding(int fd, bool at_start, size_t all)
{
    for (size_t done = 0; done < all; ) {
        struct iovec pieces[PIECES + 1];
        int count = 0;
        for (size_t at = done; at < all; count++) {
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
set_size(struct rb_vm_trace_chunk_file *file, uint64_t size)
{
    __atomic_store_n(&file->size, size, __ATOMIC_RELAXED);
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
describe_full(struct rb_vm_trace_chunk_file *file, uint64_t free_bytes)
{
    enum { MOST_NAMED = 80 }; /* of a longer path the end: the text must fit into the last words */
    char path[4096], was, *end;
    rb_vm_trace_platform_path(file->fd, path, sizeof(path));
    cut_last_part(path, &was); /* from its folder on, because overlayfs reports another device for files */
    struct stat folder, above;
    bool known = stat(path, &folder) == 0;
    while (known && (end = cut_last_part(path, &was)) != NULL) {
        if (stat(path, &above) == 0 && above.st_dev == folder.st_dev) continue;
        *end = was;
        break;
    }
    size_t bytes = strlen(path);
    const char *name = bytes == 0 ? "the disk" : bytes > MOST_NAMED ? path + bytes - MOST_NAMED : path;
    snprintf(file->full, sizeof(file->full), "%.*s is full (%llu MiB free)", MOST_NAMED, name,
             (unsigned long long)(free_bytes >> 20));
}

/*
 * Whether its disk has less space than is to stay free, and so many bytes. What is written at the end may
 * use the space that is to stay free. Takes 1 us where the disk is local.
 */
static bool
disk_full(struct rb_vm_trace_chunk_file *file, size_t bytes)
{
    uint64_t all_bytes, free_bytes, least = file->min_free_bytes;
    if (!least || file->memory || file->ended || !rb_vm_trace_platform_disk(file->fd, &all_bytes, &free_bytes))
        return false;
    if (all_bytes == 0) return false; /* a file system that does not count */
    if (least == CHUNK_FILE_MIN_FREE_DEFAULT) {
        const uint64_t gib = UINT64_C(1) << 30;
        least = all_bytes / 20 < gib ? all_bytes / 20 : gib;
    }
    if (free_bytes >= least + bytes) return false;
    describe_full(file, free_bytes);
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

/*
 * Where the last word ends that is not 0, of those before `size`; 0 when there is none. False: the
 * file is shorter.
 */
static bool
end_of_content(int fd, uint64_t size, uint64_t *end_out)
{
    uint64_t page[VM_TRACE_PAGE_WORDS], end = size - size % FXT_WORD_BYTES;
    while (end > 0) {
        size_t words = end >= PAGE_BYTES ? VM_TRACE_PAGE_WORDS : (size_t)(end / FXT_WORD_BYTES);
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
 * not zero, and the zeros are cut off. Returns 0, CHUNK_FILE_CUT in such a case, or an errno.
 */
static int
shorten(int fd, uint64_t size)
{
    enum { ROUNDS = 100 }; /* someone may cut it over and over */
    int result = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t content, now;
        if (!end_of_content(fd, size, &content)) return CHUNK_FILE_CUT;
        if (ftruncate(fd, (off_t)size) != 0) return errno;
        if (!end_of_content(fd, size, &now)) return CHUNK_FILE_CUT;
        if (now >= content) return result;
        result = CHUNK_FILE_CUT;
        size = now;
    }
    return CHUNK_FILE_CUT;
}

/*
 * Remove so many bytes that were appended to a file that someone had truncated just before. If the file was
 * truncated after the append, they are in their place, and their rest goes with the truncated part.
 */
static void
take_back(struct rb_vm_trace_chunk_file *file, size_t bytes)
{
    struct stat st;
    off_t end = lseek(file->fd, 0, SEEK_CUR); /* of what was appended */
    if (end < 0 || (uint64_t)end == file->size || fstat(file->fd, &st) != 0 || st.st_size != end) return;
    shorten(file->fd, (uint64_t)end - bytes); /* or they stay as padding */
}

/*
 * A chunk is mapped from the beginning of a page of the system, which may be longer than the pages at
 * which files are cut and records are appended. Returns 0 or what went wrong.
 */
static int
fill_page(struct rb_vm_trace_chunk_file *file)
{
    size_t bytes = (size_t)(-file->size % rb_vm_trace_chunk_file_page_bytes);
    return bytes ? rb_vm_trace_chunk_file_append(file, padding_piece, bytes / FXT_WORD_BYTES) : 0;
}

/* Grow the file by so many bytes of padding, at *offset_out. Returns 0 or what went wrong. */
static int
grow(struct rb_vm_trace_chunk_file *file, size_t bytes, uint64_t *offset_out)
{
    int unfilled = fill_page(file);
    *offset_out = file->size;
    if (unfilled) return unfilled;
    if (!rlimit_allows(file->size + bytes)) return EFBIG;
    if (disk_full(file, bytes - VM_TRACE_CHUNK_BYTES)) return CHUNK_FILE_FULL; /* as if it grew chunk by chunk */
    /* Ask for the space without a change of size, for new bytes would be zeros. */
    int refused = rb_vm_trace_platform_reserve(file->fd, file->size, bytes);
    if (refused) return refused;
    if (!append_padding(file->fd, file->size == 0, bytes)) {
        int error = errno;
        /* A part of it is valid, but nobody would use it. */
        if (file_trouble(file) == 0) shorten(file->fd, file->size); /* or it stays as padding */
        return error;
    }
    set_size(file, file->size + bytes);
    int trouble = file_trouble(file);
    if (trouble == CHUNK_FILE_CUT) take_back(file, bytes);
    return trouble;
}

/*
 * Map chunks at an address that is as far from a multiple of CHUNK_FILE_GROWTH_BYTES as `offset` is, so
 * that a piece of the page cache of that size is one entry in the page table. Not MAP_POPULATE: it would map
 * the pages for reading, and each would fault once more.
 *
 * file->renewing is where they are mapped, from before that until the caller is done with it: a child
 * that is forked meanwhile unmaps it.
 */
static void *
map_file(struct rb_vm_trace_chunk_file *file, uint64_t offset, size_t bytes)
{
    bool at_disk = __atomic_exchange_n(&file->at_disk, false, __ATOMIC_RELAXED); /* nothing is read or written here */
    size_t all = bytes + CHUNK_FILE_GROWTH_BYTES;
    char *room = rb_vm_trace_platform_addresses(NULL, all);
    if (!room) {
        __atomic_store_n(&file->at_disk, at_disk, __ATOMIC_RELAXED);
        return MAP_FAILED;
    }
    size_t before = (size_t)((offset - (uintptr_t)room) % CHUNK_FILE_GROWTH_BYTES), behind = all - bytes - before;
    __atomic_store_n(&file->renewing_bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&file->renewing, room + before, __ATOMIC_RELEASE);
    void *at = mmap(room + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file->fd, (off_t)offset);
    int error = errno;
    if (at == MAP_FAILED) {
        __atomic_store_n(&file->renewing, NULL, __ATOMIC_RELEASE);
        munmap(room, all);
    }
    else {
        if (before) munmap(room, before);
        if (behind) munmap(room + before + bytes, behind);
    }
    __atomic_store_n(&file->at_disk, at_disk, __ATOMIC_RELAXED);
    errno = error;
    return at;
}

/* Map chunks; *chunk_out is the first. False: errno says why. file->renewing stays. */
static bool
map_chunks(struct rb_vm_trace_chunk_file *file, uint64_t offset, size_t bytes, struct rb_vm_trace_chunk *chunk_out)
{
    struct rb_vm_trace_mapping *mapping = NULL;
    void *at = file->memory ? file->memory + offset : NULL;
    if (!at) {
        if (!(mapping = malloc(sizeof(*mapping)))) return false;
        if ((at = map_file(file, offset, bytes)) == MAP_FAILED) {
            int error = errno;
            free(mapping);
            errno = error;
            return false;
        }
        *mapping = (struct rb_vm_trace_mapping){ .at = at, .bytes = bytes, .chunks = bytes / VM_TRACE_CHUNK_BYTES };
    }
    *chunk_out =
        (struct rb_vm_trace_chunk){ .words = at, .mapping = mapping, .first = offset == 0, .offset = offset };
    return true;
}

static void
end_mapping(struct rb_vm_trace_mapping *mapping)
{
    if (mapping) munmap(mapping->at, mapping->bytes);
    free(mapping);
}

static void
done_with_mapping(struct rb_vm_trace_chunk_file *file)
{
    __atomic_store_n(&file->renewing, NULL, __ATOMIC_RELEASE);
}

void
rb_vm_trace_chunk_file_push_idle(struct rb_vm_trace_chunk_file *file, uint64_t offset)
{
    file->idle[(file->first_idle + file->idle_count++) % file->max_idle] = offset;
}

/* The chunk that was given back first. There is one. */
static uint64_t
pop_idle(struct rb_vm_trace_chunk_file *file)
{
    uint64_t offset = file->idle[file->first_idle];
    file->first_idle = (file->first_idle + 1) % file->max_idle;
    file->idle_count--;
    if (file->snapshot) {
        file->popped++;
        if (file->older > 0) file->older--;
    }
    return offset;
}

/*
 * Map the chunk at `offset` and make it fresh; what stood in it is counted. False: *error_out says
 * why. file->renewing stays, as with map_chunks.
 */
static bool
renew(struct rb_vm_trace_chunk_file *file, uint64_t offset, struct vm_trace_counts *dropped,
      struct rb_vm_trace_chunk *chunk_out, int *error_out)
{
    if (!map_chunks(file, offset, VM_TRACE_CHUNK_BYTES, chunk_out)) {
        *error_out = errno;
        return false;
    }
    uint64_t *words = chunk_out->words;
    /* What gives way in memory is counted when a trace is saved. */
    bool whole = file->memory || rb_vm_trace_records_count(words, VM_TRACE_CHUNK_WORDS, file->sampled_categories,
                                                           dropped) == VM_TRACE_CHUNK_WORDS;
    whole = whole && rb_vm_trace_records_renew(words, VM_TRACE_CHUNK_WORDS);
    if (whole) return true;
    done_with_mapping(file);
    end_mapping(chunk_out->mapping);
    *error_out = file_trouble(file);
    if (!*error_out) *error_out = CHUNK_FILE_DAMAGED;
    return false;
}

/* The same for the chunk that was given back first. False, without an error, when there is none. */
static bool
reuse(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out)
{
    if (file->idle_count == 0) {
        file->starved = true;
        return false;
    }
    bool fresh = renew(file, pop_idle(file), &file->dropped, chunk_out, &file->error);
    done_with_mapping(file);
    return fresh;
}

/* Room at the end of a limited file that keeps its oldest events: for what is written last. */
static uint64_t
kept_for_the_end(const struct rb_vm_trace_chunk_file *file)
{
    if (file->ended || file->keep_newest) return 0;
    uint64_t share = file->max_bytes / 8 / VM_TRACE_CHUNK_BYTES * VM_TRACE_CHUNK_BYTES;
    return share ? share : VM_TRACE_CHUNK_BYTES;
}

/* Whether the file may grow by so many bytes. */
static bool
limit_allows(const struct rb_vm_trace_chunk_file *file, size_t bytes)
{
    if (file->memory && !file->memory_calls->grows_p(file)) return false;
    uint64_t size = __atomic_load_n(&file->size, __ATOMIC_RELAXED);
    return !file->max_bytes || size + bytes + kept_for_the_end(file) <= file->max_bytes;
}

/*
 * Have each page mapped for writing, so that none faults when it is written to first: as one large page
 * where the file is in memory (tmpfs) and the kernel can (collapse), else by one call, and where the kernel knows
 * neither by touching them. A page that was not touched may still be missing in the page table of a host.
 */
static void
make_writable(struct rb_vm_trace_chunk_file *file, char *at, size_t bytes)
{
    rb_vm_trace_platform_populate(at, bytes, bytes == CHUNK_FILE_GROWTH_BYTES ? &file->collapses : NULL);
    for (size_t byte = 0; byte < bytes; byte += PAGE_BYTES)
        __atomic_fetch_or((uint64_t *)(at + byte), 0, __ATOMIC_RELAXED);
}

/* A fresh chunk, mapped. False when there is none. */
static bool
next_chunk(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out)
{
    uint64_t offset;
    file->error = file_trouble(file);
    if (file->error) return false;
    if (!limit_allows(file, VM_TRACE_CHUNK_BYTES)) {
        if (file->keep_newest) return reuse(file, chunk_out);
        file->error = CHUNK_FILE_LIMIT;
        return false;
    }
    file->error = grow(file, VM_TRACE_CHUNK_BYTES, &offset);
    /* Then what is there is all that it gets. */
    if (file->max_idle > 0 &&
        ((file->error && file->memory) || (file->error == CHUNK_FILE_FULL && file->idle_count > 0))) {
        file->max_bytes = file->size;
        if (file->idle_count == 0) file->reason = file->error; /* too little for anyone who needs one more */
        file->error = 0;
        return reuse(file, chunk_out);
    }
    if (file->error) return false;
    bool mapped = map_chunks(file, offset, VM_TRACE_CHUNK_BYTES, chunk_out);
    if (!mapped) file->error = errno;
    else if (file->memory) make_writable(file, (char *)chunk_out->words, VM_TRACE_CHUNK_BYTES);
    done_with_mapping(file);
    return mapped;
}

/* Cut padding off the end of the file. */
static void
trim(struct rb_vm_trace_chunk_file *file, uint64_t size)
{
    int error = shorten(file->fd, size);
    if (error == 0) set_size(file, size);
    else if (error != CHUNK_FILE_CUT) file->trim_error = error;
}

/* Make the file end before its last bytes, which nobody uses. */
static void
cut_end(struct rb_vm_trace_chunk_file *file, size_t bytes)
{
    if (file_trouble(file) == 0) trim(file, file->size - bytes);
}

static void
drop_ready(struct rb_vm_trace_chunk_file *file)
{
    while (file->ready_count > 0) {
        struct rb_vm_trace_chunk *chunk = &file->ready[--file->ready_count];
        rb_vm_trace_chunk_drop(chunk);
        if (file->memory) continue;
        if (chunk->offset + VM_TRACE_CHUNK_BYTES == file->size) cut_end(file, VM_TRACE_CHUNK_BYTES);
        else if (file->max_idle > 0) rb_vm_trace_chunk_file_push_idle(file, chunk->offset); /* it was idle before */
    }
}

static void
push_ready(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk chunk)
{
    file->ready[file->ready_count++] = chunk;
}

static struct rb_vm_trace_chunk
pop_ready(struct rb_vm_trace_chunk_file *file)
{
    struct rb_vm_trace_chunk chunk = file->ready[0];
    memmove(file->ready, file->ready + 1, --file->ready_count * sizeof(chunk));
    return chunk;
}

/* Whether the thread is to make another chunk: a file that grows has one more ahead than it grows by. */
static bool
too_few_ready_p(const struct rb_vm_trace_chunk_file *file)
{
    return file->ready_count < (file->keep_newest || file->memory ? 1 : CHUNK_FILE_GROWTH_BYTES / VM_TRACE_CHUNK_BYTES);
}

/*
 * The oldest chunk of memory, made fresh. Without the lock meanwhile, for others want to give
 * theirs back, or to begin a snapshot.
 */
static void
renew_oldest(struct rb_vm_trace_chunk_file *file)
{
    if (file->idle_count < 2) return; /* the last one stays, or a writer might have to give up its own */
    uint64_t offset = pop_idle(file);
    uint64_t *at = (uint64_t *)(file->memory + offset);
    pthread_mutex_unlock(&file->lock);
    bool whole = rb_vm_trace_records_renew(at, VM_TRACE_CHUNK_WORDS);
    pthread_mutex_lock(&file->lock);
    /* One that someone wrote into is found to be so when its turn comes again. */
    if (whole) push_ready(file, (struct rb_vm_trace_chunk){ .words = at, .offset = offset });
    else rb_vm_trace_chunk_file_push_idle(file, offset);
}

/* Cut off what is not used of the chunk at `offset`, the last of the file. */
static void
cut_last_rest(struct rb_vm_trace_chunk_file *file, uint64_t offset, size_t used)
{
    /* To the end of the page: the next chunk is mapped from there, and the record of
     * padding that fills the page stays whole. */
    trim(file, offset + (used + VM_TRACE_PAGE_WORDS - 1) / VM_TRACE_PAGE_WORDS * VM_TRACE_PAGE_WORDS * FXT_WORD_BYTES);
}

/* The same if it is the last that someone writes to. */
static void
cut_rest(struct rb_vm_trace_chunk_file *file, uint64_t offset, size_t used)
{
    uint64_t end = offset + VM_TRACE_CHUNK_BYTES;
    if (file->ready_count > 0 && file->ready[0].offset == end) drop_ready(file);
    if (file->size == end) cut_last_rest(file, offset, used);
}

/*
 * The work of the thread in memory: the next chunk. What fails here is left to fail again for the
 * one who needs it.
 */
static void
make_ready_in_memory(struct rb_vm_trace_chunk_file *file)
{
    if (file_trouble(file)) return;
    if (!limit_allows(file, VM_TRACE_CHUNK_BYTES)) {
        renew_oldest(file);
        return;
    }
    struct rb_vm_trace_chunk chunk;
    uint64_t offset;
    if (grow(file, VM_TRACE_CHUNK_BYTES, &offset) != 0) return;
    if (!map_chunks(file, offset, VM_TRACE_CHUNK_BYTES, &chunk)) return;
    make_writable(file, (char *)chunk.words, VM_TRACE_CHUNK_BYTES);
    push_ready(file, chunk);
}

/* The thread uses the file, and needs no lock for it: the slow calls must hold up nobody. */
static void
begin_disk(struct rb_vm_trace_chunk_file *file)
{
    file->disk_busy = true;
    __atomic_store_n(&file->at_disk, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&file->lock);
}

static void
end_disk(struct rb_vm_trace_chunk_file *file)
{
    __atomic_store_n(&file->at_disk, false, __ATOMIC_RELEASE);
    pthread_mutex_lock(&file->lock);
    file->disk_busy = file->making_again = false;
    pthread_cond_broadcast(&file->changed);
}

/* Wait until the thread does not use the file. For who may wait. */
static void
wait_for_disk(struct rb_vm_trace_chunk_file *file)
{
    while (file->disk_busy) pthread_cond_wait(&file->changed, &file->lock);
}

/* Where the next chunk of a file is to come from. False: from nowhere. */
static bool
plan_next(struct rb_vm_trace_chunk_file *file, bool *again_out, uint64_t *offset_out)
{
    *again_out = !limit_allows(file, VM_TRACE_CHUNK_BYTES);
    if (!*again_out) return true;
    /* What is made fresh is gone: not before a writer needs it. */
    if (file->max_idle == 0 || !file->demanded || file->idle_count == 0) return false;
    *offset_out = pop_idle(file);
    file->making_again = true;
    return true;
}

/*
 * No chunk is ready: say why, if a writer needed one. Else the next one who does finds out again.
 */
static void
end_without_chunk(struct rb_vm_trace_chunk_file *file, int error)
{
    if (file->demanded && error) file->error = file->reason = error;
    file->late = file->demanded = false;
    pthread_cond_broadcast(&file->changed);
}

/*
 * Bytes to grow by: up to the next multiple of CHUNK_FILE_GROWTH_BYTES, and in a file whose chunks are used again, at
 * its limit, and where a chunk does not begin at a multiple of its size one chunk.
 */
static size_t
growth(const struct rb_vm_trace_chunk_file *file)
{
    size_t bytes = CHUNK_FILE_GROWTH_BYTES - (size_t)(file->size % CHUNK_FILE_GROWTH_BYTES);
    bool whole = bytes % VM_TRACE_CHUNK_BYTES == 0 && !file->keep_newest && limit_allows(file, bytes);
    return whole ? bytes : VM_TRACE_CHUNK_BYTES;
}

/* The next chunks of a file, ready to be written to; *chunk_out is the first. Returns 0 or what went wrong. */
static int
make_new(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out)
{
    uint64_t offset;
    size_t bytes = growth(file);
    int error = grow(file, bytes, &offset);
    if (bytes > VM_TRACE_CHUNK_BYTES &&
        (error == ENOSPC || error == EDQUOT || error == EFBIG || error == CHUNK_FILE_FULL))
        error = grow(file, bytes = VM_TRACE_CHUNK_BYTES, &offset);
    if (error) return error;
    if (map_chunks(file, offset, bytes, chunk_out)) {
        make_writable(file, (char *)chunk_out->words, bytes);
        return 0;
    }
    error = errno;
    cut_end(file, bytes);
    return error;
}

static void
push_all_ready(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk chunk)
{
    for (size_t left = chunk.mapping->chunks; left > 0; left--) {
        push_ready(file, chunk);
        chunk.words += VM_TRACE_CHUNK_WORDS;
        chunk.offset += VM_TRACE_CHUNK_BYTES;
        chunk.first = 0;
    }
    file->late = file->demanded = false;
    file->made++;
}

/* The work of the thread for a file: the next chunks. */
static void
make_ready_in_file(struct rb_vm_trace_chunk_file *file)
{
    bool again;
    uint64_t offset = 0;
    if (!plan_next(file, &again, &offset)) {
        end_without_chunk(file, file->keep_newest ? 0 : CHUNK_FILE_LIMIT);
        return;
    }
    struct vm_trace_counts dropped = { 0, 0 };
    struct rb_vm_trace_chunk chunk;
    begin_disk(file);
    int error = file_trouble(file);
    bool made = !error && (again ? renew(file, offset, &dropped, &chunk, &error)
                                 : (error = make_new(file, &chunk)) == 0);
    end_disk(file);
    done_with_mapping(file);
    file->dropped.events += dropped.events;
    file->dropped.sampled += dropped.sampled;
    if (made) {
        push_all_ready(file, chunk);
    }
    else if (error == CHUNK_FILE_FULL && !again && file->idle_count > 0) {
        file->max_bytes = file->size; /* what is there is all that it gets */
        make_ready_in_file(file);
    }
    else {
        if (again) file->demanded = true; /* that chunk is gone */
        end_without_chunk(file, error);
    }
}

/* What was given back is unmapped. With the lock: a forked child must know what is mapped. */
static void
clear_spent(struct rb_vm_trace_chunk_file *file)
{
    while (file->spent_count > 0) rb_vm_trace_chunk_drop(&file->spent[--file->spent_count]);
}

static void
preallocate(void *argument)
{
    struct rb_vm_trace_chunk_file *file = argument;
    clear_spent(file);
    if (!file->next_wanted) return;
    file->next_wanted = false;
    if (file->fd < 0 || file->error || file->ended || !too_few_ready_p(file)) return;
    if (file->memory) make_ready_in_memory(file);
    else make_ready_in_file(file);
}

static void
ask_for_next(struct rb_vm_trace_chunk_file *file)
{
    file->next_wanted = true;
    rb_vm_trace_preallocator_request(&file->preallocator, &file->lock, preallocate, file);
}

void
rb_vm_trace_chunk_file_preallocate(struct rb_vm_trace_chunk_file *file)
{
    pthread_mutex_lock(&file->lock);
    bool may = file->memory ? file->max_idle > 0 : !file->keep_newest;
    if (may && too_few_ready_p(file) && file->fd >= 0 && !file->error && !file->ended) ask_for_next(file);
    pthread_mutex_unlock(&file->lock);
}

void
rb_vm_trace_chunk_file_recording(struct rb_vm_trace_chunk_file *file, bool on)
{
    pthread_mutex_lock(&file->lock);
    wait_for_disk(file);
    file->recording = on && !file->memory && file->fd >= 0;
    file->late = file->demanded = false;
    pthread_mutex_unlock(&file->lock);
}

static void
end_preallocator(struct rb_vm_trace_chunk_file *file)
{
    rb_vm_trace_preallocator_stop(&file->preallocator);
    file->recording = false;
    clear_spent(file);
    drop_ready(file);
}

/* The chunk that was made ahead, if there is one and the file is well. */
static bool
take_ready(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out)
{
    if (file->ready_count == 0) return false;
    if (file_trouble(file)) {
        drop_ready(file);
        return false;
    }
    *chunk_out = pop_ready(file);
    return true;
}

/* Chunks of a limited file that can be had now, one after the other. */
static uint64_t
to_be_had(const struct rb_vm_trace_chunk_file *file)
{
    uint64_t size = __atomic_load_n(&file->size, __ATOMIC_RELAXED);
    uint64_t new_ones = file->max_bytes > size ? (file->max_bytes - size) / VM_TRACE_CHUNK_BYTES : 0;
    if (new_ones > 0 && file->memory && !file->memory_calls->grows_p(file)) new_ones = 0;
    return file->idle_count + file->ready_count + file->making_again + new_ones;
}

/*
 * Whether one ractor may have the next chunk for itself (`instead`: of one that it has). A thousand
 * ractors must not make a file of a GiB where each has a few exits: beyond so many the rest share
 * one. Where chunks are used again one must stay for those that have none to share. While a trace
 * is made of memory the shared one can't be used again once it is full, so there must be another.
 */
static bool
own_allowed(const struct rb_vm_trace_chunk_file *file, bool instead)
{
    if (file->ended || (file->own == 0 && !file->snapshot)) return true;
    if (file->max_idle == 0) return file->own < CHUNK_FILE_MOST_OWN + (size_t)instead;
    size_t kept = (file->shared == 0) + (file->memory != NULL);
    return to_be_had(file) > kept;
}

/* Make the next chunk, and wait for the disk. */
static bool
make_now(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out)
{
    if (next_chunk(file, chunk_out)) return true;
    *chunk_out = (struct rb_vm_trace_chunk){ .none_idle = !file->error };
    return false;
}

/* Whether there is no chunk to wait for: all that the file may have are in use. */
static bool
all_in_use(const struct rb_vm_trace_chunk_file *file)
{
    return !file->disk_busy && file->keep_newest && file->idle_count == 0 && !limit_allows(file, VM_TRACE_CHUNK_BYTES);
}

/*
 * Whether the thread is not held up by the disk, but waits for a processor, for the lock, or for the page faults of
 * other threads: on a busy machine, or beside many writers.
 */
static bool
thread_goes_on_p(const struct rb_vm_trace_chunk_file *file)
{
    /* If the disk is done while we ask for the thread's state, the thread waits for the lock, which is held here. */
    return !__atomic_load_n(&file->at_disk, __ATOMIC_ACQUIRE) ||
        rb_vm_trace_preallocator_runnable_p(&file->preallocator) ||
        !__atomic_load_n(&file->at_disk, __ATOMIC_ACQUIRE);
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

/*
 * Take a chunk from the thread, and wait for it only a moment. False: there is none, or it is late.
 */
static bool
take_in_time(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out, bool own, bool instead)
{
    struct timespec until = { 0, 0 };
    uint64_t made = UINT64_MAX;
    for (unsigned waits = 0; ; ) {
        if (file->error || file->fd < 0) return false;
        /* Others who waited, too, may have got theirs meanwhile. */
        chunk_out->none_idle = own && !own_allowed(file, instead);
        if (chunk_out->none_idle) return false;
        if (file->ready_count > 0) break;
        chunk_out->late = file->late;
        if (file->late) return false;
        if (all_in_use(file)) {
            chunk_out->none_idle = file->starved = true;
            return false;
        }
        file->demanded = true;
        if (!file->disk_busy && !file->next_wanted) ask_for_next(file);
        if (!file->preallocator.running) return make_now(file, chunk_out); /* no thread is to be had */
        if (made != file->made) until = time_from_now(rb_vm_trace_chunk_file_wait_ns); /* the first time, and when another writer got one */
        made = file->made;
        if (rb_vm_trace_platform_cond_wait(&file->changed, &file->lock, &until) != ETIMEDOUT || file->ready_count > 0) continue;
        if (++waits == CHUNK_FILE_MOST_WAITS || !thread_goes_on_p(file)) file->late = true;
        else until = time_from_now(rb_vm_trace_chunk_file_wait_ns);
    }
    *chunk_out = pop_ready(file);
    return true;
}

static bool
reserve(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out, bool own, bool instead)
{
    bool ok = false;

    chunk_out->words = NULL;
    chunk_out->none_idle = chunk_out->late = false;
    pthread_mutex_lock(&file->lock);
    if (!file->recording) wait_for_disk(file);
    if (file->fd >= 0 && file->error == 0) {
        if (file->recording) ok = take_in_time(file, chunk_out, own, instead);
        else if (own && !own_allowed(file, instead)) chunk_out->none_idle = true;
        else ok = take_ready(file, chunk_out) || make_now(file, chunk_out);
        if (file->error) file->reason = file->error;
        chunk_out->own = own;
        chunk_out->stays = file->max_idle == 0 && !file->memory;
        if (ok) ++*(own ? &file->own : &file->shared);
    }
    pthread_mutex_unlock(&file->lock);
    return ok;
}

bool
rb_vm_trace_chunk_file_reserve(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out)
{
    return reserve(file, chunk_out, false, false);
}

bool
rb_vm_trace_chunk_file_reserve_own(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out,
                                   bool instead)
{
    return reserve(file, chunk_out, true, instead);
}

bool
rb_vm_trace_chunk_file_sound_p(struct rb_vm_trace_chunk_file *file)
{
    pthread_mutex_lock(&file->lock);
    bool sound = file->fd >= 0 && !file->error && !__atomic_load_n(&file->cut, __ATOMIC_RELAXED);
    if (sound && !file->recording) {
        wait_for_disk(file);
        sound = file_trouble(file) == 0;
    }
    pthread_mutex_unlock(&file->lock);
    return sound;
}

static void
release_now(struct rb_vm_trace_chunk_file *file, uint64_t offset, size_t used)
{
    if (file->max_idle == 0 || file->ended) cut_rest(file, offset, used);
    else if (!file->held || !file->memory_calls->hold(file, offset)) rb_vm_trace_chunk_file_push_idle(file, offset);
}

/* Without a touch of the file: what was not used of the chunk stays padding. */
static void
release_recording(struct rb_vm_trace_chunk_file *file, uint64_t offset)
{
    if (file->max_idle == 0) return;
    rb_vm_trace_chunk_file_push_idle(file, offset);
    pthread_cond_broadcast(&file->changed); /* who waits for a chunk may get it */
}

void
rb_vm_trace_chunk_file_release(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk, size_t used)
{
    if (!chunk->words) return;
    struct rb_vm_trace_chunk given = *chunk;
    chunk->words = NULL;

    pthread_mutex_lock(&file->lock);
    if (!file->recording) wait_for_disk(file);
    if (file->preallocator.running && !file->memory &&
        file->spent_count < (file->recording ? CHUNK_FILE_MOST_SPENT : 1)) {
        file->spent[file->spent_count++] = given; /* the thread is asked for the next chunk soon: 40 us less for the one who records */
        given.words = NULL;
    }
    size_t *in_use = chunk->own ? &file->own : &file->shared;
    if (*in_use > 0) --*in_use; /* else it is of a file before this one */
    if (file->recording) release_recording(file, chunk->offset);
    else if (file->fd >= 0 && file_trouble(file) == 0) release_now(file, chunk->offset, used);
    rb_vm_trace_chunk_drop(&given);
    pthread_mutex_unlock(&file->lock);
}

void
rb_vm_trace_chunk_file_begin_ring(struct rb_vm_trace_chunk_file *file)
{
    pthread_mutex_lock(&file->lock);
    file->max_idle = (size_t)(file->max_bytes / VM_TRACE_CHUNK_BYTES);
    if (file->memory) file->memory_calls->begin_ring(file);
    pthread_mutex_unlock(&file->lock);
}

int
rb_vm_trace_chunk_file_end(struct rb_vm_trace_chunk_file *file)
{
    pthread_mutex_lock(&file->lock);
    wait_for_disk(file);
    file->ended = true;
    end_preallocator(file);
    if (file->error == CHUNK_FILE_LIMIT || file->error == CHUNK_FILE_FULL) file->error = 0;
    int trouble = file->fd >= 0 ? file_trouble(file) : EBADF;
    if (trouble) file->reason = trouble;
    pthread_mutex_unlock(&file->lock);
    return trouble;
}

/* Bytes of the whole records that the file begins with. */
static uint64_t
whole_bytes(int fd, uint64_t *buffer, uint64_t sampled_categories, struct vm_trace_counts *counts)
{
    uint64_t offset = 0;
    if (read_words(fd, 0, buffer, 1) != 1 || buffer[0] != FXT_MAGIC_RECORD) return 0;
    for (;;) {
        size_t words = read_words(fd, offset, buffer, VM_TRACE_CHUNK_WORDS);
        size_t whole = rb_vm_trace_records_count(buffer, words, sampled_categories, counts);
        if (whole == 0) return offset;
        offset += whole * FXT_WORD_BYTES;
    }
}

/*
 * What is left, padded to a page. Returns 0, or what is wrong: CHUNK_FILE_CUT when it was cut once
 * more.
 */
static int
mend(struct rb_vm_trace_chunk_file *file, uint64_t *buffer, struct vm_trace_counts *left)
{
    *left = (struct vm_trace_counts){ 0, 0 };
    uint64_t size = whole_bytes(file->fd, buffer, file->sampled_categories, left);
    if (left->events == 0) size = 0; /* not even the settings: start over */
    int error = shorten(file->fd, size);
    if (error) return error;
    size_t words = (VM_TRACE_PAGE_WORDS - size / FXT_WORD_BYTES % VM_TRACE_PAGE_WORDS) % VM_TRACE_PAGE_WORDS;
    if (words > 0) {
        memset(buffer, 0, words * FXT_WORD_BYTES);
        buffer[0] = fxt_padding_header(words);
        size_t bytes = words * FXT_WORD_BYTES;
        if (!rlimit_allows(size + bytes)) return EFBIG;
        if (write(file->fd, buffer, bytes) != (ssize_t)bytes) return EIO;
        size += bytes;
    }
    struct stat st;
    if (fstat(file->fd, &st) != 0) return errno;
    if ((uint64_t)st.st_size != size) return CHUNK_FILE_CUT;
    file->size = size;
    file->cut = false;
    file->error = 0;
    file->dropped = (struct vm_trace_counts){ 0, 0 };
    file->max_bytes = 0; /* what is left is less; and no chunk is where it was */
    return 0;
}

bool
rb_vm_trace_chunk_file_mend(struct rb_vm_trace_chunk_file *file, struct vm_trace_counts *left_out)
{
    *left_out = (struct vm_trace_counts){ 0, 0 };
    uint64_t *buffer = malloc(VM_TRACE_CHUNK_BYTES);
    if (!buffer) return false;
    pthread_mutex_lock(&file->lock);
    wait_for_disk(file);
    enum { ROUNDS = 100 }; /* someone may cut it over and over */
    int error = file->fd >= 0 ? file_trouble(file) : EBADF;
    for (int round = 0; round < ROUNDS && (error == CHUNK_FILE_CUT || error == CHUNK_FILE_REFUSED); round++) {
        error = mend(file, buffer, left_out);
    }
    pthread_mutex_unlock(&file->lock);
    free(buffer);
    return error == 0;
}

static bool
put_memory_under(void *at, size_t bytes, const void *address)
{
    if (!at || (uintptr_t)address - (uintptr_t)at >= bytes) return false;
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
}

bool
rb_vm_trace_chunk_file_fault(struct rb_vm_trace_chunk_file *file, const struct rb_vm_trace_chunk *chunk,
                             const void *address)
{
    /* All that is called and touched here is allowed in a signal handler. */
    int saved = errno;
    void *renewing = __atomic_load_n(&file->renewing, __ATOMIC_ACQUIRE);
    bool ours = (chunk && put_memory_under(chunk->words, VM_TRACE_CHUNK_BYTES, address)) ||
        put_memory_under(renewing, __atomic_load_n(&file->renewing_bytes, __ATOMIC_RELAXED), address);
    if (ours) __atomic_store_n(&file->cut, true, __ATOMIC_RELAXED);
    errno = saved;
    return ours;
}

const char *
rb_vm_trace_chunk_file_reason(const struct rb_vm_trace_chunk_file *file, int error)
{
    switch (error) {
      case CHUNK_FILE_LIMIT: return "the limit of the file's size is reached";
      case CHUNK_FILE_CUT: return "another program cut the file short";
      case CHUNK_FILE_REMOVED: return "the file was removed";
      case CHUNK_FILE_DAMAGED: return "another program wrote into the file";
      case CHUNK_FILE_FULL: return file->full;
      case CHUNK_FILE_REFUSED: return "the file system refused a page of the file";
      default: return strerror(error);
    }
}

void
rb_vm_trace_chunk_drop(struct rb_vm_trace_chunk *chunk)
{
    struct rb_vm_trace_mapping *mapping = chunk->words ? chunk->mapping : NULL;
    chunk->words = NULL;
    if (mapping && --mapping->chunks == 0) end_mapping(mapping);
}

int
rb_vm_trace_chunk_file_append(struct rb_vm_trace_chunk_file *file, const uint64_t *words, size_t count)
{
    const char *from = (const char *)words;
    size_t bytes = count * FXT_WORD_BYTES;
    if (!rlimit_allows(file->size + bytes)) return EFBIG;
    if (disk_full(file, 0)) return CHUNK_FILE_FULL;
    for (size_t done = 0; done < bytes; ) {
        ssize_t n = write(file->fd, from + done, bytes - done);
        if (n == 0) return ENOSPC;
        if (n < 0 && errno != EINTR) return errno;
        if (n > 0) done += (size_t)n;
    }
    set_size(file, file->size + bytes);
    return 0;
}

/* `ours`: this process wrote it, and not the one that it was forked from, which shares the lock. */
static void
close_file(struct rb_vm_trace_chunk_file *file, bool ours)
{
    bool locked = ours && !file->memory;
    if (file->memory) file->memory_calls->close(file);
    /* With an errno it can't be known whose descriptor it is. */
    if (file->fd >= 0 && file_trouble(file) <= 0) {
        if (locked) rb_vm_trace_platform_unlock(file->fd);
        close(file->fd);
    }
    file->fd = -1;
    free(file->idle);
    file->idle = NULL;
    file->max_idle = file->idle_count = 0;
}

void
rb_vm_trace_chunk_file_close(struct rb_vm_trace_chunk_file *file)
{
    pthread_mutex_lock(&file->lock);
    end_preallocator(file);
    close_file(file, true);
    pthread_mutex_unlock(&file->lock);
}

void
rb_vm_trace_chunk_file_after_fork(struct rb_vm_trace_chunk_file *file)
{
    rb_vm_trace_preallocator_after_fork(&file->preallocator);
    clear_spent(file);
    while (file->ready_count > 0) rb_vm_trace_chunk_drop(&file->ready[--file->ready_count]);
    /* Of chunks that the thread was making. In memory all of it is unmapped. */
    if (file->disk_busy && file->renewing) munmap(file->renewing, file->renewing_bytes);
    file->renewing = NULL;
    file->recording = file->disk_busy = file->at_disk = file->making_again = file->next_wanted =
        file->demanded = file->late = false;
    begin_waiting(file); /* who waited is no more */
    close_file(file, false);
}
