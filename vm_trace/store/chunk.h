#ifndef RUBY_VM_TRACE_STORE_CHUNK_H
#define RUBY_VM_TRACE_STORE_CHUNK_H 1
/*
 * A chunk: the unit in which a trace file (chunk_file.h) grows, and which a writer fills
 * (writer.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VM_TRACE_CHUNK_BYTES ((size_t)1 << 20)
#define VM_TRACE_CHUNK_WORDS (VM_TRACE_CHUNK_BYTES / 8)
#define VM_TRACE_PAGE_WORDS ((size_t)512)      /* a padding record a page */

/* Chunks that the file grew by, mapped by one call. Unmapped with the last of them. */
struct rb_vm_trace_mapping {
    void *at;
    size_t bytes;
    size_t chunks;         /* not dropped yet. Guarded by the lock of the chunk file */
};

struct rb_vm_trace_chunk {
    uint64_t *words;       /* mapped, shared; NULL: none */
    struct rb_vm_trace_mapping *mapping; /* that it is a part of; NULL: memory, which stays mapped */
    size_t first;          /* words from the start that are not the owner's (the magic number) */
    uint64_t offset;       /* bytes from the start of the file */
    bool none_idle;        /* none was available: as many are in use as the limit allows */
    bool late;             /* none was available because the disk is too slow */
    bool own;              /* by rb_vm_trace_chunk_file_reserve_own */
    bool stays;            /* the file does not use it again */
};

#endif /* RUBY_VM_TRACE_STORE_CHUNK_H */
