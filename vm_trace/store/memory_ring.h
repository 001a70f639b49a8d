#ifndef RUBY_VM_TRACE_STORE_MEMORY_RING_H
#define RUBY_VM_TRACE_STORE_MEMORY_RING_H 1
/*
 * A sink that is memory in place of a file: the flight recorder's.
 *
 * It is a file that has no name (memfd), so all that chunk_file.h says of a file with a limit holds: chunks,
 * the ring, validity at any instant. What differs: all of it stays mapped at one place, so that a
 * core file has it and the next chunk costs no system call; nobody can cut it short; it can be read from
 * outside, at /proc/PID/fd; and its chunks can be copied out while records go on being written:
 *
 *   ring      | oldest ... older half | newer half ... newest | in use, one a ractor |
 *   snapshot  | used again if need be | kept                  | kept, up to a record |
 *
 * What a snapshot holds is copied from the oldest chunk on, without a lock, and each chunk is given back, at
 * its place in the ring, as soon as it was copied. Meanwhile records go into the older half (and
 * into what was given back). So there is never a second copy of the ring, and no writer ever waits.
 */

#include "vm_trace/store/chunk_file.h"

struct rb_vm_trace_chunk_snapshot {
    size_t capacity;       /* of the array: set by rb_vm_trace_chunk_snapshot_room */
    size_t count;          /* chunks, the oldest first: */
    size_t older;          /* so many may be used again, */
    size_t idle;           /* so many (with those) were in use no more, and the rest are in use */
    struct vm_trace_snapshot_chunk {
        uint64_t offset;
        size_t words;      /* that were written; VM_TRACE_CHUNK_WORDS of one that is idle */
        bool released;     /* its writer gave it back meanwhile */
    } *chunks;
};

/* Make the memory, of at most sink->max_bytes. NULL, or a text that says why not. */
const char *rb_vm_trace_memory_open(struct rb_vm_trace_chunk_file *file);

/* Make room for all chunks that the sink may have, and for `in_use` more. False: no memory. */
bool rb_vm_trace_chunk_snapshot_room(struct rb_vm_trace_chunk_snapshot *snapshot,
                                     const struct rb_vm_trace_chunk_file *file, size_t in_use);
void rb_vm_trace_chunk_snapshot_free(struct rb_vm_trace_chunk_snapshot *snapshot);

/*
 * Freeze what is idle. sink->lock held, till all chunks in use are added. Takes time by the number
 * of chunks, not by their size.
 */
void rb_vm_trace_memory_snapshot_begin(struct rb_vm_trace_chunk_file *file,
                                       struct rb_vm_trace_chunk_snapshot *snapshot);

/*
 * Add a chunk in use, of which `words` are written. One that is there already is not added again.
 * sink->lock held.
 */
void rb_vm_trace_memory_snapshot_in_use(struct rb_vm_trace_chunk_file *file,
                                        struct rb_vm_trace_chunk_snapshot *snapshot, uint64_t offset, size_t words);

/*
 * Give a chunk of the snapshot back. Once for each, from the first on. False: it was used again in
 * the meantime, so what was read of it is worth nothing.
 */
bool rb_vm_trace_memory_give_back(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk_snapshot *snapshot,
                                  size_t index);

/* Give back those from `index` on, and end the snapshot. */
void rb_vm_trace_memory_snapshot_end(struct rb_vm_trace_chunk_file *file, struct rb_vm_trace_chunk_snapshot *snapshot,
                                     size_t index);

/* Write all of it, as it is, into an open file. Async-signal-safe; false: errno says why. */
bool rb_vm_trace_memory_dump(const struct rb_vm_trace_chunk_file *file, int fd);

#endif /* RUBY_VM_TRACE_STORE_MEMORY_RING_H */
