/*
 * Linux. See platform.h.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1
#endif
#include "vm_trace/platform/platform.h"

#if VM_TRACE_PLATFORM_LINUX
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* Of the kernel, which may be newer than the C library's headers; one that does not know them says EINVAL or ENOSYS. */
#ifndef MADV_POPULATE_WRITE
# define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
# define MADV_COLLAPSE 25
#endif
#ifndef MAP_FIXED_NOREPLACE
# define MAP_FIXED_NOREPLACE 0 /* an address is then a wish, as it is for a kernel that does not know it */
#endif
#ifndef RENAME_NOREPLACE
# define RENAME_NOREPLACE (1 << 0)
#endif
#ifndef SYS_close_range
# define SYS_close_range 436
#endif
#define UNSHARE_TABLE 2U /* CLOSE_RANGE_UNSHARE of linux/close_range.h */

/* --- clock ------------------------------------------------------------------------------------------ */

bool
rb_vm_trace_platform_counter_p(void)
{
#if defined(__x86_64__)
    static const char source[] = "tsc\n"; /* what the kernel calls the counter that ticks.h reads */
#elif defined(__aarch64__)
    static const char source[] = "arch_sys_counter\n";
#else
    static const char source[] = "\n";
#endif
    /* The kernel has checked that the counter is invariant and the same on all cores, or it would not use it. */
    char name[sizeof(source) + 1] = ""; /* one longer, to see that there is no more */
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, name, sizeof(name));
    close(fd);
    return n == sizeof(source) - 1 && memcmp(name, source, sizeof(source) - 1) == 0;
}

bool
rb_vm_trace_wakeup_wait(struct vm_trace_wakeup *wakeup, uint64_t until_ns)
{
#ifdef __GLIBC__
    struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000) };
    for (;;) {
        int error = until_ns ? sem_clockwait(&wakeup->semaphore, CLOCK_MONOTONIC, &until) :
            sem_wait(&wakeup->semaphore);
        if (!error) return true;
        if (errno == ETIMEDOUT) return false;
    }
#else
    return rb_vm_trace_wakeup_wait_in_pieces(wakeup, until_ns);
#endif
}

/* --- native threads --------------------------------------------------------------------------------- */

uint32_t
rb_vm_trace_platform_thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

void
rb_vm_trace_platform_name_thread(const char *name)
{
    prctl(PR_SET_NAME, name);
}

/* The text of a small file of /proc, with a NUL. Returns its bytes, 0: there is none. */
static size_t
read_text(const char *path, char *text_out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t n = read(fd, text_out, size - 1);
    close(fd);
    text_out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* The path of a file of a thread, without the C library, whose snprintf no signal handler may call. */
static const char *
path_of(uint32_t tid, const char *name, char path_out[64])
{
    char digits[16], *to = stpcpy(path_out, "/proc/self/task/");
    int count = 0;
    do digits[count++] = (char)('0' + tid % 10); while ((tid /= 10) > 0);
    while (count > 0) *to++ = digits[--count];
    *to++ = '/';
    strcpy(to, name);
    return path_out;
}

static size_t
read_text_of(uint32_t tid, const char *name, char *text_out, size_t size)
{
    char path[64];
    return read_text(path_of(tid, name, path), text_out, size);
}

size_t
rb_vm_trace_platform_thread_name(uint32_t tid, char *name_out, size_t size)
{
    if (!read_text_of(tid, "comm", name_out, size)) return 0;
    size_t bytes = strcspn(name_out, "\n");
    name_out[bytes] = '\0';
    return bytes;
}

bool
rb_vm_trace_platform_thread_lives_p(uint32_t tid)
{
    return syscall(SYS_tgkill, getpid(), (pid_t)tid, 0) == 0;
}

bool
rb_vm_trace_platform_thread_runnable_p(uint32_t tid)
{
    char text[256];
    const char *name_end = read_text_of(tid, "stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
    return name_end && strncmp(name_end, ") R", 3) == 0;
}

/* --- sampling of threads ---------------------------------------------------------------------------- */

const char *
rb_vm_trace_platform_no_sampling(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    return NULL;
#else
    return "samples need Linux on x86-64 or arm64";
#endif
}

bool
rb_vm_trace_platform_signal_thread(uint32_t tid, int number)
{
    return syscall(SYS_tgkill, getpid(), (pid_t)tid, number) == 0;
}

/* The clock is that which pthread_getcpuclockid(3) names. */
uint64_t
rb_vm_trace_platform_thread_cpu_ns(uint32_t tid)
{
    enum { PER_THREAD = 4, SCHEDULER = 2 };
    return clock_ns_of((clockid_t)(~tid << 3 | PER_THREAD | SCHEDULER));
}

bool
rb_vm_trace_platform_begin_sampling(void)
{
    enum { TIMER_SLACK_NS = 1000 };
    prctl(PR_SET_TIMERSLACK, (unsigned long)TIMER_SLACK_NS);
    return syscall(SYS_close_range, 3U, ~0U, UNSHARE_TABLE) == 0;
}

/* System calls that go on after a signal, or that no signal interrupts: those on files. */
static bool
goes_on_p(long number)
{
    static const long numbers[] = {
        -1, /* none: it waits for memory */
#ifdef SYS_open
        SYS_open, SYS_stat, SYS_lstat, SYS_unlink, SYS_rename, SYS_mkdir, SYS_getdents,
#endif
        SYS_read, SYS_pread64, SYS_readv, SYS_openat, SYS_close, SYS_fstat, SYS_newfstatat, SYS_fsync, SYS_fdatasync,
        SYS_getdents64, SYS_unlinkat, SYS_renameat2, SYS_mkdirat, SYS_mmap, SYS_munmap, SYS_madvise, SYS_mprotect
#ifdef SYS_statx
        , SYS_statx
#endif
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i] == number) return true;
    }
    return false;
}

