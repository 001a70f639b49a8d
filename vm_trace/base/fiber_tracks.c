/*
 * Tracks of fibers. See fiber_tracks.h.
 *
 * A thread has an entry of its own, which counts its tracks and is the head of the list of free ones.
 * It is never freed, because the last fibers of a thread cannot tell that the thread has ended. When
 * there are MOST_ENTRIES, 40 MiB of them, fibers of further threads get none.
 */
#include "vm_trace/base/fiber_tracks.h"

#include <stddef.h>
#include <stdlib.h>

struct entry {
    uint32_t thread;    /* entry of its thread */
    uint32_t number;    /* of a thread: how many tracks it has */
    uint32_t next_free; /* 0: none */
    struct vm_trace_fiber_times times;
};

pthread_mutex_t rb_vm_trace_fiber_tracks_lock = PTHREAD_MUTEX_INITIALIZER;

/* Index 0 is not used. */
static struct entry *entries;
static uint32_t count, capacity;

enum { MOST_ENTRIES = 1 << 20 };

/* Index of a fresh entry; 0: there is no room. */
static uint32_t
add(struct entry entry)
{
    if (count == capacity) {
        uint32_t larger = capacity ? 2 * capacity : 64;
        struct entry *moved = larger <= MOST_ENTRIES ? realloc(entries, larger * sizeof(*moved)) : NULL;
        if (!moved) return 0;
        if (!count) moved[count++] = (struct entry){ 0 };
        entries = moved;
        capacity = larger;
    }
    entries[count] = entry;
    return count++;
}

/* The entry of a thread. */
static uint32_t
head_of(uint32_t *of_thread)
{
    if (!*of_thread) *of_thread = add((struct entry){ 0 });
    return *of_thread;
}

static uint32_t
take(uint32_t *of_thread)
{
    uint32_t thread = head_of(of_thread), track = thread ? entries[thread].next_free : 0;
    if (!thread) return 0;
    if (track) {
        entries[thread].next_free = entries[track].next_free;
        entries[track].times = (struct vm_trace_fiber_times){ 0 };
        return track;
    }
    track = add((struct entry){ .thread = thread, .number = entries[thread].number + 1 });
    if (track) entries[thread].number++;
    return track;
}

uint32_t
rb_vm_trace_fiber_track_new(uint32_t *of_thread)
{
    pthread_mutex_lock(&rb_vm_trace_fiber_tracks_lock);
    uint32_t track = take(of_thread);
    pthread_mutex_unlock(&rb_vm_trace_fiber_tracks_lock);
    return track;
}

uint32_t
rb_vm_trace_fiber_track_of_thread(uint32_t *of_thread)
{
    pthread_mutex_lock(&rb_vm_trace_fiber_tracks_lock);
    uint32_t track = head_of(of_thread);
    pthread_mutex_unlock(&rb_vm_trace_fiber_tracks_lock);
    return track;
}

struct vm_trace_fiber_times
rb_vm_trace_fiber_switch(uint32_t track, uint64_t now_ns)
{
    pthread_mutex_lock(&rb_vm_trace_fiber_tracks_lock);
    struct vm_trace_fiber_times times = entries[track].times;
    entries[track].times = (struct vm_trace_fiber_times){ .switched_ns = now_ns, .before_ns = times.switched_ns };
    pthread_mutex_unlock(&rb_vm_trace_fiber_tracks_lock);
    return times;
}

void
rb_vm_trace_fiber_unblocked(uint32_t track, uint64_t now_ns)
{
    pthread_mutex_lock(&rb_vm_trace_fiber_tracks_lock);
    entries[track].times.ready_ns = now_ns;
    pthread_mutex_unlock(&rb_vm_trace_fiber_tracks_lock);
}

void
rb_vm_trace_fiber_track_free(uint32_t track)
{
    pthread_mutex_lock(&rb_vm_trace_fiber_tracks_lock);
    struct entry *head = &entries[entries[track].thread];
    entries[track].next_free = head->next_free;
    head->next_free = track;
    pthread_mutex_unlock(&rb_vm_trace_fiber_tracks_lock);
}

uint32_t
rb_vm_trace_fiber_track_number(uint32_t track)
{
    pthread_mutex_lock(&rb_vm_trace_fiber_tracks_lock);
    uint32_t number = entries[track].number;
    pthread_mutex_unlock(&rb_vm_trace_fiber_tracks_lock);
    return number;
}
