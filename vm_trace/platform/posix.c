/*
 * What POSIX and every Unix have: first what all systems take from here; then what all but macOS do; then, for those
 * that have no file of their own, and in part for macOS, the rest. That does without what POSIX lacks, and answers
 * "unknown". See platform.h.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* MAP_ANONYMOUS; dladdr, which POSIX has since 2024 */
#endif
#include "vm_trace/platform/platform.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef MAP_NORESERVE
# define MAP_NORESERVE 0
#endif

void *
rb_vm_trace_platform_zeros(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

bool
rb_vm_trace_platform_release(void *at, size_t bytes)
{
    return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

int
rb_vm_trace_platform_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

void
rb_vm_trace_platform_unlock(int fd)
{
    if (flock(fd, LOCK_UN) != 0) { /* then it goes with the last chunk that is mapped */ }
}

#if !VM_TRACE_PLATFORM_DARWIN
bool
rb_vm_trace_wakeup_init(struct vm_trace_wakeup *wakeup)
{
    return sem_init(&wakeup->semaphore, 0, 0) == 0;
}

void
rb_vm_trace_wakeup_post(struct vm_trace_wakeup *wakeup)
{
    sem_post(&wakeup->semaphore);
}

bool
rb_vm_trace_wakeup_wait_in_pieces(struct vm_trace_wakeup *wakeup, uint64_t until_ns)
{
    const uint64_t second = UINT64_C(1000000000);
    for (;;) {
        uint64_t now_ns = clock_ns_of(CLOCK_MONOTONIC), rest_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        uint64_t wall_ns = clock_ns_of(CLOCK_REALTIME) + (rest_ns < second ? rest_ns : second);
        struct timespec until = { .tv_sec = (time_t)(wall_ns / second), .tv_nsec = (long)(wall_ns % second) };
        int error = until_ns ? sem_timedwait(&wakeup->semaphore, &until) : sem_wait(&wakeup->semaphore);
        if (!error) return true;
        if (errno == ETIMEDOUT && !rest_ns) return false;
    }
}

void
rb_vm_trace_platform_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

int
rb_vm_trace_platform_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
    return pthread_cond_timedwait(cond, lock, until);
}

struct timespec
rb_vm_trace_platform_modified(const struct stat *st)
{
    return st->st_mtim;
}
#endif

#if !VM_TRACE_PLATFORM_LINUX
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

/* --- clock ------------------------------------------------------------------------------------------ */

bool
rb_vm_trace_platform_counter_p(void)
{
    return false;
}

/* --- native threads --------------------------------------------------------------------------------- */

bool
rb_vm_trace_platform_thread_lives_p(uint32_t tid)
{
    (void)tid;
    return true;
}

bool
rb_vm_trace_platform_thread_runnable_p(uint32_t tid)
{
    (void)tid;
    return false;
}

/* --- sampling of threads ---------------------------------------------------------------------------- */

const char *
rb_vm_trace_platform_no_sampling(void)
{
    return "samples need Linux on x86-64 or arm64";
}

bool
rb_vm_trace_platform_signal_thread(uint32_t tid, int number)
{
    (void)tid, (void)number;
    return false;
}

uint64_t
rb_vm_trace_platform_thread_cpu_ns(uint32_t tid)
{
    (void)tid;
    return 0;
}

bool
rb_vm_trace_platform_begin_sampling(void)
{
    return false;
}

enum vm_trace_running
rb_vm_trace_platform_thread_running(struct vm_trace_thread_file *file, uint32_t tid)
{
    (void)file, (void)tid;
    return VM_TRACE_ON_CPU;
}

void
rb_vm_trace_platform_thread_file_close(struct vm_trace_thread_file *file)
{
    file->fd_and_1 = 0;
}

uint64_t
rb_vm_trace_platform_thread_delay_ns(uint32_t tid)
{
    (void)tid;
    return 0;
}

struct vm_trace_interrupted
rb_vm_trace_platform_interrupted(const void *context)
{
    (void)context;
    return (struct vm_trace_interrupted){ 0, 0, 0 };
}

/* --- other cores ------------------------------------------------------------------------------------- */

bool
rb_vm_trace_platform_barrier(void)
{
    return false;
}

bool
rb_vm_trace_platform_sync_cores(void)
{
    return false;
}

/* --- memory ------------------------------------------------------------------------------------------ */

void *
rb_vm_trace_platform_addresses(void *at, size_t bytes)
{
    void *found = mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return found == MAP_FAILED ? NULL : found;
}

void
rb_vm_trace_platform_populate(void *at, size_t bytes, bool *large)
{
    (void)at, (void)bytes;
    if (large) *large = false;
}

/* For a static function dladdr finds the exported one before it. */
const char *
rb_vm_trace_platform_function_name(const void *function)
{
    Dl_info info;
    return dladdr(function, &info) && info.dli_saddr == function ? info.dli_sname : NULL;
}

/* --- files ------------------------------------------------------------------------------------------- */

bool
rb_vm_trace_platform_disk(int fd, uint64_t *all_bytes_out, uint64_t *free_bytes_out)
{
    struct statvfs disk;
    if (fstatvfs(fd, &disk) != 0) return false;
    *all_bytes_out = (uint64_t)disk.f_blocks * disk.f_frsize;
    *free_bytes_out = (uint64_t)disk.f_bavail * disk.f_frsize;
    return true;
}

void
rb_vm_trace_platform_memory_file_keeps(int fd)
{
    (void)fd;
}

/* --- the process ------------------------------------------------------------------------------------- */

/* Not known: any trace of a process with this pid may be of before exec, and is kept. */
uint64_t
rb_vm_trace_platform_process_begin_ns(void)
{
    return 1;
}

/* --- sockets ----------------------------------------------------------------------------------------- */

static int
closed_by_exec(int fd)
{
    if (fd >= 0) fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

int
rb_vm_trace_platform_socket(void)
{
    return closed_by_exec(socket(AF_UNIX, SOCK_STREAM, 0));
}

/* Nobody can connect before listen(2). */
int
rb_vm_trace_platform_bind(int fd, const struct sockaddr_un *address)
{
    if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0) return -1;
    return chmod(address->sun_path, 0600);
}

int
rb_vm_trace_platform_accept(int fd)
{
    return closed_by_exec(accept(fd, NULL, NULL));
}

#if !VM_TRACE_PLATFORM_DARWIN
/* --- what macOS has, too ------------------------------------------------------------------------------ */

bool
rb_vm_trace_wakeup_wait(struct vm_trace_wakeup *wakeup, uint64_t until_ns)
{
    return rb_vm_trace_wakeup_wait_in_pieces(wakeup, until_ns);
}

uint32_t
rb_vm_trace_platform_thread_id(void)
{
    return 0;
}

void
rb_vm_trace_platform_name_thread(const char *name)
{
    (void)name;
}

size_t
rb_vm_trace_platform_thread_name(uint32_t tid, char *name_out, size_t size)
{
    (void)tid, (void)size;
    name_out[0] = '\0';
    return 0;
}

/* posix_fallocate would change the size: what is appended takes its space itself. */
int
rb_vm_trace_platform_reserve(int fd, uint64_t size, uint64_t bytes)
{
    (void)fd, (void)size, (void)bytes;
    return 0;
}

void
rb_vm_trace_platform_path(int fd, char *path_out, size_t size)
{
    (void)fd, (void)size;
    path_out[0] = '\0';
}

/* A second link is never over an existing name. */
int
rb_vm_trace_platform_rename_new(const char *from, const char *to)
{
    if (link(from, to) == 0) return unlink(from);
    return errno == EEXIST ? -1 : rename(from, to); /* file systems without */
}

/* Shared memory is opened by a name, which is gone at once. */
int
rb_vm_trace_platform_memory_file(void)
{
    enum { ROUNDS = 100 };
    for (int round = 0; round < ROUNDS; round++) {
        char name[64];
        snprintf(name, sizeof(name), "/vm_trace.%ld.%d", (long)getpid(), round);
        int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd >= 0) {
            shm_unlink(name);
            return fd; /* which exec closes */
        }
        if (errno != EEXIST) return -1;
    }
    return -1;
}

size_t
rb_vm_trace_platform_arguments(char *text_out, size_t size, bool count)
{
    (void)text_out, (void)size, (void)count;
    return 0;
}

/* The mode of the path lets nobody else in, except root. */
bool
rb_vm_trace_platform_trusted_peer_p(int fd)
{
    (void)fd;
    return true;
}
#endif
#endif
