/*
 * Names of system calls and errors. See names.h. The build lists them (system_names.sh).
 */
#include "vm_trace/platform/perf/names.h"
#include "vm_trace/platform/platform.h"

#include <errno.h>
#include <stddef.h>
#if VM_TRACE_PLATFORM_LINUX
# include <sys/syscall.h>
#endif

struct name {
    int64_t number;
    const char *text;
};

#define ERROR_NUMBER(name)
static const struct name calls[] = {
#define SYSTEM_CALL(name) { __NR_##name, #name },
#if VM_TRACE_PLATFORM_LINUX
# include "vm_trace/platform/perf/system_names.inc"
#endif
#undef SYSTEM_CALL
    { -1, NULL }
};
#undef ERROR_NUMBER

/* What a system call that a signal interrupts returns to the kernel: include/linux/errno.h there. */
enum { KERNEL_ERESTARTSYS = 512, KERNEL_ERESTARTNOINTR, KERNEL_ERESTARTNOHAND, KERNEL_ENOIOCTLCMD, KERNEL_ERESTART_RESTARTBLOCK };

#define SYSTEM_CALL(name)
static const struct name errors[] = {
#define ERROR_NUMBER(name) { name, #name },
#if VM_TRACE_PLATFORM_LINUX
# include "vm_trace/platform/perf/system_names.inc"
#endif
#undef ERROR_NUMBER
    { KERNEL_ERESTARTSYS, "ERESTARTSYS" },
    { KERNEL_ERESTARTNOINTR, "ERESTARTNOINTR" },
    { KERNEL_ERESTARTNOHAND, "ERESTARTNOHAND" },
    { KERNEL_ERESTART_RESTARTBLOCK, "ERESTART_RESTARTBLOCK" },
    { -1, NULL }
};
#undef SYSTEM_CALL

static const char *
name_of(const struct name *names, int64_t number)
{
    while (names->text && names->number != number) names++;
    return names->text;
}

const char *
rb_vm_trace_system_call_name(int64_t number)
{
    return name_of(calls, number);
}

const char *
rb_vm_trace_error_name(int64_t error)
{
    return name_of(errors, error);
}
