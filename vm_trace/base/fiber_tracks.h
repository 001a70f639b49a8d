#ifndef RUBY_VM_TRACE_BASE_FIBER_TRACKS_H
#define RUBY_VM_TRACE_BASE_FIBER_TRACKS_H 1
/*
 * Tracks of fibers. Durations of one fiber do not nest with those of another, so each fiber that
 * records something has a track beside its thread's. When it has ended, the next fiber of the same
 * thread goes on in that track: a thread has as many as it had fibers at once, not as many as it
 * ever had.
 *
 * A track is a number from 1; 0 is none. Any thread.
 */
#include <pthread.h>
#include <stdint.h>

/*
 * A track for a fiber of the thread whose word *of_thread is: zero at first, used by nobody else.
 * It stays until the track is freed. 0: no memory.
 */
uint32_t rb_vm_trace_fiber_track_new(uint32_t *of_thread);

/* The fiber has ended. Its thread may be gone. */
void rb_vm_trace_fiber_track_free(uint32_t track);

/* Which one of its thread's tracks it is, from 1. */
uint32_t rb_vm_trace_fiber_track_number(uint32_t track);

/* Held by them for a moment; around a fork as well. No other lock is taken while it is held. */
extern pthread_mutex_t rb_vm_trace_fiber_tracks_lock;

#endif /* RUBY_VM_TRACE_BASE_FIBER_TRACKS_H */
