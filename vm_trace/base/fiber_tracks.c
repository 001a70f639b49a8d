/*
 * Tracks of fibers. See fiber_tracks.h.
 *
 * A thread has an entry of its own, which counts its tracks and is the head of the list of free ones.
 * It is never freed, because the last fibers of a thread cannot tell that the thread has ended. When
 * there are MOST_ENTRIES, 12 MiB of them, fibers of further threads get none.
 */
#include "vm_trace/base/fiber_tracks.h"

#include <stddef.h>
#include <stdlib.h>

struct entry {
    uint32_t thread;    /* entry of its thread */
    uint32_t number;    /* of a thread: how many tracks it has */
    uint32_t next_free; /* 0: none */
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

static uint32_t
take(uint32_t *of_thread)
{
    if (!*of_thread && !(*of_thread = add((struct entry){ 0 }))) return 0;
    uint32_t thread = *of_thread, track = entries[thread].next_free;
    if (track) {
        entries[thread].next_free = entries[track].next_free;
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
