#ifndef SYSCALL_CALLERS_H
#define SYSCALL_CALLERS_H
/* syscall_callers.h - finds the Ruby method that made each system call: the innermost recorded call around
 * it on the same track.
 *
 *      syscall_callers_init -> syscall_callers_call and _syscall for each event
 *      -> syscall_callers_file_end after each file -> the rows -> syscall_callers_free
 *
 * Calls are written when they return, by their thread; system calls, by another thread, into chunks of its own.
 * So either may come first. Both wait in lists. When the calls of a track are many, the older ones are
 * compared with the system calls and dropped; a system call that none of these encloses waits on. Each is
 * compared once with the calls around it, so the time is linear.
 */
#include "base/interval.h"
#include "base/row_table.h"
#include "fxt/reader.h"

enum { CALLER_TRACKS_MAX = 256 * 1024, CALLER_ROWS_MAX = 1024 * 1024, CALLER_LIST_HALF = 128 * 1024 };

/* System calls of one name that one method made. */
struct syscall_caller {
    uint32_t caller; /* the key; STRING_NONE: outside of recorded calls */
    uint32_t name;
    uint64_t calls, total_ns;
};
enum { SYSCALL_CALLER_KEYS = 2 };

/* Slices by their ends. */
struct timed_list {
    struct timed {
        struct interval time;
        uint32_t name; /* STRING_NONE: its caller was found */
    } *list;
    uint32_t count, capacity;
    bool mixed; /* it is not in order */
};

struct caller_track {
    uint32_t track; /* the key: a number of the caller's */
    uint32_t limit; /* of calls, before older ones are compared */
    struct timed_list calls, syscalls;
};

struct syscall_callers {
    struct interval window; /* the caller may set it */
    struct row_table rows;  /* of struct syscall_caller */
    struct row_table tracks; /* of struct caller_track, of the current file */
    struct timed_list open; /* calls around what is being compared */
    bool any_order; /* the chunks of the file are in no order: all is compared at its end */
    uint64_t uncounted; /* system calls without a row */
    /* NULL, or a function of the caller: gets each system call that counts. */
    void *context;
    void (*found)(void *context, uint32_t caller, uint32_t name, struct interval syscall);
};

void syscall_callers_init(struct syscall_callers *callers);
void syscall_callers_free(struct syscall_callers *callers);
/* Take an event of the category call, or syscall. `seen_ns`: system calls of the process are known up to
 * this time. */
void syscall_callers_call(struct syscall_callers *callers, struct pool *pool, uint32_t track,
                          const struct fxt_event *event, int64_t seen_ns);
void syscall_callers_syscall(struct syscall_callers *callers, struct pool *pool, uint32_t track,
                             const struct fxt_event *event);
void syscall_callers_file_end(struct syscall_callers *callers);

#endif
