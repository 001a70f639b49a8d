#ifndef RUBY_VM_TRACE_PLATFORM_PLATFORM_H
#define RUBY_VM_TRACE_PLATFORM_PLATFORM_H 1
/*
 * What differs between systems. posix.c implements this header; on Linux linux.c implements most of it, on macOS
 * darwin.c some, unless the build defines VM_TRACE_PLATFORM_POSIX. All other folders use ISO C, POSIX and
 * MAP_ANONYMOUS, and no #ifdef of a system; `make lint` checks that.
 *
 * A function may be called by any thread, with any lock, and after fork, unless its comment says otherwise.
 */

#if !defined(VM_TRACE_PLATFORM_POSIX) && defined(__linux__)
# define VM_TRACE_PLATFORM_LINUX 1
#else
# define VM_TRACE_PLATFORM_LINUX 0
#endif
#if !defined(VM_TRACE_PLATFORM_POSIX) && defined(__APPLE__)
# define VM_TRACE_PLATFORM_DARWIN 1
# include <mach/semaphore.h>
#else
# define VM_TRACE_PLATFORM_DARWIN 0
# include <semaphore.h>
#endif

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Whether the processor's counter can be the system's clock (rb_vm_trace_platform_counter_p). */
#define VM_TRACE_PLATFORM_COUNTER VM_TRACE_PLATFORM_LINUX

/* --- clock ------------------------------------------------------------------------------------------ */

/* The clock of all times: one that goes on while the machine sleeps, or the monotonic one. */
#if VM_TRACE_PLATFORM_LINUX
# define VM_TRACE_PLATFORM_CLOCK CLOCK_BOOTTIME
#elif VM_TRACE_PLATFORM_DARWIN
# define VM_TRACE_PLATFORM_CLOCK CLOCK_MONOTONIC_RAW
#else
# define VM_TRACE_PLATFORM_CLOCK CLOCK_MONOTONIC
#endif

/* Ns of one of the system's clocks; 0: there is none, or the thread that it is of has ended. */
static inline uint64_t
clock_ns_of(clockid_t id)
{
    struct timespec ts;
    if (clock_gettime(id, &ts) != 0) return 0;
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* Whether the system itself takes its time from the processor's counter: it is the same on all cores. Reads a file. */
bool rb_vm_trace_platform_counter_p(void);

/* A wake-up of one thread: a semaphore with a time limit. */
struct vm_trace_wakeup {
#if VM_TRACE_PLATFORM_DARWIN
    semaphore_t semaphore; /* of Mach: it has none of POSIX without names */
#else
    sem_t semaphore;
#endif
};

/* False: the system has no such semaphores. */
bool rb_vm_trace_wakeup_init(struct vm_trace_wakeup *wakeup);

/* Async-signal-safe. */
void rb_vm_trace_wakeup_post(struct vm_trace_wakeup *wakeup);

/* Wait for a post, or until a time of CLOCK_MONOTONIC; 0: as long as it takes. True: there was one. */
bool rb_vm_trace_wakeup_wait(struct vm_trace_wakeup *wakeup, uint64_t until_ns);

/*
 * The same by semaphores that know only the clock on the wall, for the systems' files. Someone may set that clock, so
 * the wait is one of pieces of at most a second.
 */
bool rb_vm_trace_wakeup_wait_in_pieces(struct vm_trace_wakeup *wakeup, uint64_t until_ns);

/* A condition whose waits do not depend on what the clock on the wall is set to. */
void rb_vm_trace_platform_cond_init(pthread_cond_t *cond);

/* Wait for it until a time of CLOCK_MONOTONIC, as pthread_cond_timedwait(3). 0, ETIMEDOUT, or another errno. */
int rb_vm_trace_platform_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until);

/* --- native threads --------------------------------------------------------------------------------- */

/* The system's number of the current thread; 0: it has none. */
uint32_t rb_vm_trace_platform_thread_id(void);

/* Name the current thread, in at most 15 bytes. Does nothing where the system takes no names. */
void rb_vm_trace_platform_name_thread(const char *name);

/* The name of a thread of this process, with a NUL. Returns its bytes; 0: unknown. Reads a file. */
size_t rb_vm_trace_platform_thread_name(uint32_t tid, char *name_out, size_t size);

/* Whether this process has such a thread; true if the system does not tell. */
bool rb_vm_trace_platform_thread_lives_p(uint32_t tid);

/* Whether a thread has a processor or waits for one, in contrast to one that sleeps; false: unknown. Reads a file. */
bool rb_vm_trace_platform_thread_runnable_p(uint32_t tid);

/* --- sampling of threads ---------------------------------------------------------------------------- */

/* NULL, or why stacks cannot be sampled here. The functions below are called only where they can. */
const char *rb_vm_trace_platform_no_sampling(void);

/* Send a signal to a thread of this process. False: there is no such thread. */
bool rb_vm_trace_platform_signal_thread(uint32_t tid, int number);

/* CPU time of a thread of this process in ns; 0: it has ended. */
uint64_t rb_vm_trace_platform_thread_cpu_ns(uint32_t tid);

/* The current thread samples: short sleeps end on time, and it gets its own table of descriptors. False: not that. */
bool rb_vm_trace_platform_begin_sampling(void);

