/*
 * macOS: what it has beyond posix.c. Nobody has run this yet: it compiles and links (make check-darwin). See platform.h.
 */
#include "vm_trace/platform/platform.h"

#if VM_TRACE_PLATFORM_DARWIN
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mach/clock_types.h>
#include <mach/mach_init.h>
#include <mach/sync_policy.h>
#include <mach/task.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <sys/types.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000 };

/* --- waiting ---------------------------------------------------------------------------------------- */

/* A child of a fork has none of its parent's, and makes its own before its first trace. */
bool
rb_vm_trace_wakeup_init(struct vm_trace_wakeup *wakeup)
{
    return semaphore_create(mach_task_self(), &wakeup->semaphore, SYNC_POLICY_FIFO, 0) == KERN_SUCCESS;
}

/* A call of the kernel, without a lock. */
void
rb_vm_trace_wakeup_post(struct vm_trace_wakeup *wakeup)
{
    semaphore_signal(wakeup->semaphore);
}

static mach_timespec_t
until(const struct timespec *then)
{
    uint64_t now_ns = clock_ns_of(CLOCK_MONOTONIC);
    uint64_t then_ns = (uint64_t)then->tv_sec * NS_PER_S + (uint64_t)then->tv_nsec;
    uint64_t rest_ns = then_ns > now_ns ? then_ns - now_ns : 0;
    return (mach_timespec_t){ .tv_sec = (unsigned)(rest_ns / NS_PER_S), .tv_nsec = (clock_res_t)(rest_ns % NS_PER_S) };
}

bool
rb_vm_trace_wakeup_wait(struct vm_trace_wakeup *wakeup, uint64_t until_ns)
{
    struct timespec then = { .tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S) };
    kern_return_t result;
    do {
        result = until_ns ? semaphore_timedwait(wakeup->semaphore, until(&then)) : semaphore_wait(wakeup->semaphore);
    } while (result == KERN_ABORTED);
    return result == KERN_SUCCESS;
}

void
rb_vm_trace_platform_cond_init(pthread_cond_t *cond)
{
    pthread_cond_init(cond, NULL);
}

int
rb_vm_trace_platform_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *then)
{
    mach_timespec_t rest = until(then);
    struct timespec relative = { .tv_sec = (time_t)rest.tv_sec, .tv_nsec = rest.tv_nsec };
    return pthread_cond_timedwait_relative_np(cond, lock, &relative);
}

/* --- native threads --------------------------------------------------------------------------------- */

uint32_t
rb_vm_trace_platform_thread_id(void)
{
    uint64_t id = 0;
    pthread_threadid_np(NULL, &id);
    return (uint32_t)id;
}

void
rb_vm_trace_platform_name_thread(const char *name)
{
    pthread_setname_np(name);
}

/* Other threads are found by their pthread_t only. */
size_t
rb_vm_trace_platform_thread_name(uint32_t tid, char *name_out, size_t size)
{
    name_out[0] = '\0';
    if (tid == rb_vm_trace_platform_thread_id()) pthread_getname_np(pthread_self(), name_out, size);
    return strlen(name_out);
}

/* --- files ------------------------------------------------------------------------------------------- */

struct timespec
rb_vm_trace_platform_modified(const struct stat *st)
{
    return st->st_mtimespec;
}

/* From the end of what the file has on the disk. */
int
rb_vm_trace_platform_reserve(int fd, uint64_t size, uint64_t bytes)
{
    fstore_t store = { .fst_flags = F_ALLOCATEALL, .fst_posmode = F_PEOFPOSMODE, .fst_length = (off_t)bytes };
    (void)size;
    if (fcntl(fd, F_PREALLOCATE, &store) == 0) return 0;
    return errno == ENOSPC || errno == EDQUOT ? errno : 0;
}

void
rb_vm_trace_platform_path(int fd, char *path_out, size_t size)
{
    char path[PATH_MAX];
    path_out[0] = '\0';
    if (fcntl(fd, F_GETPATH, path) == 0 && strlen(path) < size) memcpy(path_out, path, strlen(path) + 1);
}

int
rb_vm_trace_platform_rename_new(const char *from, const char *to)
{
    int result = renamex_np(from, to, RENAME_EXCL);
    return result == 0 || errno == EEXIST ? result : rename(from, to); /* file systems without */
}

/* Shared memory gets its size only once there, so this is a file whose name is gone at once. */
int
rb_vm_trace_platform_memory_file(void)
{
    static const char name[] = "vm_trace.XXXXXX";
    char path[PATH_MAX];
    size_t bytes = confstr(_CS_DARWIN_USER_TEMP_DIR, path, sizeof(path) - sizeof(name));
    if (bytes == 0 || bytes > sizeof(path) - sizeof(name)) strcpy(path, "/tmp/");
    strcat(path, name);
    int fd = mkstemp(path);
    if (fd < 0) return -1;
    unlink(path);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

/* --- the process ------------------------------------------------------------------------------------- */

/* The kernel shows the number of arguments, the program's path, NULs, and the arguments. */
size_t
rb_vm_trace_platform_arguments(char *text_out, size_t size, bool count)
{
    int name[] = { CTL_KERN, KERN_PROCARGS2, getpid() }, arguments = 0;
    size_t bytes = 0, all = 0;
    if (sysctl(name, 3, NULL, &bytes, NULL, 0) != 0 || bytes <= sizeof(arguments)) return 0;
    char *text = malloc(bytes);
    if (!text || sysctl(name, 3, text, &bytes, NULL, 0) != 0 || bytes <= sizeof(arguments)) {
        free(text);
        return 0;
    }
    const char *at = text + sizeof(arguments), *end = text + bytes;
    memcpy(&arguments, text, sizeof(arguments));
    while (at < end && *at) at++;
    while (at < end && !*at) at++;
    const char *first = at;
    for (; arguments > 0 && at < end; arguments--) {
        const char *nul = memchr(at, '\0', (size_t)(end - at));
        at = nul ? nul + 1 : end;
    }
    all = (size_t)(at - first);
    memcpy(text_out, first, all < size ? all : size);
    free(text);
    return count || all < size ? all : size;
}

/* --- sockets ----------------------------------------------------------------------------------------- */

bool
rb_vm_trace_platform_trusted_peer_p(int fd)
{
    uid_t user;
    gid_t group;
    return getpeereid(fd, &user, &group) == 0 && (user == geteuid() || user == 0);
}
#endif
