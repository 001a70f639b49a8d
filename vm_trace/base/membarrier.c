/*
 * membarrier(2), called with its numbers: the headers of some systems are older than their kernel.
 */
#include "vm_trace/base/membarrier.h"

#include <errno.h>
#ifdef __linux__
# include <sys/syscall.h>
# include <unistd.h>
#endif

#ifdef SYS_membarrier
enum { /* <linux/membarrier.h> */
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

bool
rb_vm_trace_membarrier(void)
{
    return pass(PRIVATE_EXPEDITED, REGISTER_PRIVATE_EXPEDITED);
}

bool
rb_vm_trace_membarrier_sync_core(void)
{
    return pass(PRIVATE_EXPEDITED_SYNC_CORE, REGISTER_PRIVATE_EXPEDITED_SYNC_CORE);
}
#else
bool
rb_vm_trace_membarrier(void)
{
    return false;
}

bool
rb_vm_trace_membarrier_sync_core(void)
{
    return false;
}
#endif