enum vm_trace_running {
    VM_TRACE_ON_CPU,
    VM_TRACE_OFF_CPU, /* in a system call that goes on after a signal, or that no signal interrupts */
    VM_TRACE_ASLEEP   /* or unknown for want of a descriptor: a signal might interrupt its system call */
};

/* A descriptor of the sampling thread, for what it asks of one thread again and again. All 0: none. */
struct vm_trace_thread_file {
    int fd_and_1;
    uint32_t tid;
};

/* What a thread does now. For the thread that has begun sampling with descriptors of its own. */
enum vm_trace_running rb_vm_trace_platform_thread_running(struct vm_trace_thread_file *file, uint32_t tid);
void rb_vm_trace_platform_thread_file_close(struct vm_trace_thread_file *file);

/* How long a thread has waited for a CPU since it began, up to its last one; 0: unknown. Same thread. */
uint64_t rb_vm_trace_platform_thread_delay_ns(uint32_t tid);

/* Where a signal has interrupted a thread; `context` is the handler's. Async-signal-safe. */
struct vm_trace_interrupted {
    uintptr_t pc, sp;
    uintptr_t return_address; /* 0: it is on the stack */
};
struct vm_trace_interrupted rb_vm_trace_platform_interrupted(const void *context);

/* --- other cores ------------------------------------------------------------------------------------- */

/*
 * Barriers that this thread has all threads of the process pass, so that those need none of their own. The first
 * call may take milliseconds, later ones microseconds. No memory is allocated. False: the system has no such call, or a
 * filter of system calls refuses it. Then no barrier was passed, and the caller has to do without.
 */

/* Each thread that runs passes a full memory barrier between the caller's accesses before and after. */
bool rb_vm_trace_platform_barrier(void);

/* The same, and what it runs then was fetched after this began. */
bool rb_vm_trace_platform_sync_cores(void);

/* --- memory ------------------------------------------------------------------------------------------ */

/* Address space for `bytes` of private zeros; memory comes when it is written to. NULL: none, with errno. */
void *rb_vm_trace_platform_zeros(size_t bytes);

/* Addresses without access, for a mapping to come. Near `at` if that is not NULL, or NULL. The caller unmaps them. */
void *rb_vm_trace_platform_addresses(void *at, size_t bytes);

/* Give back the memory at such addresses, and keep these. */
bool rb_vm_trace_platform_release(void *at, size_t bytes);

/*
 * Have pages of a shared mapping ready to be written to, if the system can. *large: try first to make one large page of
 * them; set to false when that never works here. NULL: do not try.
 */
void rb_vm_trace_platform_populate(void *at, size_t bytes, bool *large);

/* The name of a function in a loaded object, or NULL. The object stays loaded. */
const char *rb_vm_trace_platform_function_name(const void *function);

/* --- files ------------------------------------------------------------------------------------------- */

/* Take the lock of an open file, which a child and a mapping share. 0; EWOULDBLOCK: another has it; or errno. */
int rb_vm_trace_platform_lock(int fd);

/* Give it up, for all who share it. Where that fails it goes with the last descriptor and mapping. */
void rb_vm_trace_platform_unlock(int fd);

/* Have the disk keep space for `bytes` after `size`, without a change of the size. 0, also where it can't; or errno. */
int rb_vm_trace_platform_reserve(int fd, uint64_t size, uint64_t bytes);

/* Bytes of the file system, and how many of them this user may still write. False: unknown. */
bool rb_vm_trace_platform_disk(int fd, uint64_t *all_bytes_out, uint64_t *free_bytes_out);

/* The path of an open file, with a NUL; "": unknown. */
void rb_vm_trace_platform_path(int fd, char *path_out, size_t size);

struct stat;

/* When a file was modified. */
struct timespec rb_vm_trace_platform_modified(const struct stat *st);

/* rename(2) that replaces nothing: EEXIST. Replaces where the file system cannot do without. 0 or -1, with errno. */
int rb_vm_trace_platform_rename_new(const char *from, const char *to);

/* An empty file without a name, in memory if the system has such. The descriptor, or -1 with errno. */
int rb_vm_trace_platform_memory_file(void);

/* Have that file never become shorter, if the system can. */
void rb_vm_trace_platform_memory_file_keeps(int fd);

/* --- the process ------------------------------------------------------------------------------------- */

/* The earliest that this process can have begun, in ns of VM_TRACE_PLATFORM_CLOCK. 0: unknown. exec changes nothing. */
uint64_t rb_vm_trace_platform_process_begin_ns(void);

/*
 * The arguments of this process, or the title that it gave itself: each with a NUL, as far as they fit. Returns the
 * bytes that were written, with `count` also those that did not fit; 0: the system does not show them. Reads a file.
 */
size_t rb_vm_trace_platform_arguments(char *text_out, size_t size, bool count);

/* --- sockets ----------------------------------------------------------------------------------------- */

struct sockaddr_un;

/* A stream socket for paths that exec closes; -1 with errno. */
int rb_vm_trace_platform_socket(void);

/* Bind it to a path that only this user can connect to, before anyone can. 0, or -1 with errno. */
int rb_vm_trace_platform_bind(int fd, const struct sockaddr_un *address);

/* accept(2); exec closes the descriptor. */
int rb_vm_trace_platform_accept(int fd);

/* Whether the other end is of this user, or root, who may do all that this user may. */
bool rb_vm_trace_platform_trusted_peer_p(int fd);

#endif /* RUBY_VM_TRACE_PLATFORM_PLATFORM_H */