enum vm_trace_running
rb_vm_trace_platform_thread_running(struct vm_trace_thread_file *file, uint32_t tid)
{
    char text[64];
    if (!file->fd_and_1 || file->tid != tid) {
        rb_vm_trace_platform_thread_file_close(file);
        int fd = open(path_of(tid, "syscall", text), O_RDONLY | O_CLOEXEC);
        /* Else there is no /proc. */
        if (fd < 0) return errno == EMFILE || errno == ENFILE ? VM_TRACE_ASLEEP : VM_TRACE_ON_CPU;
        file->fd_and_1 = fd + 1;
        file->tid = tid;
    }
    ssize_t bytes = pread(file->fd_and_1 - 1, text, sizeof(text) - 1, 0);
    if (bytes <= 0) { /* another thread has that id by now, or none */
        rb_vm_trace_platform_thread_file_close(file);
        return VM_TRACE_ASLEEP;
    }
    if (text[0] == 'r') return VM_TRACE_ON_CPU; /* "running" */
    text[bytes] = '\0';
    return goes_on_p(strtol(text, NULL, 10)) ? VM_TRACE_OFF_CPU : VM_TRACE_ASLEEP;
}

void
rb_vm_trace_platform_thread_file_close(struct vm_trace_thread_file *file)
{
    if (file->fd_and_1) close(file->fd_and_1 - 1);
    file->fd_and_1 = 0;
}

uint64_t
rb_vm_trace_platform_thread_delay_ns(uint32_t tid)
{
    char text[96];
    const char *second = read_text_of(tid, "schedstat", text, sizeof(text)) ? strchr(text, ' ') : NULL;
    return second ? strtoull(second, NULL, 10) : 0; /* the first is its CPU time */
}

struct vm_trace_interrupted
rb_vm_trace_platform_interrupted(const void *context)
{
    const ucontext_t *at = context;
#if defined(__x86_64__)
    const greg_t *registers = at->uc_mcontext.gregs;
    return (struct vm_trace_interrupted){ (uintptr_t)registers[REG_RIP], (uintptr_t)registers[REG_RSP], 0 };
#elif defined(__aarch64__)
    return (struct vm_trace_interrupted){ (uintptr_t)at->uc_mcontext.pc, (uintptr_t)at->uc_mcontext.sp,
                                          (uintptr_t)at->uc_mcontext.regs[30] };
#else
    (void)at;
    return (struct vm_trace_interrupted){ 0, 0, 0 };
#endif
}

/* --- other cores ------------------------------------------------------------------------------------- */

