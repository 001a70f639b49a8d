#ifndef RUBY_VM_TRACE_STORE_CHUNK_FILE_H
#define RUBY_VM_TRACE_STORE_CHUNK_FILE_H 1
/*
 * The trace file: made safely, grown chunk by chunk, valid at every instant.
 *
 *   file   | magic | chunk 0 ................ | chunk 1 ................ | ...
 *   chunk  | pad(512) | pad(512) | ... | pad(512) |      before anything is in it
 *
 * A chunk is written full of padding records, one a page, before it is mapped. The kernel
 * may cut such a write short at a page when the process is killed, and then the file still
 * ends with a whole record. What the disk can't hold is seen here, when the chunk is
 * reserved, and never as a SIGBUS later.
 *
 * The file may have a limit. Its last part is then kept for the end (sites, loss, summary), or,
 * where the newest events are to be kept, chunks are used again, those first that were given back
 * first: chunk_scan.h says how one is made fresh while the file stays valid.
 *
 * Others may remove the file, or cut it short while chunks of it are mapped. Touching a page that
 * is gone raises SIGBUS; rb_vm_trace_chunk_file_fault, called by the handler, puts memory under the
 * chunk, which goes nowhere. Recording stops at the next chunk, and rb_vm_trace_chunk_file_mend makes a
 * valid file again of what is left.
 *
 * Writers hold the GVL, and a disk may be slow. So while events are recorded a thread (preallocator.h)
 * does all that may wait for the disk, with no lock: it makes the next chunks. A writer that finds no
 * chunk ready waits for CHUNK_FILE_WAIT_NS; then the sink is late, and gives no chunk, until one is
 * ready. Whoever begins or ends a trace waits for the disk.
 */

#include "vm_trace/store/preallocator.h"
#include "vm_trace/store/chunk.h"
#include "vm_trace/store/chunk_scan.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CHUNK_FILE_MOST_OWN ((size_t)64)         /* chunks that ractors have for themselves, in a file whose chunks are not used again */

/*
 * So long does a writer wait for a chunk. It is more only where the thread that makes it waits for something else than
 * the disk, up to CHUNK_FILE_MOST_WAITS times.
 */
#define CHUNK_FILE_WAIT_NS INT64_C(10000000)
extern int64_t rb_vm_trace_chunk_file_wait_ns;   /* is that; tests that must lose nothing on any disk set more */
#define CHUNK_FILE_MOST_WAITS 40
/* Of the system's pages, on which chunks are mapped: those of arm64 may be 4, 16 or 64 KiB. Tests set it. */
extern size_t rb_vm_trace_chunk_file_page_bytes;
/*
 * The thread makes the file longer by so much: a piece of the page cache that is one entry in a page table. Where
 * the file system has such pieces (ext4 of Linux 6.16, XFS), one fault maps it, and a chunk costs a tenth.
 */
#define CHUNK_FILE_GROWTH_BYTES (2 * VM_TRACE_CHUNK_BYTES)
#define CHUNK_FILE_MOST_READY (2 * CHUNK_FILE_GROWTH_BYTES / VM_TRACE_CHUNK_BYTES - 1)
#define CHUNK_FILE_MOST_SPENT 16                 /* chunks that were given back and wait for the thread */

/* What can stop a file beside what errno says. */
enum {
    CHUNK_FILE_LIMIT = -1,       /* its limit is reached */
    CHUNK_FILE_CUT = -2,         /* someone else made it shorter */
    CHUNK_FILE_REMOVED = -3,
    CHUNK_FILE_DAMAGED = -4,     /* a chunk to be used again holds no records */
    CHUNK_FILE_REFUSED = -5,     /* a page of it can't be written, though it is there */
    CHUNK_FILE_FULL = -6         /* its disk has less free space than is to stay free */
};

/* As min_free_bytes: 5 % of the disk, or 1 GiB where that is less. */
#define CHUNK_FILE_MIN_FREE_DEFAULT UINT64_MAX

struct rb_vm_trace_chunk_file;

/*
 * What differs where chunks are memory in place of a file (memory_ring.c). Called with the lock
 * held.
 */
struct vm_trace_chunk_memory {
    bool (*grows_p)(const struct rb_vm_trace_chunk_file *file); /* whether it can: not when the program closed its descriptor */
    void (*begin_ring)(struct rb_vm_trace_chunk_file *file);    /* the settings are written: it never becomes shorter from here on */
    bool (*hold)(struct rb_vm_trace_chunk_file *file, uint64_t offset); /* a chunk is released: true when a snapshot still needs it */
    void (*close)(struct rb_vm_trace_chunk_file *file);
};

