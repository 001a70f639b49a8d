#ifndef RUBY_VM_TRACE_STORE_PREALLOCATOR_H
#define RUBY_VM_TRACE_STORE_PREALLOCATOR_H 1
/*
 * A thread that does a piece of work before someone has to wait for it. Started by the first
 * request; where the system refuses it, nothing is done ahead. It takes no signals but those of a
 * fault.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct vm_trace_preallocator {
    pthread_t thread;
    pthread_cond_t wake;
    pthread_mutex_t *lock;         /* the asker's: guards all here. `work` is called with it held, and may let it go meanwhile */
    void (*work)(void *argument);
    void *argument;
    bool running, refused, wanted, stop;
    uint32_t native_id;            /* of the thread, once it runs; else 0 */
};

/* Have work(argument) done soon. lock is held by the caller, and is the same with every call. */
void rb_vm_trace_preallocator_request(struct vm_trace_preallocator *ahead, pthread_mutex_t *lock, void (*work)(void *),
                                      void *argument);

/* End the thread and wait for it. lock is held by the caller, and is let go meanwhile. */
void rb_vm_trace_preallocator_stop(struct vm_trace_preallocator *ahead);

/*
 * Whether the thread runs, or would if it had a processor: then what it does is not held up by a
 * disk. It asks the system, which takes some 20 us. lock held.
 */
bool rb_vm_trace_preallocator_runnable_p(const struct vm_trace_preallocator *ahead);

/* In the child of a fork, which has no such thread. */
void rb_vm_trace_preallocator_after_fork(struct vm_trace_preallocator *ahead);

#endif /* RUBY_VM_TRACE_STORE_PREALLOCATOR_H */