#ifdef SYS_membarrier
enum { /* <linux/membarrier.h>: the headers of some systems are older than their kernel */
    PRIVATE_EXPEDITED = 1 << 3,
    REGISTER_PRIVATE_EXPEDITED = 1 << 4,
    PRIVATE_EXPEDITED_SYNC_CORE = 1 << 5,
    REGISTER_PRIVATE_EXPEDITED_SYNC_CORE = 1 << 6,
};

/* EPERM: this process is not registered yet, or a filter refuses the call. Leaves errno as it was. */
static bool
pass(int command, int registration)
{
    int saved_errno = errno;
    bool passed = syscall(SYS_membarrier, command, 0, 0) == 0;
    if (!passed && errno == EPERM && syscall(SYS_membarrier, registration, 0, 0) == 0)
        passed = syscall(SYS_membarrier, command, 0, 0) == 0;
    errno = saved_errno;
    return passed;
}
#else
enum {
    PRIVATE_EXPEDITED, REGISTER_PRIVATE_EXPEDITED, PRIVATE_EXPEDITED_SYNC_CORE, REGISTER_PRIVATE_EXPEDITED_SYNC_CORE
};

static bool
pass(int command, int registration)
{
    (void)command, (void)registration;
    return false;
}
#endif

bool
rb_vm_trace_platform_barrier(void)
{
    return pass(PRIVATE_EXPEDITED, REGISTER_PRIVATE_EXPEDITED);
}

bool
rb_vm_trace_platform_sync_cores(void)
{
    return pass(PRIVATE_EXPEDITED_SYNC_CORE, REGISTER_PRIVATE_EXPEDITED_SYNC_CORE);
}

/* --- memory ------------------------------------------------------------------------------------------ */

void *
rb_vm_trace_platform_addresses(void *at, size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
    void *found = mmap(at, bytes, PROT_NONE, flags, -1, 0);
    return found == MAP_FAILED ? NULL : found;
}

void
rb_vm_trace_platform_populate(void *at, size_t bytes, bool *large)
{
    if (large && *large && madvise(at, bytes, MADV_COLLAPSE) != 0) *large = errno == EAGAIN || errno == EBUSY;
    if (madvise(at, bytes, MADV_POPULATE_WRITE) != 0) { /* then they come one by one */ }
}

/*
 * The tables of objects are those of the System V ABI (gABI 5, dynamic linking), and DT_GNU_HASH, which has no count of
 * symbols: the last one ends the chain of the last bucket.
 */
struct object {
    uintptr_t function, base;
    const ElfW(Dyn) *dynamic; /* NULL: not found */
};

/* The loader knows addresses as numbers. */
static const void *
pointer_to(uintptr_t address)
{
    const void *pointer;
    memcpy(&pointer, &address, sizeof(pointer));
    return pointer;
}

/* Stops at the object that has the function. */
static int
find_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
    struct object *object = data;
    const ElfW(Dyn) *dynamic = NULL;
    bool has = false;
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_DYNAMIC) dynamic = pointer_to(begin);
        has |= part->p_type == PT_LOAD && object->function - begin < part->p_memsz;
    }
    if (!has) return 0;
    object->base = info->dlpi_addr;
    object->dynamic = dynamic;
    return 1;
}

static size_t
count_by_gnu_hash(const uint32_t *table)
{
    uint32_t buckets = table[0], first = table[1], last = 0;
    const uint32_t *bucket = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof(*table)), *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++) {
        if (bucket[i] > last) last = bucket[i];
    }
    if (last < first) return first;
    while (!(chain[last - first] & 1)) last++;
    return last + 1;
}

const char *
rb_vm_trace_platform_function_name(const void *function)
{
    struct object object = { .function = (uintptr_t)function };
    if (!dl_iterate_phdr(find_object, &object) || !object.dynamic) return NULL;
    /* The object stays: whoever asks is about to call the function. */
    const ElfW(Sym) *symbols = NULL;
    const char *texts = NULL;
    const uint32_t *hash = NULL, *gnu_hash = NULL;
    for (const ElfW(Dyn) *entry = object.dynamic; entry->d_tag != DT_NULL; entry++) {
        /* The loader relocates these, except in objects that it may not write, such as the vDSO. */
        uintptr_t at = entry->d_un.d_ptr < object.base ? object.base + entry->d_un.d_ptr : entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB) symbols = pointer_to(at);
        else if (entry->d_tag == DT_STRTAB) texts = pointer_to(at);
        else if (entry->d_tag == DT_HASH) hash = pointer_to(at);
        else if (entry->d_tag == DT_GNU_HASH) gnu_hash = pointer_to(at);
    }
    size_t count = hash ? hash[1] : gnu_hash ? count_by_gnu_hash(gnu_hash) : 0;
    for (size_t i = 0; symbols && texts && i < count; i++) {
        const ElfW(Sym) *symbol = &symbols[i];
        if (symbol->st_shndx == SHN_UNDEF || object.base + symbol->st_value != object.function) continue;
        if ((symbol->st_info & 0xf) == STT_FUNC) return texts + symbol->st_name;
    }
    return NULL;
}

