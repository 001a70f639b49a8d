#ifndef RUBY_VM_TRACE_STORE_COMPRESSION_H
#define RUBY_VM_TRACE_STORE_COMPRESSION_H 1
/*
 * Compressing a finished file. The libraries are those of the system, loaded when somebody asks for
 * one: Ruby is not linked with them.
 */
#include <stdbool.h>
#include <stdint.h>

enum vm_trace_compression {
    VM_TRACE_UNCOMPRESSED,
    VM_TRACE_GZIP, /* zlib's libz.so.1 */
    VM_TRACE_ZSTD  /* libzstd.so.1 */
};

/* What a name of one may be, for a message behind the option's name. */
#define VM_TRACE_COMPRESSION_TAKES "takes zstd, gzip or none"

/* False: there is no such compression. */
bool rb_vm_trace_compression_named(const char *name, enum vm_trace_compression *compression_out);

/* The end of a compressed file's name: ".gz", ".zst", or "". */
const char *rb_vm_trace_compression_suffix(enum vm_trace_compression compression);

/*
 * Load its library, once for the process. NULL, or why that can't be: a static text that names the
 * library. Takes the lock of the dynamic loader. Any thread.
 */
const char *rb_vm_trace_compression_load(enum vm_trace_compression compression);

/*
 * Write what is in the file `from`, of that many bytes, to the file `to`, at its beginning. Both stay
 * open. 0, or errno. The library is loaded. Any thread; takes up to some MiB of malloc's memory, and no
 * Ruby memory. zstd's output is a frame for each MiB (RFC 8878, section 3), gzip's one member (RFC 1952).
 */
int rb_vm_trace_compress(enum vm_trace_compression compression, int from, uint64_t bytes, int to);

#endif /* RUBY_VM_TRACE_STORE_COMPRESSION_H */
