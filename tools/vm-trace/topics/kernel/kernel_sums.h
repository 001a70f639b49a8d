#ifndef KERNEL_SUMS_H
#define KERNEL_SUMS_H
/* kernel_sums.h - all sums of the streams `syscalls` and `sched`, for the report and the page.
 *
 *      kernel_sums_init -> kernel_sums_trace, _call, _syscall, _cpu and _held for each event and each time
 *      with the GVL -> kernel_sums_file_end after each file -> the sums -> kernel_sums_free
 *
 * Processes and threads have the caller's numbers.
 */
#include "topics/kernel/cpu_times.h"
#include "topics/kernel/syscall_callers.h"
#include "topics/kernel/syscalls.h"

enum { KERNEL_PROCESSES_MAX = 64 * 1024 };

struct kernel_process {
    uint32_t process; /* the key */
    bool has_callers; /* both calls and system calls are recorded */
    bool has_cpus;    /* both times with the GVL and times on CPUs are recorded */
    int64_t seen_ns;  /* system calls are known up to this time */
};

struct kernel_sums {
    struct row_table processes; /* of struct kernel_process */
    struct syscalls syscalls;
    struct syscall_callers callers;
    struct cpu_times cpus;
    uint64_t syscalls_left_out, slices_left_out; /* by the summaries: too short to be recorded */
};

void kernel_sums_init(struct kernel_sums *sums);
void kernel_sums_free(struct kernel_sums *sums);
/* Only what lies in the window counts. */
void kernel_sums_set_window(struct kernel_sums *sums, struct interval window);
/* An instant of the category trace. */
void kernel_sums_trace(struct kernel_sums *sums, uint32_t process, const struct fxt_event *event);
/* Events of the categories call, syscall and sched. */
void kernel_sums_call(struct kernel_sums *sums, struct pool *pool, uint32_t process, uint32_t thread,
                      const struct fxt_event *event);
/* `callers_only`: it counts for its caller, not for its name. */
void kernel_sums_syscall(struct kernel_sums *sums, struct pool *pool, uint32_t process, uint32_t thread,
                         bool callers_only, const struct fxt_event *event);
void kernel_sums_cpu(struct kernel_sums *sums, struct pool *pool, uint32_t process, uint32_t thread,
                     const struct fxt_event *event);
/* The thread with this tid held the GVL. */
void kernel_sums_held(struct kernel_sums *sums, uint32_t process, uint32_t tid, struct interval held);
void kernel_sums_file_end(struct kernel_sums *sums);

#endif
