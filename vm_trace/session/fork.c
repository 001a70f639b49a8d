/*
 * A traced process forks: the child gets a file of its own. See fork.h.
 */
#include "vm_trace/session/fork.h"
#include "vm_trace/session/snapshot.h"
#include "vm_trace/base/fiber_tracks.h"
#include "vm_trace/base/messages.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define capture rb_vm_trace_capture
#define session rb_vm_trace_session

/*
 * A fork is under way, on this thread, around which Ruby calls the hooks: the C library's own
 * handlers are not needed.
 */
static __thread bool hooked;

static pthread_mutex_t *const locks[] = { &rb_vm_trace_capture.lock, &rb_vm_trace_session.open_lock,
                                          &rb_vm_trace_capture.shared.lock, &rb_vm_trace_capture.file.lock,
                                          &rb_vm_trace_deaths_lock, &rb_vm_trace_fiber_tracks_lock };
enum { LOCKS = sizeof(locks) / sizeof(locks[0]) };

static void
unlock_for_fork(int count)
{
    while (count > 0) pthread_mutex_unlock(locks[--count]);
}

void
rb_vm_trace_before_fork(void)
{
    hooked = true;
    for (int i = 0; i < LOCKS; i++) pthread_mutex_lock(locks[i]);
    rb_vm_trace_strings_before_fork();
}

/* In the child: what is mapped and open is the parent's. */
static void
begin_child(void)
{
    capture.pid = (uint32_t)getpid();
    rb_vm_trace_host_forked();
    capture.begin_ns = rb_vm_trace_clock_system_ns();
    session.jit_came_late = false; /* the child's settings have it */
    if (session.memory.bytes) rb_vm_trace_recorder_begin_child();
    capture.dead = (struct vm_trace_totals){ 0 };
    capture.dead_ns = 0;
    rb_vm_trace_ractor_begin_overflow(); /* which begins an epoch */
    for (struct rb_vm_trace_ractor *ractor = capture.ractors; ractor; ractor = ractor->next) {
        rb_vm_trace_writer_drop(&ractor->writer);
        /* Its owner may have been in the middle of something: that thread is no more. */
        rb_vm_trace_ractor_begin(ractor);
    }
    rb_vm_trace_shared_drop(&capture.shared);
    capture.shared.writer.pid = capture.pid;
    rb_vm_trace_chunk_file_after_fork(&capture.file);
    __atomic_store_n(&capture.state, VM_TRACE_PENDING, __ATOMIC_RELEASE);
}

/* All locks are held, and let go. True: this is a traced child. */
static bool
end_fork(bool in_child)
{
    bool child = in_child && trace_on() && (uint32_t)getpid() != capture.pid;
    rb_vm_trace_strings_after_fork(); /* first: a child gives texts back */
    if (child) begin_child();
    if (__atomic_load_n(&capture.state, __ATOMIC_RELAXED) == VM_TRACE_PENDING) {
        EACH_STREAM(stream, after_fork) stream->after_fork();
    }
    unlock_for_fork(LOCKS);
    return child;
}

/* Streams that need threads in the child: it has a file for them at once. */
static void
begin_streams(void)
{
    struct rb_execution_context_struct *ec;
    struct rb_vm_trace_ractor *ractor = NULL;
    EACH_STREAM(stream, starts_in_children) {
        if (!stream->rate) continue;
        if (!ractor) ractor = rb_vm_trace_ractor_current(&ec);
        if (!ractor) return;
        if (capture.state == VM_TRACE_PENDING) rb_vm_trace_ractor_next_chunk(ractor, ec);
        if (capture.state != VM_TRACE_ON) return;
        const char *why = stream->start(capture.by_flags);
        if (why) rb_vm_trace_warn("no %s are traced in process %lu: %s", stream->name, (unsigned long)capture.pid, why);
    }
}

void
rb_vm_trace_after_fork(long pid)
{
    /* daemon(3) returns 0 after a failure, too: only the pid shows whether this is the child. */
    bool child = end_fork(pid == 0);
    hooked = false;
    if (child && session.memory.bytes) rb_vm_trace_recorder_threads();
    if (child) begin_streams();
}

void
rb_vm_trace_before_exec(void)
{
    if (!trace_on()) return;
    EACH_STREAM(stream, flush) stream->flush();
}

/*
 * Extensions may call fork(2) themselves. Without the hooks the child would write into the parent's
 * chunks. A handler of signals may fork, too, on a thread that is in the tracer and holds a lock:
 * so a lock is not waited for for ever, and such a child is not traced.
 */
static __thread bool locked_by_handler;

static bool
lock_in_time(pthread_mutex_t *lock)
{
    enum { MOST_TRIES = 1000 };
    for (int i = 0; i < MOST_TRIES; i++) {
        if (pthread_mutex_trylock(lock) == 0) return true;
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    }
    return false;
}

static void
prepare_fork(void)
{
    locked_by_handler = false;
    if (hooked || !trace_on()) return;
    for (int i = 0; i < LOCKS; i++) {
        if (lock_in_time(locks[i])) continue;
        unlock_for_fork(i);
        return;
    }
    rb_vm_trace_strings_before_fork();
    locked_by_handler = true;
}

static void
fork_in_parent(void)
{
    if (locked_by_handler) end_fork(false);
    locked_by_handler = false;
}

static void
fork_in_child(void)
{
    /*
     * No thread is begun here: a child that only execs needs none, and a signal that saves is for
     * Ruby's own children.
     */
    if (locked_by_handler) end_fork(true);
    else if (!hooked) __atomic_store_n(&capture.state, VM_TRACE_OFF, __ATOMIC_RELEASE);
    locked_by_handler = false;
}

void
rb_vm_trace_handle_forks(void)
{
    static bool handled;
    if (!handled) handled = pthread_atfork(prepare_fork, fork_in_parent, fork_in_child) == 0;
}