struct rb_vm_trace_chunk_file {
    pthread_mutex_t lock;  /* guards all below */
    uint64_t max_bytes;    /* of a file; 0: no limit. Set before it is opened, as is */
    uint64_t min_free_bytes; /* recording stops where the disk has less; 0: never. Set before, too */
    dev_t device;          /* of the file, and */
    ino_t inode;           /* its number: see file_trouble in chunk_file.c */
    uint64_t size;         /* bytes, a multiple of the page's */
    int fd;                /* -1: no file */
    int error;             /* errno of the failure that stopped it, or CHUNK_FILE_..., or 0 */
    int reason;            /* the last such, which stays */
    int trim_error;        /* errno where padding could not be cut off, or 0 */
    bool keep_newest;      /* at the limit, use the oldest chunk again */
    bool ended;            /* rb_vm_trace_chunk_file_end was called */
    bool starved;          /* a chunk was refused because all were in use */
    bool collapses;        /* the thread may ask for large pages: the kernel has not said that it can't */
    bool cut;              /* a page of a chunk was gone, or refused */
    char full[160];        /* which disk has how little space, once that is so; else "" */
    uint64_t *idle;        /* offsets of chunks given back, oldest first: a ring of max_idle */
    size_t first_idle, idle_count, max_idle; /* max_idle 0: chunks are not used again (yet) */
    size_t own, shared;    /* chunks in use, by how they were reserved */
    struct vm_trace_counts dropped; /* what stood in chunks that were used again */
    uint64_t sampled_categories;    /* for vm_trace_counts, see chunk_scan.h. Set before it is opened */
    void *renewing;        /* chunks at hand; used by rb_vm_trace_chunk_file_fault without the lock, as is */
    size_t renewing_bytes;
    struct vm_trace_preallocator preallocator;
    struct rb_vm_trace_chunk ready[CHUNK_FILE_MOST_READY]; /* made ahead, the first comes first; in a file that grows its last */
    size_t ready_count;
    struct rb_vm_trace_chunk spent[CHUNK_FILE_MOST_SPENT]; /* given back, for the thread to unmap */
    size_t spent_count;
    uint64_t made;         /* chunks, by the thread */
    bool recording;        /* writers do not wait for the disk */
    bool disk_busy;        /* the thread uses the file, without the lock: nobody else does. `size` changes then by atomic stores */
    bool at_disk;          /* then: the thread is in a call that waits for the disk. Atomic, without the lock */
    bool making_again;     /* then: it makes a chunk that was idle */
    bool next_wanted;      /* the thread is to make one */
    bool demanded;         /* a writer waits for it, or did: where there is none the sink must say why */
    bool late;             /* a writer has waited in vain */
    bool snapshot;           /* chunks are being copied out, and this is guarded, too: */
    pthread_cond_t changed; /* a chunk is ready, or can't be made; the thread does not use the file any more */
    char *memory;          /* memory_ring.h: where all of it is mapped; NULL: it is a file */
    const struct vm_trace_chunk_memory *memory_calls; /* not NULL where memory is not */
    uint64_t memory_bytes; /* of that mapping, which is as long as it may grow */
    size_t older;          /* idle chunks at the front of the ring that are older than the snapshot */
    uint64_t popped;       /* chunks used again since the snapshot began */
    struct rb_vm_trace_chunk_snapshot *held; /* whose chunks in use must not be used again yet */
};

/*
 * Make the file, mode 0600, and lock it (file_claim.h). A regular file of the same user at `path`
 * is replaced when nobody writes to it; links are not followed, and anything else there is left
 * alone. Returns NULL, or a static or errno text that says why not (valid until the next call),
 * with errno.
 */
const char *rb_vm_trace_chunk_file_open(struct rb_vm_trace_chunk_file *file, const char *path);

/*
 * The same, but where *path belongs to another writer, under the next free name beside it
 * (rb_vm_trace_claim_name). *path is malloc'ed. When another name was taken it is *path, *kept_out
 * is the path that stays (to be freed), and *why_kept_out says why it stays; else both are NULL.
 */
const char *rb_vm_trace_chunk_file_open_beside(struct rb_vm_trace_chunk_file *file, char **path, uint32_t pid,
                                               char **kept_out, const char **why_kept_out);

/* The rest of that: `fd` is a new file. It is closed when this fails. For memory_ring.c. */
const char *rb_vm_trace_chunk_file_begin(struct rb_vm_trace_chunk_file *file, int fd);

/* Close the file and remove it from `path`, if that is still where it is. */
void rb_vm_trace_chunk_file_discard(struct rb_vm_trace_chunk_file *file, const char *path);

