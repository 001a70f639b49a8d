/*
 * Work done ahead, by a thread. See preallocator.h.
 */
#include "vm_trace/store/preallocator.h"
#include "vm_trace/base/native_thread.h"

static void *
run(void *argument)
{
    struct vm_trace_preallocator *ahead = argument;
    native_thread_name();
    pthread_mutex_lock(ahead->lock);
    ahead->native_id = rb_vm_trace_platform_thread_id();
    while (!ahead->stop) {
        if (!ahead->wanted) {
            pthread_cond_wait(&ahead->wake, ahead->lock);
            continue;
        }
        ahead->wanted = false;
        ahead->work(ahead->argument);
    }
    pthread_mutex_unlock(ahead->lock);
    return NULL;
}

static bool
start(struct vm_trace_preallocator *ahead)
{
    if (pthread_cond_init(&ahead->wake, NULL) != 0) return false;
    ahead->wanted = ahead->stop = false;
    ahead->native_id = 0;
    return native_thread_start(&ahead->thread, run, ahead) == 0;
}

void
rb_vm_trace_preallocator_request(struct vm_trace_preallocator *ahead, pthread_mutex_t *lock, void (*work)(void *),
                                 void *argument)
{
    if (!ahead->running && !ahead->refused) {
        ahead->lock = lock;
        ahead->work = work;
        ahead->argument = argument;
        ahead->running = start(ahead);
        ahead->refused = !ahead->running;
    }
    if (!ahead->running) return;
    ahead->wanted = true;
    pthread_cond_signal(&ahead->wake);
}

void
rb_vm_trace_preallocator_stop(struct vm_trace_preallocator *ahead)
{
    if (!ahead->running) return;
    ahead->stop = true;
    ahead->running = false; /* nobody else may wait for it, too */
    pthread_cond_signal(&ahead->wake);
    pthread_mutex_unlock(ahead->lock);
    pthread_join(ahead->thread, NULL);
    pthread_mutex_lock(ahead->lock);
    pthread_cond_destroy(&ahead->wake);
}

bool
rb_vm_trace_preallocator_runnable_p(const struct vm_trace_preallocator *ahead)
{
    if (!ahead->native_id) return ahead->running; /* it has just been made, and has not had its turn */
    return rb_vm_trace_platform_thread_runnable_p(ahead->native_id);
}

void
rb_vm_trace_preallocator_after_fork(struct vm_trace_preallocator *ahead)
{
    ahead->running = ahead->refused = false;
}