/* --- files ------------------------------------------------------------------------------------------- */

int
rb_vm_trace_platform_reserve(int fd, uint64_t size, uint64_t bytes)
{
#ifdef FALLOC_FL_KEEP_SIZE
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)size, (off_t)bytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS &&
        errno != EINTR)
        return errno;
#endif
    return 0;
}

bool
rb_vm_trace_platform_disk(int fd, uint64_t *all_bytes_out, uint64_t *free_bytes_out)
{
    struct statfs disk;
    if (fstatfs(fd, &disk) != 0) return false;
    uint64_t unit = (uint64_t)(disk.f_frsize ? disk.f_frsize : disk.f_bsize);
    *all_bytes_out = disk.f_blocks * unit;
    *free_bytes_out = disk.f_bavail * unit;
    return true;
}

void
rb_vm_trace_platform_path(int fd, char *path_out, size_t size)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path_out, size - 1);
    path_out[n > 0 ? n : 0] = '\0';
}

int
rb_vm_trace_platform_rename_new(const char *from, const char *to)
{
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    return errno == EINVAL || errno == ENOSYS ? rename(from, to) : -1; /* file systems without */
}

int
rb_vm_trace_platform_memory_file(void)
{
    return memfd_create("vm_trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

void
rb_vm_trace_platform_memory_file_keeps(int fd)
{
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) { /* an old kernel */ }
}

/* --- the process ------------------------------------------------------------------------------------- */

/*
 * The kernel's record of the main thread, which begins with the process. qemu-user makes /proc/self/stat up for
 * the program that it emulates, and begins again with each exec. Where /proc is that of another pid namespace, only
 * /proc/self is known.
 */
uint64_t
rb_vm_trace_platform_process_begin_ns(void)
{
    enum { FIELD = 22, FIRST_BEHIND_NAME = 3 };
    char text[1024];
    if (!read_text_of((uint32_t)getpid(), "stat", text, sizeof(text)) &&
        !read_text("/proc/self/stat", text, sizeof(text)))
        return 0;
    const char *at = strrchr(text, ')'); /* the name may hold anything */
    for (int field = FIRST_BEHIND_NAME - 1; at && field < FIELD; field++) at = strchr(at + 1, ' ');
    if (!at) return 0;
    uint64_t ticks = 0, hertz = (uint64_t)sysconf(_SC_CLK_TCK);
    while (*++at >= '0' && *at <= '9') ticks = ticks * 10 + (uint64_t)(*at - '0');
    return ticks / hertz * UINT64_C(1000000000) + ticks % hertz * UINT64_C(1000000000) / hertz;
}

size_t
rb_vm_trace_platform_arguments(char *text_out, size_t size, bool count)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    size_t bytes = 0;
    char past[4096];
    do {
        bool room = bytes < size;
        ssize_t n = read(fd, room ? text_out + bytes : past, room ? size - bytes : sizeof(past));
        if (n <= 0) break;
        bytes += (size_t)n;
    } while (count);
    close(fd);
    return bytes;
}

/* --- sockets ----------------------------------------------------------------------------------------- */

int
rb_vm_trace_platform_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

int
rb_vm_trace_platform_bind(int fd, const struct sockaddr_un *address)
{
    /* The socket's file gets the mode that the socket has. */
    return fchmod(fd, 0600) == 0 ? bind(fd, (const struct sockaddr *)address, sizeof(*address)) : -1;
}

int
rb_vm_trace_platform_accept(int fd)
{
    return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
}

bool
rb_vm_trace_platform_trusted_peer_p(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}
#endif
