#ifndef RUBY_VM_TRACE_SESSION_SNAPSHOT_H
#define RUBY_VM_TRACE_SESSION_SNAPSHOT_H 1
/*
 * The flight recorder: the newest events are in memory (memory_ring.h), and become a trace when one
 * is asked for.
 *
 * Saving has two parts. rb_vm_trace_snapshot_begin says what is to be saved: the chunks, and the
 * hits of all sites at that moment. It takes some microseconds. rb_vm_trace_recorder_write copies
 * that into a file, on a native thread of the tracer's own, beside the program. A chunk is copied
 * record by record: what is older than the last reset, or than the requested window of time
 * for, is left out. What is to be named otherwise (settings, sites, losses, summary) is written as
 * at the end of any trace.
 *
 * The file is made beside the path under another name, and gets its name when it is whole: so a
 * save that fails leaves what was there. A file that another process is writing stays what it is
 * (file_claim.h): a save that the program asked for fails then, one that it did not ask for takes
 * another name.
 */

#include "vm_trace/session/session_state.h"

/* What a save came to. */
struct rb_vm_trace_save {
    /*
     * in: a file to make, or to replace when it is a regular one of the same user and nobody writes
     * to it. NULL: it is made of `pattern`, and where that is NULL, too, of the path of the options
     * (options.h). out: the file that was made.
     */
    const char *path;
    const char *pattern;
    char *made;            /* out: `path`, when it was NULL; the caller frees it */
    char *kept;            /* out: the path that was not taken, when another one was; the caller frees it */
    const char *why_kept;  /* out: why, or NULL */
    const char *why;       /* in: what for, as the settings say it */
    int error;             /* errno, or 0 */
    const char *reason;    /* when there is an error: its text, static or strerror's */
    uint64_t events, exits, lost;
    struct rb_vm_trace_memory_config memory; /* out: what was recorded into */
    uint64_t held_ns;      /* out: how far back that goes, if that is less than the requested window; else 0 */
    bool beside;           /* `thread` writes it */
    pthread_t thread;
};

/* Answers of rb_vm_trace_snapshot_begin. */
enum vm_trace_snapshot_answer {
    VM_TRACE_SNAPSHOT_BEGUN,
    VM_TRACE_SNAPSHOT_BUSY,         /* another save is not finished */
    VM_TRACE_SNAPSHOT_NO_RECORDER,  /* nothing is recorded, or not into memory */
    VM_TRACE_SNAPSHOT_NO_ROOM       /* there is no memory for it */
};

/*
 * Freeze what is to be saved. Any thread; with the GVL or without, then other threads' last events
 * are in it as far as they have got. After VM_TRACE_SNAPSHOT_BEGUN rb_vm_trace_recorder_write must
 * be called. `cut`: it is a piece of a spool, and the next one has what comes after (spool.h): a reset
 * follows at once. What is recorded between the two, some microseconds, is in neither.
 */
enum vm_trace_snapshot_answer rb_vm_trace_snapshot_begin(bool cut);

/* Whether anything was recorded since the last reset, or piece. Any thread; takes capture.lock. */
bool rb_vm_trace_recorder_any_p(void);

/*
 * Whether a last piece of a spool would have something: what other pieces have needs no empty one. A
 * forked child gets its memory for it. GVL held; takes capture.lock.
 */
bool rb_vm_trace_recorder_last_piece_p(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

/* Write it, and end the snapshot. Without the GVL, because it takes long. */
void rb_vm_trace_recorder_write(struct rb_vm_trace_save *save);

/* The same on a native thread of the tracer's own. */
void rb_vm_trace_recorder_write_here(struct rb_vm_trace_save *save);

/*
 * The same in two parts: from the first on it is written beside the program, whatever that does;
 * the second one waits for it.
 */
void rb_vm_trace_recorder_write_begin(struct rb_vm_trace_save *save);
void rb_vm_trace_recorder_write_end(struct rb_vm_trace_save *save);

/*
 * One line for the user when memory went back less far than requested: how far, and how many MiB
 * would do. False: it did not, and nothing is written.
 */
bool rb_vm_trace_recorder_hint(const struct rb_vm_trace_save *save, char *text, size_t capacity);

/* Wait until no save is under way. Without the GVL. */
void rb_vm_trace_recorder_wait(void);

/*
 * From here on no save begins, for the trace is about to end. False: one is still under way. Any
 * thread; takes capture.lock.
 */
bool rb_vm_trace_recorder_refuse(void);

/*
 * Forget what was recorded so far, without a touch of it: a save has what comes after. Other
 * ractors notice at their next event (ractor_state.h). GVL held. Takes capture.lock. False: no
 * memory. `caller` is the calling ractor's state, whose sampling starts again.
 */
bool rb_vm_trace_recorder_reset(struct rb_vm_trace_ractor *ractor);

/*
 * Save at one of the moments above, if that is wanted, to the path of the options, and say so on
 * stderr. Waits for it.
 */
void rb_vm_trace_recorder_save_at(unsigned moment, struct rb_vm_trace_ractor *ractor,
                                  struct rb_execution_context_struct *ec);

/* If there is a spool, write what no piece has yet, for this reason. Any thread without the GVL. */
void rb_vm_trace_recorder_save_rest(const char *why);

/* What was written to the path of the options: one line on stderr, where one is due. Frees it. */
void rb_vm_trace_recorder_saved(struct rb_vm_trace_save *save);

/* In a crashing process: write memory as it is. Async-signal-safe. */
void rb_vm_trace_recorder_crash(void);

/* --- for session.c ---------------------------------------------------------------------------- */

/* The memory is there, and has its first events: the settings and the host. False: no memory for the rest. */
bool rb_vm_trace_recorder_begin(uint64_t events);

/* In the child of a fork, with all locks held: forget what the parent was at. Then, without them: threads. */
void rb_vm_trace_recorder_begin_child(void);

/*
 * If the trace has a signal or a spool: start the thread that saves then, once in each process, and
 * have it go by the times of this trace.
 */
void rb_vm_trace_recorder_threads(void);

/* rb_vm_trace_chunk_file_fault for the file that is being saved into. */
bool rb_vm_trace_recorder_fault(const void *address);

/*
 * The trace ends: no save begins from here on, and one that is under way is waited for.
 * capture.lock held, which is let go meanwhile.
 */
void rb_vm_trace_recorder_close(void);

/* The process ends: save if that is wanted. */
void rb_vm_trace_recorder_end(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec);

#endif /* RUBY_VM_TRACE_SESSION_SNAPSHOT_H */
