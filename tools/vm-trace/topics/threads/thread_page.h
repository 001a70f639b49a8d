#ifndef THREAD_PAGE_H
#define THREAD_PAGE_H
/* thread_page.h - what `vm-trace html` shows of threads, fibers and garbage collections: a timeline for each
 * thread and fiber and one for the pauses, all of limited size.
 *
 *      page_threads_init -> records to `tracks`, waits of fibers to page_threads_fiber -> page_threads_finish -> the
 *      lists -> page_threads_free
 */
#include "topics/gc/gc_pauses.h"
#include "topics/threads/thread_tracks.h"
#include "topics/threads/timeline.h"

enum {
    PAGE_TRACKS_MAX = 4096,            /* threads with a timeline while reading */
    PAGE_TRACKS_SHOWN = 500,           /* of the others the page has sums */
    PAGE_SEGMENTS_MAX = 256 * 1024,    /* while reading, and */
    PAGE_SEGMENTS_SHOWN = 40 * 1000,   /* in the page; no timeline is made shorter than */
    PAGE_SEGMENTS_LEAST = 32,          /* this */
    PAGE_SEGMENTS_OF_TRACK_MAX = 16 * 1024,
    PAGE_BLOCKED_NAMES_MAX = 4096,     /* distinct names and classes of what blocked */
};

/* A name of a segment that is blocked. */
struct page_blocked {
    uint32_t name; /* the key: numbers of the pool */
    uint32_t class_name;
};

/* A thread or fiber that the page shows. */
struct page_track {
    uint32_t thread; /* number in `tracks` */
    const struct thread_times *times;
};

/* Those that waited longest first. */
struct page_track_list {
    struct page_track *shown;
    uint32_t count;
    uint32_t left_out;
    uint64_t left_out_ns[TIMELINE_STATES];
};

struct page_threads {
    struct thread_tracks tracks;
    struct row_table fibers;    /* of struct thread_times: waiting is ready, blocked is waiting for an event */
    struct timeline *timelines; /* of threads and fibers, by their number */
    uint32_t timeline_capacity;
    struct timeline pauses; /* of all processes; names are rows of gc.reasons */
    struct gc_pauses gc;
    struct row_table blocked; /* of struct page_blocked */
    uint64_t segments;        /* of all timelines */
    uint32_t segments_of_track_max;
    struct page_track_list of_threads, of_fibers; /* once finished */
    /* The caller's, for all durations: */
    void *context;
    void (*pair)(void *context, const struct duration_edge *begin, const struct duration_edge *end);
    /* For all pieces of threads: */
    void (*piece)(void *context, const struct track_piece *piece);
};

/* `threads` must stay where it is. */
void page_threads_init(struct page_threads *threads, struct pool *pool, void *context,
                       void (*pair)(void *context, const struct duration_edge *begin, const struct duration_edge *end),
                       void (*piece)(void *context, const struct track_piece *piece));
void page_threads_free(struct page_threads *threads);
/* Adds an event of the stream `fibers`; `number` is that of its track. Waits of a thread's own fiber are ignored. */
void page_threads_fiber(struct page_threads *threads, uint32_t number, const struct fxt_event *event);
/* After the last file. */
void page_threads_finish(struct page_threads *threads);

#endif
