#ifndef RUBY_VM_TRACE_STORE_FILE_CLAIM_H
#define RUBY_VM_TRACE_STORE_FILE_CLAIM_H 1
/*
 * Who may write to a path. A trace file that is being written belongs to its writer, which holds a
 * lock on it (flock(2)). Others find the lock and take another name.
 *
 * flock is the right kind of lock here: it belongs to the open file, not to the process or the
 * descriptor. A mapping keeps the open file alive, so a program that closes all descriptors still
 * holds the lock through its mapped chunks. The child of a fork shares the lock and gives it up by
 * closing its descriptor and unmapping its chunks, which leaves the parent's. exec ends it, for
 * descriptor and mappings go. Where the file system has no locks the file is not protected.
 *
 * After exec the file of the old image has no lock, but is not stale: the same process wrote it. It
 * is recognized by its own first records (the process and the time of its settings), and is kept.
 */

#include <stdbool.h>
#include <stdint.h>

/* Bytes that rb_vm_trace_claim_name adds to a path at most, with the final 0. */
#define CLAIM_SUFFIX_BYTES 32
/* Names that are tried: PATH, PATH.PID, PATH.PID.2, and so on. */
#define CLAIM_NAMES 100

/*
 * Record when this process image began to trace, in nanoseconds of CLOCK_BOOTTIME. Only the first
 * call counts. A file that the same process began earlier than that is one of before exec. Called
 * before the first claim.
 */
void rb_vm_trace_claim_image(uint64_t begin_ns);

/*
 * Make a new file with open(2)'s `flags` (with O_CREAT, O_EXCL and mode 0600 added), and lock it. A
 * stale trace of the same user at `path` is removed first; anything else stays. Returns the
 * descriptor, or -1 with errno and a static or errno text in *why_out. EBUSY: the path belongs to
 * another writer; try another name. Async-signal-safe but for the text.
 */
int rb_vm_trace_claim_create(const char *path, int flags, const char **why_out);

/*
 * Remove a stale trace of the same user; `past_too`: also one that this process wrote before exec.
 * NULL: nothing is at `path` now. Else why not, with errno; EBUSY as above. Async-signal-safe but
 * for the text.
 */
const char *rb_vm_trace_claim_remove_stale(const char *path, bool past_too);

/*
 * Give the file `from` the name `path`, over nothing but a stale trace of the same user. NULL, or why
 * not, with errno, as above.
 */
const char *rb_vm_trace_claim_rename(const char *from, const char *path, bool past_too);

struct stat;

/*
 * Why what is at a path is never replaced, whoever writes to it; errno is EEXIST then. NULL: it may
 * be. Async-signal-safe.
 */
const char *rb_vm_trace_claim_refusal(const struct stat *st);

/*
 * The n-th name to try for `path` in process `pid`, into `name`, which has room for
 * CLAIM_SUFFIX_BYTES more than the path. 0: the path itself. Async-signal-safe.
 */
void rb_vm_trace_claim_name(char *name, const char *path, uint32_t pid, unsigned n);

#endif /* RUBY_VM_TRACE_STORE_FILE_CLAIM_H */
