#ifndef RUBY_VM_TRACE_PLATFORM_PERF_SUPPORT_H
#define RUBY_VM_TRACE_PLATFORM_PERF_SUPPORT_H 1
/* Whether this is built with perf_event_open(2), as Linux 5.13 has it (attr.inherit_thread). */

#include "vm_trace/platform/platform.h"

#if VM_TRACE_PLATFORM_LINUX
# include <linux/perf_event.h>
# include <sys/syscall.h>
#endif
#if defined(PERF_ATTR_SIZE_VER7) && defined(SYS_perf_event_open)
# define PERF_SUPPORTED 1
#else
# define PERF_SUPPORTED 0
#endif

#endif /* RUBY_VM_TRACE_PLATFORM_PERF_SUPPORT_H */
