#ifndef THREAD_STATES_H
#define THREAD_STATES_H
/* thread_states.h - where each Ruby thread's time went, and who held the GVL while others waited.
 *
 *      thread_states_init -> for each file, from duration_pairs.h: thread_states_sched and _gc in order of time,
 *      thread_states_file_end -> the rows -> thread_states_free
 *
 * A state machine for each thread over the records of the stream `threads`. It keeps no record, so
 * memory grows with the number of threads and ractors. A thread's life begins at its first record;
 * one whose first record is a switch out ran before, since the GVL was last free or since its
 * ractor's first record.
 *
 * Times of a thread come from its own records alone, which are in order in the file. Who held the
 * GVL comes from the order of all records of a ractor. A wake-up that comes later than the window of
 * duration_pairs.h counts there only from the last record on, see unattributed_ns. A switch that is
 * older than the thread's last one does not count, see too_late.
 */
#include "analysis/duration_edge.h"
#include "base/interval.h"
#include "base/row_list.h"
#include "base/row_table.h"
#include "fxt/reader.h"

enum { THREAD_STATES_THREADS_MAX = 256 * 1024, THREAD_STATES_CPUS_MAX = 64 * 1024 };

enum thread_state {
    THREAD_UNKNOWN, /* before its first record */
    THREAD_RUNNING,
    THREAD_IN_GC,   /* runs, and collects garbage; only in sums */
    THREAD_WAITING, /* for the GVL */
    THREAD_BLOCKED,
    THREAD_DEAD,
    THREAD_STATE_COUNT
};

struct thread_times {
    uint32_t row; /* the key: the caller's number of the thread */
    uint32_t process;
    uint32_t cpu;    /* number of the row of its ractor */
    uint32_t thread; /* as duration_pairs.h numbers it in this file */
    enum thread_state state;
    bool current; /* the current file has records of it */
    bool in_gc;
    bool out_blocked;   /* how it last gave up the GVL */
    int64_t since_ns;   /* what is before is in `ns` */
    int64_t part_ns;    /* where its states begin in this part of the file; INT64_MAX: it has none */
    int64_t newer_ns;   /* the same of the newer part, if this is the older one */
    int64_t latest_ns;  /* the latest end of a state in this file */
    int64_t counted_ns; /* and in the files before: a piece of a spool ends a little after the next one begins */
    int64_t out_ns;     /* it last gave up the GVL; INT64_MAX: never */
    int64_t woken_ns;   /* and was woken; INT64_MIN: was not */
    int64_t in_ns;      /* it last got the GVL */
    uint32_t waker;         /* its edge's, while a wake-up ends a piece; else UINT32_MAX */
    uint64_t unknown_gc_ns; /* in garbage collections, before its first record */

    uint64_t ns[THREAD_STATE_COUNT]; /* sums, within the window */
    uint64_t runs; /* that lie in the window, at least in part */
    uint64_t longest_wait_ns;
    /* As holder of the GVL, while others waited: */
    uint64_t held_ns, held_gc_ns; /* its own time; of it in garbage collection */
    uint64_t others_ns;           /* that others waited meanwhile, summed over them */
    uint64_t longest_hold_ns;
    int64_t longest_hold_at_ns; /* when others began to wait in it */
    uint32_t longest_hold_marker;
};

/* A ractor: one GVL. */
struct thread_cpu {
    uint32_t process; /* the key */
    uint32_t number;
    bool begun;       /* a record was seen */
    uint32_t holder;  /* number of a row of threads, or NO_HOLDER */
    uint32_t waiting; /* threads */
    int64_t last_ns, free_ns; /* of the last record; since when no thread is known to have held it */
    int64_t part_ns, newer_ns; /* as of a thread */
    uint64_t hold_ns;         /* of the current hold, while others waited */
    int64_t hold_at_ns;
    uint32_t hold_marker;
};
enum { NO_HOLDER = UINT32_MAX };
/* The recorder gives this one to all ractors for which there is no other: who holds which GVL of
 * these is not known. */
enum { THREAD_CPU_SHARED = 255 };

