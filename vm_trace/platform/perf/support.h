#ifndef RUBY_VM_TRACE_PLATFORM_PERF_SUPPORT_H
#define RUBY_VM_TRACE_PLATFORM_PERF_SUPPORT_H 1
/* Whether this is built with perf_event_open(2), as Linux 5.13 has it (attr.inherit_thread). A C library may come without
 * the kernel's headers. */

#include "vm_trace/platform/platform.h"

#if VM_TRACE_PLATFORM_LINUX
# ifndef __has_include
#  include <linux/perf_event.h>
# elif __has_include(<linux/perf_event.h>)
#  include <linux/perf_event.h>
# endif
# include <sys/syscall.h>
#endif
#if defined(PERF_ATTR_SIZE_VER7) && defined(SYS_perf_event_open)
# define PERF_SUPPORTED 1
#else
# define PERF_SUPPORTED 0
#endif

#endif /* RUBY_VM_TRACE_PLATFORM_PERF_SUPPORT_H */
