#ifndef THREAD_TRACKS_H
#define THREAD_TRACKS_H
/* thread_tracks.h - what each Ruby thread did over time, piece by piece: for the page and for other
 * viewers.
 *
 *      thread_tracks_init -> thread_tracks_file_begin, then thread_tracks_event, _sched, _object and
 *      _chunk for each record, thread_tracks_file_end -> the rows -> thread_tracks_free
 *
 * The states are those of thread_states.h, which `vm-trace report` sums up. A piece is passed when it
 * has ended: those of one thread in order of time, except that the older part of a file that keeps
 * its newest events comes last. Threads have numbers; they are the same in pieces and pairs.
 */
#include "analysis/duration_pairs.h"
#include "base/row_table.h"
#include "fxt/reader.h"

enum { TRACK_THREADS_MAX = 256 * 1024, TRACK_PROCESSES_MAX = 64 * 1024, NO_TRACK = UINT32_MAX };

struct track_process {
    uint32_t recording; /* the key */
    uint32_t pid;
    uint32_t first_file;   /* number of the file that it begins in */
    uint32_t host;         /* its name; STRING_NONE: not recorded */
    int64_t last_ns;       /* of all its events and scheduling records */
};

struct track_thread {
    uint32_t process; /* the key */
    uint32_t tid;
    uint32_t name;       /* STRING_NONE: unnamed */
    uint32_t cpu;        /* number of its ractor's row in states.cpus */
    bool has_states;
    bool blocks;         /* a duration of category `blocked` began in its current state: */
    uint32_t blocked_in; /* its name, */
    uint32_t class_name;
    int64_t blocked_ns;  /* and time */
    int64_t seen_ns;     /* the last time of its events, without those that other threads write of it */
};

struct track_piece {
    uint32_t thread;
    enum thread_state state; /* THREAD_RUNNING to THREAD_BLOCKED */
    int64_t from_ns, to_ns;
    uint64_t gc_ns;          /* of it in garbage collections, of unknown moments */
    /* THREAD_BLOCKED: */
    uint32_t name;           /* what it blocked in, from name_ns on; STRING_NONE: not recorded */
    uint32_t class_name;
    int64_t name_ns;
    uint32_t waker;          /* the thread that woke it, or NO_TRACK */
};

/* Functions may be NULL. */
struct thread_tracks_visitor {
    void *context;
    void (*piece)(void *context, const struct track_piece *piece);
    /* As in duration_pairs.h, for all durations; `row` is the thread. Single records only of the
     * categories `gc` and `blocked`. */
    void (*pair)(void *context, const struct duration_edge *begin, const struct duration_edge *end);
};

struct thread_tracks {
    struct thread_tracks_visitor visitor;
    struct pool *pool;
    struct row_table processes; /* of struct track_process */
    struct row_table threads;   /* of struct track_thread; with too many, the last one collects the rest */
    struct thread_states states;
    struct duration_pairs *pairs; /* of the current file */
    uint32_t file;
};

void thread_tracks_init(struct thread_tracks *tracks, struct pool *pool, const struct thread_tracks_visitor *visitor);
void thread_tracks_free(struct thread_tracks *tracks);
void thread_tracks_file_begin(struct thread_tracks *tracks);
/* Passes what is left, and ends all states: the file ends, or reading stopped in it. */
void thread_tracks_file_end(struct thread_tracks *tracks, bool stopped);
/* Return the number of a process, of a thread. */
uint32_t thread_tracks_process(struct thread_tracks *tracks, uint32_t recording, uint32_t pid);
uint32_t thread_tracks_of(struct thread_tracks *tracks, uint32_t recording, uint32_t pid, uint32_t tid);
/* Returns the number of the thread. */
uint32_t thread_tracks_event(struct thread_tracks *tracks, const struct fxt_event *event);
/* Returns whether the record says anything of a thread. */
bool thread_tracks_sched(struct thread_tracks *tracks, const struct fxt_sched *sched);
void thread_tracks_object(struct thread_tracks *tracks, const struct fxt_object *object);
void thread_tracks_chunk(struct thread_tracks *tracks, uint64_t offset);

static inline struct track_thread *
track_thread(const struct thread_tracks *tracks, uint32_t number)
{
    return row_table_at(&tracks->threads, number);
}

static inline struct track_process *
track_process(const struct thread_tracks *tracks, uint32_t number)
{
    return row_table_at(&tracks->processes, number);
}

#endif