/* What cannot be. */
enum thread_fault {
    THREAD_FAULT_TWO_RUN,       /* another thread of the ractor runs */
    THREAD_FAULT_RUNS_TWICE,
    THREAD_FAULT_DOES_NOT_RUN,  /* and gives up the GVL */
    THREAD_FAULT_NOT_BLOCKED,   /* and is in a `blocked` duration */
    THREAD_FAULT_NEVER_BLOCKED, /* likewise; no record says what it did before */
};

struct thread_states_visitor {
    void *context;
    /* The time of a process's last record. */
    int64_t (*last_ns)(void *context, uint32_t process);
    /* The time of the last record of a thread, in order with those of its states. Asked where reading stopped. */
    int64_t (*seen_ns)(void *context, uint32_t thread);
    /* A state of a thread has ended, or a part of it: of one thread in order of time, without holes.
     * gc_ns: of it in garbage collections, of unknown moments. NULL: ignore them. */
    void (*piece)(void *context, const struct thread_times *thread, enum thread_state state, int64_t from_ns,
                  int64_t to_ns, uint64_t gc_ns);
    /* For `vm-trace check`; NULL: ignore them. `row`: the thread, `other`: the one that runs. */
    void (*fault)(void *context, uint64_t offset, enum thread_fault fault, uint32_t row, uint32_t other, uint32_t cpu);
};

struct duration_pairs;

struct older_part {
    uint32_t process; /* the key */
    int64_t end_ns;   /* where the newer part begins */
};

struct thread_states {
    struct thread_states_visitor visitor;
    /* Set by duration_pairs_new: the name of the thread's innermost open marker, or STRING_NONE. */
    uint32_t (*marker)(const struct duration_pairs *pairs, uint32_t thread);
    const struct duration_pairs *pairs;
    struct row_table threads; /* of struct thread_times */
    struct row_table cpus;    /* of struct thread_cpu */
    struct row_list current_threads, current_cpus; /* rows that the current file has */
    struct row_table older;   /* of struct older_part: processes whose newer part was read */
    bool stopped;             /* by the caller: the current file was not read to its end */
    int64_t from_ns, to_ns;   /* the window; what lies outside does not count */
    uint64_t waits;           /* that ended, or were open at the end */
    uint64_t unattributed_ns; /* waited before a record that came too late: no one is charged for it */
    uint64_t uncounted;       /* records of too many threads */
    uint64_t too_late;        /* switches that are older than their thread's last one */
};

void thread_states_init(struct thread_states *states, const struct thread_states_visitor *visitor);
void thread_states_free(struct thread_states *states);
/* Takes a change of scheduling. */
void thread_states_sched(struct thread_states *states, const struct duration_edge *edge);
/* A garbage collection begins or ends on a thread. */
void thread_states_gc(struct thread_states *states, const struct duration_edge *edge, bool begins);
/* Takes an outermost duration of category `blocked`; `end` is NULL if it is open at last_ns. Returns
 * the part of it before the thread was woken, whatever the window. Reports one that is not between a
 * switch out and the next run. */
struct interval thread_states_blocked(struct thread_states *states, const struct duration_edge *begin,
                                      const struct duration_edge *end, int64_t last_ns);
/* Where what is open of a thread ends, in the part of the file that is being read: where the newer part of it begins;
 * with its process; or where reading stopped, with what was read of the thread. */
int64_t thread_states_end_ns(struct thread_states *states, uint32_t row, uint32_t process);
/* The next records of the process are older than all before: ends its open states, and begins again. What is open at the
 * end of the older part ends where the newer one began for that thread, at newer_ns at the earliest. */
void thread_states_begin_older(struct thread_states *states, uint32_t process, int64_t newer_ns);
/* Ends all states that are open: their file ends. The thread may go on in the next one. If the file was not read to
 * its end, a state is known up to the last record that was read of its ractor or thread: other chunks may be of later
 * times. */
void thread_states_file_end(struct thread_states *states);
/* Returns the part of a time that is in the window. */
uint64_t thread_states_within(const struct thread_states *states, int64_t from_ns, int64_t to_ns);
/* Returns the length of a thread's life in the window. */
uint64_t thread_life_ns(const struct thread_times *thread);
/* Sums up the time of all threads by state. Returns the length of their lives. */
uint64_t thread_states_sum(const struct thread_states *states, uint64_t ns_out[THREAD_STATE_COUNT]);

#endif
