#ifndef RUBY_VM_TRACE_BASE_FIBER_TRACKS_H
#define RUBY_VM_TRACE_BASE_FIBER_TRACKS_H 1
/*
 * Tracks of fibers. Durations of one fiber do not nest with those of another, so each fiber that
 * records something has a track beside its thread's. When it has ended, the next fiber of the same
 * thread reuses that track. So the number of tracks is that of fibers that were alive at once.
 *
 * A track is a number from 1; 0 is none. Any thread.
 */
#include <pthread.h>
#include <stdint.h>

/*
 * Returns a track for a fiber of a thread; 0: no memory. *of_thread is a word of that thread: zero at
 * first, used only here. The fiber keeps the track until it is freed.
 */
uint32_t rb_vm_trace_fiber_track_new(uint32_t *of_thread);

/* The same for the thread's own fiber, which has no number. The thread keeps it for good. */
uint32_t rb_vm_trace_fiber_track_of_thread(uint32_t *of_thread);

/* The fiber has ended. Its thread may be gone. */
void rb_vm_trace_fiber_track_free(uint32_t track);

/* The number of a track among those of its thread, from 1. */
uint32_t rb_vm_trace_fiber_track_number(uint32_t track);

/* What the stream `fibers` keeps of the fiber of a track: zeros at first. Nanoseconds of a ractor's clock. */
struct vm_trace_fiber_times {
    uint64_t switched_ns; /* when its thread switched to it, or away from it; 0: never */
    uint64_t before_ns;   /* the switch before that one */
    uint64_t ready_ns;    /* when it was unblocked since; 0: it was not */
};

/* The thread switches to the fiber, or away from it. Returns what was known until then. */
struct vm_trace_fiber_times rb_vm_trace_fiber_switch(uint32_t track, uint64_t now_ns);
void rb_vm_trace_fiber_unblocked(uint32_t track, uint64_t now_ns);

/* The functions above hold it for a moment, a fork while it lasts. No other lock is taken meanwhile. */
extern pthread_mutex_t rb_vm_trace_fiber_tracks_lock;

#endif /* RUBY_VM_TRACE_BASE_FIBER_TRACKS_H */