/*
 * Reserve the next chunk of the file, full of padding, and map it for the caller only. False on
 * failure: file->error says why, and no other call succeeds either; or, without an error,
 * chunk_out->late or chunk_out->none_idle does, and a later call may succeed. When none_idle is
 * set all chunks of a limited file are in use: the caller may give its own back and try again. Any
 * thread.
 */
bool rb_vm_trace_chunk_file_reserve(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out);

/*
 * The same for one ractor only. `instead`: it has a chunk and gives that back. Refused, as when
 * none is idle, when CHUNK_FILE_MOST_OWN have one; and where chunks are used again, when it would
 * leave none for all those ractors that have none of their own: they share one, which the function
 * above reserves and which must always be available.
 */
bool rb_vm_trace_chunk_file_reserve_own(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk_out,
                                        bool instead);

/*
 * From here on writers do not wait for the disk (true), or do again (false: before all chunks are
 * given back at the end). For files; memory is not slow. Where the system gives us no thread, they
 * wait as ever.
 */
void rb_vm_trace_chunk_file_recording(struct rb_vm_trace_chunk_file *file, bool on);

/*
 * Whether the file is there and as it was left, as far as is known without a look while events are
 * recorded: asked where a chunk in use goes to another ractor.
 */
bool rb_vm_trace_chunk_file_sound_p(struct rb_vm_trace_chunk_file *file);

/*
 * Have the next chunks made ahead, on another thread, unless there are enough. For one who has filled
 * a chunk and will soon fill the next. What keeps its newest events and is full has the oldest chunk made fresh; a file
 * only while events are recorded.
 */
void rb_vm_trace_chunk_file_preallocate(struct rb_vm_trace_chunk_file *file);

/*
 * Give back a chunk of which `used` words hold records; the rest stays padding, or is cut
 * off at a page when nothing is recorded any more and the chunk is the last of the file (and will not be
 * used again). The chunk is empty afterwards.
 */
void rb_vm_trace_chunk_file_release(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk *chunk, size_t used);

/*
 * A chunk, by its offset, is the newest of those that may be used again. sink->lock held; for
 * memory_ring.c.
 */
void rb_vm_trace_chunk_file_push_idle(struct rb_vm_trace_chunk_file *file, uint64_t offset);

/*
 * The file has its settings: chunks reserved from here on may be used again.
 */
void rb_vm_trace_chunk_file_begin_ring(struct rb_vm_trace_chunk_file *file);

/*
 * Only the last events are to come: open the room that was kept for them. Returns what others did
 * to the file: 0, CHUNK_FILE_CUT, CHUNK_FILE_REFUSED, CHUNK_FILE_REMOVED, EBADF when its descriptor
 * is no longer ours, or what else the system says of it.
 */
int rb_vm_trace_chunk_file_end(struct rb_vm_trace_chunk_file *file);

/*
 * Make a valid file of what a cut left: whole records, padded to a page. Reads all of it, and
 * counts what is there. Every chunk must have been released. False: it can't be written to.
 */
bool rb_vm_trace_chunk_file_mend(struct rb_vm_trace_chunk_file *file, struct vm_trace_counts *left_out);

/*
 * In a handler of SIGBUS: put private memory under the chunk that holds `address`, which is
 * `chunk` (may be NULL) or the one that the sink is at. False: the address is in neither.
 */
bool rb_vm_trace_chunk_file_fault(struct rb_vm_trace_chunk_file *file, const struct rb_vm_trace_chunk *chunk,
                                  const void *address);

/* Text of sink->error, or of a reason like it. Valid until the sink is opened again. */
const char *rb_vm_trace_chunk_file_reason(const struct rb_vm_trace_chunk_file *file, int error);

/*
 * Unmap without a touch of the file, once all chunks of the mapping are dropped: for the child of a
 * fork, whose parent owns it.
 */
void rb_vm_trace_chunk_drop(struct rb_vm_trace_chunk *chunk);

/*
 * Append whole records, which end at the end of a page once all of them are there. Returns 0 or
 * what went wrong.
 */
int rb_vm_trace_chunk_file_append(struct rb_vm_trace_chunk_file *file, const uint64_t *words, size_t count);

/* Close. Chunks that are still mapped stay usable, except those in memory. */
void rb_vm_trace_chunk_file_close(struct rb_vm_trace_chunk_file *file);

/* In the child of a fork, with the lock held: close what is the parent's, without a touch of it. */
void rb_vm_trace_chunk_file_after_fork(struct rb_vm_trace_chunk_file *file);

#endif /* RUBY_VM_TRACE_STORE_CHUNK_FILE_H */
