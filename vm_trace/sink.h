#ifndef RUBY_VM_TRACE_SINK_H
#define RUBY_VM_TRACE_SINK_H 1
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
 * Nothing here knows of records but the padding and the magic number.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SINK_CHUNK_BYTES ((size_t)1 << 20)
#define SINK_CHUNK_WORDS (SINK_CHUNK_BYTES / 8)
#define SINK_GRID_WORDS ((size_t)512)      /* a padding record a page */

struct rb_vm_trace_sink {
    pthread_mutex_t lock;  /* guards all below */
    int fd;                /* -1: no file */
    dev_t device;          /* of the file, and */
    ino_t inode;           /* its number: see sink_fd_is_ours in sink.c */
    uint64_t size;         /* bytes, a multiple of the page's */
    int error;             /* errno of the failure that stopped it, or 0 */
};

struct rb_vm_trace_chunk {
    uint64_t *words;       /* mapped, shared; NULL: none */
    size_t first;          /* words from the start that are not the owner's (the magic number) */
    uint64_t offset;       /* bytes from the start of the file */
};

/*
 * Make the file, mode 0600. A regular file of the same user at `path` is replaced; links
 * are not followed, and anything else there is left alone. Returns NULL, or a static or
 * errno text that says why not (valid until the next call).
 */
const char *rb_vm_trace_sink_open(struct rb_vm_trace_sink *sink, const char *path);

/*
 * Reserve the next chunk of the file, full of padding, and map it for the caller alone.
 * False on failure, and from then on: sink->error says why. Any thread.
 */
bool rb_vm_trace_sink_reserve(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk_out);

/*
 * Give back a chunk of which `used` words hold records; the rest stays padding, or is cut
 * off at a page when the chunk is the last of the file. The chunk is empty afterwards.
 */
void rb_vm_trace_sink_release(struct rb_vm_trace_sink *sink, struct rb_vm_trace_chunk *chunk, size_t used);

/* Unmap without a touch of the file: for the child of a fork, whose parent owns it. */
void rb_vm_trace_chunk_drop(struct rb_vm_trace_chunk *chunk);

/* Close. Chunks that are still mapped stay usable. */
void rb_vm_trace_sink_close(struct rb_vm_trace_sink *sink);

#endif /* RUBY_VM_TRACE_SINK_H */
