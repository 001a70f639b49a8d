/*
 * Who may write to a path. See file_claim.h.
 */
#include "vm_trace/store/file_claim.h"
#include "vm_trace/platform/platform.h"
#include "vm_trace/schema/fxt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Someone may make the file again between our calls; then it is tried once more. */
enum { ROUNDS = 10 };

static uint64_t image_begin_ns;

/* A number behind a character. Returns the end. */
static char *
put_number(char *to, char before, uint32_t number)
{
    char digits[16];
    int count = 0;
    do digits[count++] = (char)('0' + number % 10); while ((number /= 10) > 0);
    *to++ = before;
    while (count > 0) *to++ = digits[--count];
    return to;
}

void
rb_vm_trace_claim_image(uint64_t begin_ns)
{
    if (!image_begin_ns) image_begin_ns = begin_ns;
}

/* --- the trace of before exec ---------------------------------------------------------------------- */

/*
 * Read which process wrote a trace, and the time of its first event, the settings. False: it is no
 * trace of ours.
 */
static bool
read_origin(int fd, uint64_t *pid_out, uint64_t *ns_out)
{
    enum { MOST_RECORDS = 1000 }; /* before the settings stand some dozens of strings */
    uint64_t words[2], offset = FXT_WORD_BYTES;
    bool process = false;
    if (pread(fd, words, FXT_WORD_BYTES, 0) != FXT_WORD_BYTES || words[0] != FXT_MAGIC_RECORD) return false;
    for (int i = 0; i < MOST_RECORDS && pread(fd, words, sizeof(words), (off_t)offset) == (ssize_t)sizeof(words); i++) {
        uint64_t type = fxt_bits(words[0], FXT_HEADER_TYPE), object = fxt_bits(words[0], FXT_KERNEL_OBJECT_TYPE);
        size_t size = fxt_bits(words[0], FXT_HEADER_SIZE);
        if (type == FXT_RECORD_KERNEL_OBJECT && object == FXT_OBJECT_PROCESS) {
            process = true;
            *pid_out = words[1];
        }
        *ns_out = words[1];
        if (type == FXT_RECORD_EVENT) return process;
        if (size == 0) return false;
        offset += size * FXT_WORD_BYTES;
    }
    return false;
}

static bool
own_past_p(int fd)
{
    uint64_t pid, ns;
    if (!image_begin_ns || !read_origin(fd, &pid, &ns) || pid != (uint64_t)getpid() || ns >= image_begin_ns)
        return false;
    uint64_t begin_ns = rb_vm_trace_platform_process_begin_ns();
    return begin_ns > 0 && ns >= begin_ns;
}

/* --- stale files ------------------------------------------------------------------------------------ */

static bool
same_file_p(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

static int
open_to_lock(const char *path)
{
    /* For writing, because NFS has no other exclusive locks. */
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 ? fd : open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

const char *
rb_vm_trace_claim_refusal(const struct stat *st)
{
    errno = EEXIST;
    if (!S_ISREG(st->st_mode)) return "it exists and is not a regular file";
    return st->st_uid == geteuid() ? NULL : "it exists and belongs to another user";
}

/*
 * What belongs to nobody is unlinked under its lock, so that no writer can take it between the look
 * and the removal.
 */
const char *
rb_vm_trace_claim_remove_stale(const char *path, bool past_too)
{
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT ? NULL : strerror(errno);
    const char *why = rb_vm_trace_claim_refusal(&st);
    if (why) return why;

    int fd = open_to_lock(path), error = 0;
    /*
     * Gone meanwhile: another writer's may be there a moment later. Only what cannot be opened is
     * removed without a lock.
     */
    if (fd < 0 && errno != EACCES) return errno == ENOENT ? NULL : strerror(errno);
    if (fd >= 0 && rb_vm_trace_platform_lock(fd) == EWOULDBLOCK) {
        why = "another process is writing it";
        error = EBUSY;
    }
    else if (fd >= 0 && !past_too && own_past_p(fd)) {
        why = "this process wrote it before exec";
        error = EBUSY;
    }
    else if (fd >= 0 && !same_file_p(fd, path)) {
        error = 0; /* another one is there meanwhile: the caller looks again */
    }
    else if (unlink(path) != 0 && errno != ENOENT) {
        why = strerror(errno);
        error = errno;
    }
    if (fd >= 0) close(fd);
    errno = error;
    return why;
}

int
rb_vm_trace_claim_create(const char *path, int flags, const char **why_out)
{
    *why_out = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        /* O_EXCL follows no link. */
        int fd = open(path, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0) {
            *why_out = errno == EEXIST ? rb_vm_trace_claim_remove_stale(path, false) : strerror(errno);
            if (*why_out) return -1;
            continue;
        }
        bool locked = rb_vm_trace_platform_lock(fd) != EWOULDBLOCK; /* else someone takes it for stale right now */
        if (locked && same_file_p(fd, path)) return fd;
        close(fd);
    }
    *why_out = "other processes are replacing it";
    errno = EBUSY;
    return -1;
}

const char *
rb_vm_trace_claim_rename(const char *from, const char *path, bool past_too)
{
    const char *why = rb_vm_trace_claim_remove_stale(path, past_too);
    if (why) return why;
    return rb_vm_trace_platform_rename_new(from, path) == 0 ? NULL : strerror(errno);
}

/* --- names ------------------------------------------------------------------------------------------ */

void
rb_vm_trace_claim_name(char *name, const char *path, uint32_t pid, unsigned n)
{
    char *end = stpcpy(name, path);
    if (n > 0) end = put_number(end, '.', pid);
    if (n > 1) end = put_number(end, '.', n);
    *end = '\0';
}
