#ifndef RUBY_VM_TRACE_BASE_NATIVE_THREAD_H
#define RUBY_VM_TRACE_BASE_NATIVE_THREAD_H 1
/* A thread of the tracer's own, beside those of the program. */

#include "vm_trace/platform/platform.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* What the system calls such threads. */
#define VM_TRACE_NATIVE_NAME "vm_trace"

/* Give the current thread that name. The first thing that one of ours does. */
static inline void
native_thread_name(void)
{
    rb_vm_trace_platform_name_thread(VM_TRACE_NATIVE_NAME);
}

/*
 * Start a thread that takes no signals but those of a fault, which it causes itself: the others are
 * for the program's threads. 0, or an errno. The caller joins or detaches it.
 */
static inline int
native_thread_start(pthread_t *thread, void *(*body)(void *), void *argument)
{
    static const int faults[] = { SIGBUS, SIGSEGV, SIGILL, SIGFPE };
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) sigdelset(&all, faults[i]);
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error) return error;
    pthread_attr_setstacksize(&attributes, (size_t)256 << 10); /* refused: then it is the default */
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited */
    error = pthread_create(thread, &attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

#endif /* RUBY_VM_TRACE_BASE_NATIVE_THREAD_H */
